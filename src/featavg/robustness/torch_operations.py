"""What operations and layers of PyTorch are understood.

A reader adds an operation to a chain and returns whether it understood its arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from featavg.arrays import FloatArray
from featavg.robustness.torch_chain import Chain, Flatten, Leak, Linear, Scale

POINTS, SIZE = object(), object()
"""What readers get for the result of the operation before, and for the number of points."""

Reader = Callable[..., bool]


def _array(value: Any) -> FloatArray | None:
    """Return a constant as an array of double precision, or None where it is no real number."""
    if isinstance(value, torch.Tensor):
        return None if value.is_complex() else value.detach().double().numpy()
    return np.asarray(value, dtype=np.float64) if isinstance(value, int | float) else None


def _add(chain: Chain, left: Any, right: Any) -> bool:
    constant = _array(right if left is POINTS else left)
    return _scale(chain, left, right, 1.0, constant)


def _subtract(chain: Chain, left: Any, right: Any) -> bool:
    constant = _array(right if left is POINTS else left)
    if constant is None:
        return False
    if left is POINTS:
        return _scale(chain, left, right, 1.0, -constant)
    return _scale(chain, left, right, -1.0, constant)


def _multiply(chain: Chain, left: Any, right: Any) -> bool:
    constant = _array(right if left is POINTS else left)
    return _scale(chain, left, right, constant, 0.0)


def _divide(chain: Chain, left: Any, right: Any) -> bool:
    constant = _array(right)
    if left is not POINTS or constant is None or not constant.all():
        return False
    return _scale(chain, left, right, 1 / constant, 0.0)


def _scale(chain: Chain, left: Any, right: Any, factor: Any, offset: Any) -> bool:
    if (left is POINTS) == (right is POINTS) or factor is None or offset is None:
        return False
    return chain.add(Scale(np.asarray(factor), np.asarray(offset)))


def _linear(chain: Chain, x: Any, weight: Any, bias: Any = None) -> bool:
    matrix = _array(weight)
    if x is not POINTS or matrix is None or matrix.ndim != 2:
        return False
    offset = np.zeros(len(matrix)) if bias is None else _array(bias)
    if offset is None or offset.shape != (len(matrix),):
        return False
    return chain.add(Linear(matrix, offset))


def _matmul(chain: Chain, x: Any, matrix: Any) -> bool:
    right = _array(matrix)
    return right is not None and _linear(chain, x, torch.tensor(right.T))


def _relu(chain: Chain, x: Any, inplace: bool = False) -> bool:
    return x is POINTS and chain.add(Leak(0.0))


def _leaky_relu(chain: Chain, x: Any, negative_slope: float = 0.01, inplace: bool = False) -> bool:
    return x is POINTS and negative_slope >= 0 and chain.add(Leak(float(negative_slope)))


def _flatten(chain: Chain, x: Any, start_dim: int = 0, end_dim: int = -1) -> bool:
    return x is POINTS and (start_dim, end_dim) == (1, -1) and chain.add(Flatten())


def _view(chain: Chain, x: Any, *shape: Any) -> bool:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if x is not POINTS or len(sizes) != 2:
        return False
    points, width = sizes
    if points is SIZE and width == -1:
        return chain.add(Flatten())
    whole = points is SIZE or (isinstance(points, int) and points == -1)
    return whole and isinstance(width, int) and width > 0 and chain.add(Flatten(width))


def _dropout(
    chain: Chain, x: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> bool:
    return x is POINTS and training is False


def _contiguous(chain: Chain, x: Any) -> bool:
    return x is POINTS


def _softmax(chain: Chain, x: Any, dim: Any = None, **unused: Any) -> bool:
    return x is POINTS and dim in (1, -1) and chain.end("softmax")


def _log_softmax(chain: Chain, x: Any, dim: Any = None, **unused: Any) -> bool:
    return x is POINTS and dim in (1, -1) and chain.end("log_softmax")


def _batch_norm(chain: Chain, module: Any) -> bool:
    mean, variance = module.running_mean, module.running_var
    if mean is None or variance is None:  # it would look at the other points
        return False
    factor = 1 / torch.sqrt(variance + module.eps)
    factor = factor if module.weight is None else factor * module.weight
    offset = -mean * factor if module.bias is None else module.bias - mean * factor
    return chain.add(Scale(factor.detach().numpy(), offset.detach().numpy()))


FUNCTIONS: dict[Any, Reader] = {
    operator.add: _add,
    torch.add: _add,
    operator.sub: _subtract,
    torch.sub: _subtract,
    operator.mul: _multiply,
    torch.mul: _multiply,
    operator.truediv: _divide,
    torch.div: _divide,
    operator.matmul: _matmul,
    torch.matmul: _matmul,
    functional.linear: _linear,
    functional.relu: _relu,
    torch.relu: _relu,
    functional.leaky_relu: _leaky_relu,
    torch.flatten: _flatten,
    torch.reshape: _view,
    functional.dropout: _dropout,
    functional.softmax: _softmax,
    torch.softmax: _softmax,
    functional.log_softmax: _log_softmax,
    torch.log_softmax: _log_softmax,
}

METHODS: dict[str, Reader] = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "matmul": _matmul,
    "relu": _relu,
    "flatten": _flatten,
    "view": _view,
    "reshape": _view,
    "contiguous": _contiguous,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
}

LAYERS: dict[type[nn.Module], Callable[[Chain, Any], bool]] = {
    nn.Linear: lambda chain, m: _linear(chain, POINTS, m.weight, m.bias),
    nn.ReLU: lambda chain, m: _relu(chain, POINTS),
    nn.LeakyReLU: lambda chain, m: _leaky_relu(chain, POINTS, m.negative_slope),
    nn.Flatten: lambda chain, m: _flatten(chain, POINTS, m.start_dim, m.end_dim),
    nn.Identity: lambda chain, m: True,
    nn.Dropout: lambda chain, m: not m.training,
    nn.BatchNorm1d: _batch_norm,
    nn.Softmax: lambda chain, m: _softmax(chain, POINTS, m.dim),
    nn.LogSoftmax: lambda chain, m: _log_softmax(chain, POINTS, m.dim),
}

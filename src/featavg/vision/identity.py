"""By what networks and images are told apart where results are saved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from featavg.arrays import FloatArray

_PROJECTIONS = 4
_DIGITS = 3


def fingerprint(*tensors: Tensor) -> str:
    """Return a hash of dtypes, shapes and values."""
    digest = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach().cpu()
        plain = plain.to_dense() if plain.layout != torch.strided else plain.contiguous()
        digest.update(f"{plain.dtype} {tuple(plain.shape)};".encode())
        digest.update(plain.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_fingerprint(model: nn.Module) -> str:
    """Return a hash of the description of a network, its weights and all its buffers.

    What its code and its attributes make of them is not in it: see `behaviour`.
    """
    state = model.state_dict()
    state |= {name: value for name, value in model.named_buffers() if name not in state}
    tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
    others = [repr(value) for name, value in state.items() if name not in tensors]
    text = f"{model!r} {list(state)} {fingerprint(*tensors.values())} {others or ''}"
    return hashlib.sha256(text.encode()).hexdigest()


def behaviour(function: Callable[[Tensor], Tensor], images: Tensor) -> list[float]:
    """Return a few numbers that tell what a network makes of images, and along which slopes.

    Networks with equal weights may do different things with them: code and attributes are in no
    `state_dict`. The numbers are others for another function, as far as these images show it, but
    not for another rounding. Slopes are part of it because attacks follow them.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)  # for networks that are random in evaluation mode, too
        inputs = images.detach().clone().requires_grad_()
        outputs = function(inputs)
        weights = torch.from_numpy(_directions(1, *outputs.shape)[0]).to(outputs)
        slopes: Tensor | None = None
        if outputs.requires_grad:
            (slopes,) = torch.autograd.grad((weights * outputs).sum(), inputs, allow_unused=True)
    return summary(outputs) + ([] if slopes is None else _projected(_plain(slopes)))


def summary(outputs: Tensor) -> list[float]:
    """Return a few numbers of a row for each image, in which each column counts equally."""
    values = _plain(outputs)
    scales = abs(values).max(axis=0, initial=0.0)
    logs = np.log10(scales, out=np.zeros_like(scales), where=scales > 0)
    return _rounded(values / np.where(scales > 0, scales, 1.0)) + _rounded(logs)


def _plain(values: Tensor) -> FloatArray:
    plain: FloatArray = values.detach().double().cpu().reshape(len(values), -1).numpy()
    return plain


def _projected(values: FloatArray) -> list[float]:
    """Return the largest value, and projections of values on its scale."""
    largest = float(abs(values).max(initial=0.0))
    return [float(f"{largest:.{_DIGITS}g}"), *_rounded(values / (largest or 1.0))]


def _rounded(values: FloatArray) -> list[float]:
    directions = _directions(_PROJECTIONS, values.size) / max(values.size, 1) ** 0.5
    found: list[float] = (directions @ values.flatten()).round(_DIGITS).tolist()
    return found


def _directions(*shape: int) -> FloatArray:
    return np.random.default_rng(0).standard_normal(shape)

"""Reading networks of one hidden layer from files of weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg import checks
from featavg.array_files import Arrays, read_arrays
from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.networks.activation import LeakyReLU, ReLU
from featavg.networks.safetensors import read_safetensors
from featavg.networks.shallow import ShallowNet

_LARGEST = 1 << 30
_SETTINGS = ("labels", "mean", "scale", "leak")
_WANTED = (
    "the arrays W, b, A and c, or linear and c, or the weights and biases of one or two Linear "
    "layers of PyTorch, and possibly labels, mean, scale and leak"
)
_Layer = tuple[FloatArray, FloatArray]


def read_shallow(path: str | Path) -> ShallowNet:
    r"""Read a network of one hidden layer from a file of named arrays, .npz or .safetensors.

    Paper: none, an extension. The file holds W, b, A and c of
    :math:`A\,\varphi(W x + b) + S x + c`, possibly S as ``linear``; or ``linear`` and c alone; or
    weights and biases named as PyTorch names those of two `Linear` layers. The activation is the
    ReLU, or the leaky one with the slope ``leak``. Where there are ``mean`` and ``scale``, the
    network takes (x - mean) / scale. ``labels`` are those of the outputs.

    Files are not trusted: nothing in them is executed, and their size is limited.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    InputError
        If it is damaged, or holds anything else.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.npz"
    ...     np.savez(file, W=[[1.0, 0.0]], b=[0.0], A=[[2.0]], c=[-1.0], labels=["no", "yes"])
    ...     net = read_shallow(file)
    >>> net.predict([[0.0, 5.0], [5.0, 0.0]])
    array(['no', 'yes'], dtype='<U3')
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        arrays = read_arrays(path, most=_LARGEST)[0]
    elif path.suffix.lower() == ".safetensors":
        arrays = read_safetensors(path, most=_LARGEST)
    else:
        raise InputError(f"MODEL must end in .npz or .safetensors; got {path.name}.")
    settings = {name: arrays.pop(name) for name in _SETTINGS if name in arrays}
    linear = arrays.pop("linear", None)
    if set(arrays) == {"W", "b", "A", "c"}:
        hidden, outer = _layer(arrays, "W", "b"), _layer(arrays, "A", "c")
    elif linear is not None and set(arrays) == {"c"}:
        hidden, outer = None, _layer(arrays | {"linear": linear}, "linear", "c")
        linear = None
    elif linear is None and arrays and all(_is_layer(name) for name in arrays):
        hidden, outer = _torch_layers(arrays, path.name)
    else:
        held = [*arrays, *(["linear"] if linear is not None else [])]
        names = ", ".join(name[:40] for name in held[:10]) or "none of these"
        raise InputError(f"MODEL must hold {_WANTED}; {path.name} holds {names}.")
    return _network(hidden, outer, linear, settings)


def _network(
    hidden: _Layer | None, outer: _Layer, linear: Any, settings: dict[str, Any]
) -> ShallowNet:
    labels = _labels(settings["labels"]) if "labels" in settings else None
    leak = _number("leak", settings["leak"]) if "leak" in settings else 0.0
    activation = LeakyReLU(leak) if leak else ReLU()
    if hidden is None:
        if leak:
            raise InputError("leak must not be given for a network without a hidden layer.")
        rows = len(outer[0])
        hidden, linear = (np.zeros((0, outer[0].shape[1])), np.zeros(0)), outer[0]
        outer = np.zeros((rows, 0)), outer[1]
    (W, b), (A, c) = hidden, outer
    net = ShallowNet(W, b, A, c, activation=activation, linear=linear, labels=labels)
    if "mean" not in settings and "scale" not in settings:
        return net
    mean, scale = (
        _spread(name, settings[name], net.dim) if name in settings else np.full(net.dim, usual)
        for name, usual in (("mean", 0.0), ("scale", 1.0))
    )
    if not scale.all():
        raise InputError("scale must not hold 0, because points are divided by it.")
    with np.errstate(over="ignore"):  # infinity is refused
        return net.after_affine(1 / scale, -mean / scale)


def _layer(arrays: Arrays, weight: str, bias: str | None) -> _Layer:
    """Return a layer; its bias may be one number, or missing where it has no name."""
    W = checks.numbers(weight, arrays[weight])
    if W.ndim != 2:
        raise InputError(f"{weight} must be a matrix; got the shape {W.shape}.")
    if bias is None:
        return W, np.zeros(len(W))
    b = _spread(bias, arrays[bias], len(W))
    return W, b


def _spread(name: str, value: Any, length: int) -> FloatArray:
    """Return a vector of this length; one number stands for as many."""
    array = checks.numbers(name, value)
    if array.ndim == 0:
        array = np.full(length, array)
    return checks.vector(name, array, length=length).astype(np.float64)


def _number(name: str, value: Any) -> float:
    array = checks.numbers(name, value)
    if array.size != 1:
        raise InputError(f"{name} must be one number; got the shape {array.shape}.")
    return checks.scale(name, array.item(), zero=True)


def _labels(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind not in "biufU" or values.ndim != 1:
        raise InputError(
            f"labels must be a vector of numbers or text; got the shape {values.shape} of "
            f"{values.dtype}."
        )
    if values.dtype.kind == "f":
        checks.finite("labels", values)
    return values


def _is_layer(name: str) -> bool:
    return name.rpartition(".")[2] in ("weight", "bias")


def _torch_layers(arrays: Arrays, file: str) -> tuple[_Layer | None, _Layer]:
    """Return the layers of a state_dict in the order in which they fit each other."""
    weights = [name for name in arrays if name.endswith("weight")]
    biases = {f"{name.removesuffix('weight')}bias": name for name in weights}
    alone = next((name for name in arrays if name not in weights and name not in biases), None)
    if alone is not None:
        raise InputError(f"MODEL must hold a weight for each bias; {file} has only {alone[:80]}.")
    layers = {
        weight: _layer(arrays, weight, bias if bias in arrays else None)
        for bias, weight in biases.items()
    }
    if len(layers) == 1:
        return None, layers[weights[0]]
    if len(layers) != 2:
        raise InputError(
            f"MODEL must have one hidden layer, because exact radii of deeper networks are not "
            f"known; {file} has {len(layers)} layers."
        )
    one, two = weights
    fit = [(a, b) for a, b in ((one, two), (two, one)) if _fits(layers[a], layers[b])]
    if len(fit) == 2:  # square matrices
        fit = [(a, b) for a, b in fit if _comes_first(a, b)]
    if len(fit) != 1:
        shapes = " and ".join(f"{name[:40]} {layers[name][0].shape}" for name in weights)
        raise InputError(
            f"MODEL must have two layers of which one takes what the other returns, numbered where "
            f"both do; {file} has {shapes}, so name them W, b, A and c."
        )
    first, second = fit[0]
    return layers[first], layers[second]


def _fits(first: _Layer, second: _Layer) -> bool:
    return len(first[0]) == second[0].shape[1]


def _comes_first(name: str, other: str) -> bool:
    """Return whether two names differ in a number only, which is smaller in the first."""
    mine, theirs = (re.split(r"(\d+)", text) for text in (name, other))
    if mine[::2] != theirs[::2]:
        return False
    return [int(n) for n in mine[1::2]] < [int(n) for n in theirs[1::2]]

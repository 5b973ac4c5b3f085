"""Networks that TensorFlow.js saved as layers models: a description and shards of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.errors import InputError
from featavg.files import DamagedError, parse_json

Tensors = dict[str, NDArray[np.float32]]

_MOST_AXES = 8


def read_tensors(
    where: str, model: bytes | memoryview, shards: Mapping[str, bytes | memoryview]
) -> Tensors:
    """Return the tensors of a network by name.

    A group of the manifest names its shards, which are joined, and then its tensors, whose values
    follow each other without a gap. Nothing but float32 is read, and every byte must belong to a
    tensor.

    Parameters
    ----------
    where : str
        The name of the network in messages.
    model : bytes
        The file ``model.json``.
    shards : mapping of str to bytes
        The shards by name, all of them used.

    Examples
    --------
    >>> model = (
    ...     b'{"format": "layers-model", "weightsManifest": [{"paths": ["a.bin"], "weights": '
    ...     b'[{"name": "fc/bias", "shape": [2], "dtype": "float32"}]}]}'
    ... )
    >>> read_tensors("a network", model, {"a.bin": np.array([1, 2], "<f4").tobytes()})
    {'fc/bias': array([1., 2.], dtype=float32)}
    """
    tensors: Tensors = {}
    left = dict(shards)
    try:
        described = parse_json(bytes(model), "its description")
        if described["format"] != "layers-model":
            raise DamagedError(f"its format is {described['format']!r}")
        for group in described["weightsManifest"]:
            content = b"".join(left.pop(path) for path in group["paths"])
            for name, tensor in _group(group["weights"], content):
                if name in tensors:
                    raise DamagedError(f"two of its tensors are called {name}")
                tensors[name] = tensor
        if left:
            raise DamagedError(f"its description does not name {next(iter(left))}")
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{where} must be a layers model of TensorFlow.js; {reason}.") from None
    except DamagedError as error:
        raise InputError(f"{where} must be a layers model of TensorFlow.js; {error}.") from None
    return tensors


def _group(weights: Any, content: bytes) -> list[tuple[str, NDArray[np.float32]]]:
    """Return the tensors of one group, in the order of the manifest."""
    found, start = [], 0
    for weight in weights:
        name, shape = weight["name"], weight["shape"]
        if weight["dtype"] != "float32" or "quantization" in weight:
            raise DamagedError(f"{name!r} is not of float32")
        if len(shape) > _MOST_AXES or not all(type(n) is int and n > 0 for n in shape):
            raise DamagedError(f"{name!r} has the shape {shape!r}")
        stop = start + 4 * prod(shape)
        if stop > len(content):
            raise DamagedError(f"its shards end within {name!r}")
        values = np.frombuffer(content[start:stop], dtype="<f4").reshape(shape)
        if not np.isfinite(values).all():
            raise DamagedError(f"{name!r} has values that are not finite")
        found.append((name, values.astype(np.float32, copy=False)))
        start = stop
    if start != len(content):
        raise DamagedError("its shards are longer than its tensors")
    return found

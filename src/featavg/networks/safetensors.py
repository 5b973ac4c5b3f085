"""Reading files in the format of safetensors: a header in JSON, and the bytes of plain arrays."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from featavg.array_files import Arrays, explained_damage
from featavg.files import DamagedError, parse_json

_LARGEST_HEADER, _MOST_DIMENSIONS = 1 << 20, 32
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # the upper half of a float32
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}


def read_safetensors(path: Path, *, most: int) -> Arrays:
    """Return the arrays of a file; nothing in it is executed.

    Parameters
    ----------
    path : path
        The file.
    most : int
        How many bytes it may have; a larger one is refused.

    Raises
    ------
    DamagedError
        If the file is missing, damaged, or has arrays of another type than real numbers.
    """
    with explained_damage(path), path.open("rb") as file:
        return _read(file, path.stat().st_size, most)


def _read(file: IO[bytes], size: int, most: int) -> Arrays:
    if size > most:
        raise DamagedError(f"it must have at most {most / 1e6:.3g} MB; got {size / 1e6:.3g} MB")
    length = int.from_bytes(file.read(8), "little")
    start = 8 + length
    if length > _LARGEST_HEADER or start > size:
        raise DamagedError(
            f"its header must have at most {_LARGEST_HEADER:,} bytes and be in the file; got "
            f"{length:,} bytes"
        )
    header = parse_json(file.read(length), "its header")
    if not isinstance(header, dict):
        raise DamagedError("its header must be a JSON object")
    header.pop("__metadata__", None)
    places = {name: _place(name, entry) for name, entry in header.items()}
    end = 0
    for name, (_, _, begin, stop) in sorted(places.items(), key=lambda item: item[1][2:]):
        if begin != end or stop > size - start:
            raise DamagedError(f"{name[:80]!r} must follow the array before it and be in the file")
        end = stop
    if end != size - start:
        raise DamagedError("it must end with its last array")
    return {name: _array(file, start, place) for name, place in places.items()}


_Place = tuple[str, tuple[int, ...], int, int]


def _place(name: str, entry: Any) -> _Place:
    """Return the type, the shape and the place of an array, which have to fit each other."""
    try:
        kind, shape, (begin, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise DamagedError(f"{name[:80]!r} must have a type, a shape and a place") from None
    if isinstance(shape, list) and len(shape) > _MOST_DIMENSIONS:
        raise DamagedError(
            f"{name[:80]!r} must have at most {_MOST_DIMENSIONS} dimensions; got {len(shape):,}"
        )
    numbers = [*shape, begin, stop] if isinstance(shape, list) else [None]
    if not all(type(number) is int and 0 <= number < 1 << 62 for number in numbers):
        raise DamagedError(f"{name[:80]!r} must have a shape and a place of whole numbers")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise DamagedError(
            f"{name[:80]!r} must have one of the types {', '.join(_TYPES)}; got {str(kind)[:20]!r}"
        )
    bytes_needed = int(np.prod(shape, dtype=object)) * np.dtype(_TYPES[kind]).itemsize
    if bytes_needed != stop - begin:
        raise DamagedError(f"{name[:80]!r} does not have the size that it states")
    return kind, tuple(shape), begin, stop


def _array(file: IO[bytes], start: int, place: _Place) -> NDArray[Any]:
    kind, shape, begin, stop = place
    file.seek(start + begin)
    content = file.read(stop - begin)
    if len(content) != stop - begin:
        raise DamagedError("it became shorter while it was read")
    values = np.frombuffer(content, _TYPES[kind])
    if kind == "BF16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shape)

"""CIFAR's pickled batches, read by an unpickler that knows arrays, strings and numbers only.

A pickle is a program. Three things keep this one harmless: its instructions are looked through
first, and only those that build plain values are allowed; every name it asks for must be one of
the few that a NumPy array needs; and what it gets for such a name is not NumPy's function but a
stand-in from this file, which only remembers what it was given.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.errors import InputError

# What Python 2 and 3 write at protocol 2 for dicts, lists, tuples, strings, numbers and arrays.
_PLAIN = """
    PROTO STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 SHORT_BINSTRING BINSTRING
    BINUNICODE EMPTY_LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT SETITEM
    SETITEMS GLOBAL REDUCE BUILD BINGET LONG_BINGET BINPUT LONG_BINPUT"""
_INSTRUCTIONS = frozenset(_PLAIN.split())
_MOST_REMEMBERED = 1_000_000  # the memo is an array as long as its largest index


class _Array:
    """Stands in for an array, and remembers its state."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _DType:
    """Stands in for a dtype, and remembers its code."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = _text(code)

    def __setstate__(self, state: Any) -> None:
        """Ignore the byte order: there is none in a byte."""


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes, which Python 3 writes at protocol 2 as text to be encoded."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the encoding {encoding}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"the name {module}.{name}") from None


def read_batch(
    where: str, content: bytes, *, count: int, pixels: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images of a batch, shape (count, pixels), and its labels, as bytes.

    Parameters
    ----------
    where : str
        What to call the batch in a message.
    content : bytes
        The pickle.
    count, pixels : int
        How many images it must hold, and how many values an image has.
    """
    try:
        _look_through(content)
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # whatever a hostile pickle leads to
        found = error if isinstance(error, pickle.UnpicklingError) else "one that cannot be read"
        raise InputError(
            f"{where} must be a pickle of arrays, strings and numbers only; got {found}."
        ) from None
    if not isinstance(batch, dict):
        raise InputError(f"{where} must hold a dictionary.")
    entries = {_text(key): value for key, value in batch.items()}
    return (
        _image_rows(where, entries.get("data"), count, pixels),
        _label_bytes(where, entries.get("labels"), count),
    )


def _look_through(content: bytes) -> None:
    """Refuse instructions that plain values do not need, and memo indices that need memory."""
    for instruction, argument, _ in pickletools.genops(content):
        if instruction.name not in _INSTRUCTIONS:
            raise pickle.UnpicklingError(f"the instruction {instruction.name}")
        if instruction.name == "LONG_BINPUT" and int(argument or 0) > _MOST_REMEMBERED:
            raise pickle.UnpicklingError("an index that would need much memory")


def _image_rows(where: str, array: Any, count: int, pixels: int) -> NDArray[np.uint8]:
    state = array.state if isinstance(array, _Array) else None
    if isinstance(state, tuple) and len(state) == 5:
        _, shape, dtype, fortran, content = state
        if (
            shape == (count, pixels)
            and isinstance(dtype, _DType)
            and dtype.code == "u1"
            and fortran is False
            and isinstance(content, bytes)
            and len(content) == count * pixels
        ):
            return np.frombuffer(content, dtype=np.uint8).reshape(count, pixels)
    raise InputError(f"{where} must hold the bytes of {count:,} images of {pixels:,} values.")


def _label_bytes(where: str, labels: Any, count: int) -> NDArray[np.uint8]:
    if not isinstance(labels, list) or len(labels) != count:
        raise InputError(f"{where} must hold a list of {count:,} labels.")
    if not all(type(label) is int and 0 <= label < 256 for label in labels):
        raise InputError(f"{where} must hold labels that are whole numbers from 0 to 255.")
    return np.array(labels, dtype=np.uint8)


def _text(value: Any) -> Any:
    return value.decode("latin1") if isinstance(value, bytes) else value

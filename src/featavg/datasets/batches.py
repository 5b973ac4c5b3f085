"""A safe reader of CIFAR's pickled batches, for arrays, strings and numbers only.

A pickle is a program. Three checks make this one harmless: only opcodes that build plain values are
allowed, which is checked before anything is executed; only the few names that a NumPy array needs
can be looked up; and such a name is not resolved to NumPy's function but to a placeholder of this
module, which only stores its arguments.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.errors import InputError

# The opcodes of dicts, lists, tuples, strings, numbers and arrays at protocol 2, in Python 2 and 3.
_PLAIN = """
    PROTO STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 SHORT_BINSTRING BINSTRING
    BINUNICODE EMPTY_LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT SETITEM
    SETITEMS GLOBAL REDUCE BUILD BINGET LONG_BINGET BINPUT LONG_BINPUT"""
_OPCODES = frozenset(_PLAIN.split())
_LARGEST_MEMO_INDEX = 1_000_000  # the memo is an array as long as its largest index


class _Array:
    """Placeholder of an array, which stores its state."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _DType:
    """Placeholder of a dtype, which stores its code."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = _text(code)

    def __setstate__(self, state: Any) -> None:
        """Ignore the byte order, which a byte does not have."""


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes, which Python 3 pickles at protocol 2 as encoded text."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the encoding {encoding}")
    return text.encode("latin1")


_PLACEHOLDERS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _PLACEHOLDERS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"the name {module}.{name}") from None


def read_batch(
    where: str, content: bytes, *, count: int, pixels: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images of a batch, shape (count, pixels), and its labels, as bytes.

    Parameters
    ----------
    where : str
        The name of the batch in messages.
    content : bytes
        The pickle.
    count, pixels : int
        The number of images, and of values of an image.
    """
    try:
        _check_opcodes(content)
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a malicious pickle can raise anything
        found = error if isinstance(error, pickle.UnpicklingError) else "one that cannot be read"
        raise InputError(
            f"{where} must be a pickle of arrays, strings and numbers only; got {found}."
        ) from None
    if not isinstance(batch, dict):
        raise InputError(f"{where} must contain a dictionary.")
    entries = {_text(key): value for key, value in batch.items()}
    return (
        _image_rows(where, entries.get("data"), count, pixels),
        label_bytes(where, entries.get("labels"), count),
    )


def _check_opcodes(content: bytes) -> None:
    """Refuse opcodes that plain values do not need, and large memo indices."""
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"the opcode {opcode.name}")
        if opcode.name == "LONG_BINPUT" and int(argument or 0) > _LARGEST_MEMO_INDEX:
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
    raise InputError(f"{where} must contain the bytes of {count:,} images of {pixels:,} values.")


def label_bytes(where: str, labels: Any, count: int) -> NDArray[np.uint8]:
    """Return a list of `count` labels as an array of bytes."""
    if (
        not isinstance(labels, list)
        or len(labels) != count
        or not all(type(label) is int and 0 <= label < 256 for label in labels)
    ):
        raise InputError(f"{where} must contain a list of {count:,} labels from 0 to 255.")
    return np.array(labels, dtype=np.uint8)


def _text(value: Any) -> Any:
    return value.decode("latin1") if isinstance(value, bytes) else value

"""Decoding published files (IDX, PNG, JSON, and CIFAR's pickles) to arrays of bytes."""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.datasets.catalogue import Dataset, File
from featavg.errors import InputError

Bytes = NDArray[np.uint8]

_UNSIGNED_BYTE = 0x08
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG = struct.Struct(">8sI4sIIBBBBB")  # signature; length and name of IHDR; its seven fields
_EIGHT_BIT_RGB = (8, 2, 0, 0, 0)
# for each array of labels its key in a pickled batch
_ONE_LABEL = {"labels": "labels"}
_FINE_AND_COARSE = {"labels": "fine_labels", "coarse_labels": "coarse_labels"}


def decode(dataset: Dataset, file: File, where: str, content: bytes) -> dict[str, Bytes]:
    """Return the images, shape (count, channels, height, width), and the labels of a file.

    A file may have one of these only; one with the names of the classes is compared with the
    catalogue and has neither. `where` is the name of the file in messages.
    """
    found: dict[str, Bytes] = {}
    if file.form == "idx-images":
        found["images"] = idx(where, content, (file.count, *dataset.shape[1:]))
    elif file.form == "idx-labels":
        found["labels"] = idx(where, content, (file.count,))
    elif file.form == "png-images":
        found["images"] = png_rows(where, content, file.count, dataset.shape)
    elif file.form == "json-labels":
        found["labels"] = json_labels(where, content, file.count)
    elif file.form == "pickle-names":
        _check_names(where, content, dataset)
    else:
        keys = _FINE_AND_COARSE if file.form == "pickle-fine-coarse" else _ONE_LABEL
        found = read_batch(where, content, count=file.count, pixels=dataset.pixels, labels=keys)
    if "images" in found:
        found["images"] = found["images"].reshape(file.count, *dataset.shape)
    for what, classes in (("labels", dataset.classes), ("coarse_labels", dataset.coarse_classes)):
        if what in found and found[what].max() >= len(classes):
            raise InputError(f"{where} must contain labels from 0 to {len(classes) - 1}.")
    return found


def idx(where: str, content: bytes, shape: tuple[int, ...]) -> Bytes:
    """Return the array of an IDX file: two zeros, dtype, number of axes, their lengths, data.

    Examples
    --------
    >>> idx("a file", bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), (2,))
    array([7, 9], dtype=uint8)
    """
    header = struct.pack(f">HBB{len(shape)}I", 0, _UNSIGNED_BYTE, len(shape), *shape)
    if not content.startswith(header) or len(content) != len(header) + int(np.prod(shape)):
        raise InputError(f"{where} must be an IDX file of bytes with the shape {shape}.")
    return np.frombuffer(content, dtype=np.uint8, offset=len(header)).reshape(shape)


def png_rows(where: str, content: bytes, count: int, shape: tuple[int, int, int]) -> Bytes:
    """Return the images of a PNG in which every row is one image, pixel after pixel.

    The header is checked first, so that no picture of another size is decoded.
    """
    from PIL import Image  # not needed by other data sets

    channels, height, width = shape
    header = _PNG.pack(_SIGNATURE, 13, b"IHDR", height * width, count, *_EIGHT_BIT_RGB)
    if not content.startswith(header):
        raise InputError(
            f"{where} must be an RGB picture (PNG) of {count:,} rows of {height * width:,} pixels."
        )
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            pixels = np.asarray(picture, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise InputError(f"{where} is truncated or corrupt: it cannot be decoded.") from None
    return pixels.reshape(count, height * width, channels).transpose(0, 2, 1)


def json_labels(where: str, content: bytes, count: int) -> Bytes:
    """Return the labels of a JSON list.

    Examples
    --------
    >>> json_labels("a file", b"[6, 9, 9]", 3)
    array([6, 9, 9], dtype=uint8)
    """
    try:
        labels = json.loads(content)
    except (ValueError, RecursionError):
        labels = None
    return _label_bytes(where, labels, count)


# A pickle is a program. Three checks make a batch of CIFAR harmless: only opcodes that build plain
# values are allowed, which is checked before anything is executed; only the few names that a NumPy
# array needs can be looked up; and such a name is not resolved to NumPy's function but to a
# placeholder of this module, which only stores its arguments.

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
    where: str,
    content: bytes,
    *,
    count: int,
    pixels: int,
    labels: Mapping[str, str] = MappingProxyType(_ONE_LABEL),
) -> dict[str, Bytes]:
    """Return the images of a pickled batch, shape (count, pixels), and its labels.

    `labels` has for each array of labels its key in the pickle.
    """
    batch = read_pickle(where, content)
    found = {"images": _image_rows(where, batch.get("data"), count, pixels)}
    return found | {
        name: _label_bytes(where, batch.get(key), count) for name, key in labels.items()
    }


def _check_names(where: str, content: bytes, dataset: Dataset) -> None:
    """Refuse other names of the classes than those of the catalogue."""
    found = read_pickle(where, content)
    for key, names in (
        ("fine_label_names", dataset.classes),
        ("coarse_label_names", dataset.coarse_classes),
    ):
        given = found.get(key)
        if not isinstance(given, list) or [_text(name) for name in given] != list(names):
            raise InputError(f"{where} must contain the {len(names)} names {key}.")


def read_pickle(where: str, content: bytes) -> dict[Any, Any]:
    """Return the dictionary of a pickle, whose arrays are placeholders."""
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
    return {_text(key): value for key, value in batch.items()}


def _check_opcodes(content: bytes) -> None:
    """Refuse opcodes that plain values do not need, and large memo indices."""
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"the opcode {opcode.name}")
        if opcode.name == "LONG_BINPUT" and int(argument or 0) > _LARGEST_MEMO_INDEX:
            raise pickle.UnpicklingError("an index that would need much memory")


def _image_rows(where: str, array: Any, count: int, pixels: int) -> Bytes:
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


def _label_bytes(where: str, labels: Any, count: int) -> Bytes:
    if (
        not isinstance(labels, list)
        or len(labels) != count
        or not all(type(label) is int and 0 <= label < 256 for label in labels)
    ):
        raise InputError(f"{where} must contain a list of {count:,} labels from 0 to 255.")
    return np.array(labels, dtype=np.uint8)


def _text(value: Any) -> Any:
    return value.decode("latin1") if isinstance(value, bytes) else value

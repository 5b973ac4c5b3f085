"""Decoding published files to arrays of bytes."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
from numpy.typing import NDArray

from featavg.datasets.batches import label_bytes, read_batch
from featavg.datasets.catalogue import Dataset, File
from featavg.errors import InputError

Bytes = NDArray[np.uint8]

_UNSIGNED_BYTE = 0x08
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG = struct.Struct(">8sI4sIIBBBBB")  # signature; length and name of IHDR; its seven fields
_EIGHT_BIT_RGB = (8, 2, 0, 0, 0)


def decode(dataset: Dataset, file: File, where: str, content: bytes) -> dict[str, Bytes]:
    """Return the images, shape (count, channels, height, width), or the labels in a file, or both.

    Parameters
    ----------
    dataset, file
        The declarations of the data set and the file.
    where : str
        The name of the file in messages.
    content : bytes
        The content, of the declared size.
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
    else:
        found["images"], found["labels"] = read_batch(
            where, content, count=file.count, pixels=dataset.pixels
        )
    if "images" in found:
        found["images"] = found["images"].reshape(file.count, *dataset.shape)
    if "labels" in found and found["labels"].max() >= len(dataset.classes):
        raise InputError(f"{where} must contain labels from 0 to {len(dataset.classes) - 1}.")
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
    return label_bytes(where, labels, count)

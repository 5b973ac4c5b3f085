"""Files of named arrays: npz without pickle, written whole, and checked while they are read.

A file may also hold a description in JSON, as the member ``about.json``. `numpy.load` reads the
arrays of such a file like those of any other npz.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.files import DamagedError, parse_json, write_atomically

_ABOUT = "about.json"
_MOST_PER_BYTE = 1032  # deflate cannot compress by a larger factor
Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, arrays: Mapping[str, Any], about: Any = None) -> None:
    """Write arrays, and a description that JSON can hold, to a file that appears as a whole."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if about is not None:
            with archive.open(_ABOUT, "w") as member:
                member.write(json.dumps(about, allow_nan=False).encode())
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(value), allow_pickle=False)
    write_atomically(path, buffer.getbuffer())


def read_arrays(path: Path, *, most: int) -> tuple[Arrays, Any]:
    """Return the arrays of a file and its description, which is None if there is none.

    Nothing in the file is executed, and no memory is taken for more than it can hold.

    Parameters
    ----------
    path : path
        The file.
    most : int
        How many bytes all arrays together may have; a file with more is refused.

    Raises
    ------
    DamagedError
        If the file is missing, damaged, or anything but plain arrays.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would block until there is a writer
            raise DamagedError("it must be an ordinary file")
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            _check_sizes(archive, path.stat().st_size, most)
            return _members(archive)
    except DamagedError as error:
        raise DamagedError(f"cannot read {path.name}: {error}.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DamagedError(f"cannot read {path.name}: {reason}.") from None
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DamagedError(f"{path.name} must be a whole file of arrays; {reason}.") from None


def _check_sizes(archive: zipfile.ZipFile, size: int, most: int) -> None:
    """Refuse members that claim more than the file can hold, or more than is allowed."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise DamagedError("two of its members have the same name")
    for member in members:
        if member.compress_size > size or member.file_size > _MOST_PER_BYTE * member.compress_size:
            raise DamagedError(f"{member.filename[:80]!r} does not have the size that it states")
    total = sum(member.file_size for member in members)
    if total > most:
        raise DamagedError(f"it must hold at most {most / 1e6:.3g} MB; got {total / 1e6:.3g} MB")


def _members(archive: zipfile.ZipFile) -> tuple[Arrays, Any]:
    arrays, about = {}, None
    for member in archive.infolist():
        with archive.open(member) as file:
            if member.filename == _ABOUT:
                about = parse_json(file.read(), _ABOUT)
                continue
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise DamagedError(f"{name[:80]!r} is not an array")
            if np.lib.format.read_magic(file) != (1, 0):
                raise DamagedError(f"{name[:80]!r} has another version of the format")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            length = member.file_size - file.tell()
            if dtype.hasobject or not dtype.itemsize:
                raise DamagedError(f"{name[:80]!r} must hold numbers or strings; got {dtype}")
            if int(np.prod(shape, dtype=object)) * dtype.itemsize != length:
                raise DamagedError(f"{name[:80]!r} does not have the size that it states")
            values = np.frombuffer(bytearray(file.read(length)), dtype)
            arrays[name] = values.reshape(shape, order="F" if fortran else "C")
            if file.read(1):  # at the end, where the checksum is compared
                raise DamagedError(f"{name[:80]!r} does not have the size that it states")
    return arrays, about

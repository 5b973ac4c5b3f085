"""Files of named arrays: npz without pickle, written whole, sealed, and checked as they are read.

A file may also hold a description in JSON, as the member ``about.json``. `numpy.load` reads the
arrays of such a file like those of any other npz. The comment of the archive is a seal: the SHA-256
of all bytes before it.

A file is not trusted. Before memory is taken for an array, its type, its shape and its size are
known, and are compared with what the reader asks for and with what a file of this size can hold.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from featavg.errors import InputError
from featavg.files import DamagedError, parse_json, write_atomically
from featavg.seals import check_seal, seal

Arrays = dict[str, NDArray[Any]]

_ABOUT = "about.json"
_MOST_ABOUT, _MOST_MEMBERS, _LARGEST_CHARACTER = 1 << 24, 2000, 0x10FFFF
_CHUNK = 1 << 20
# What a compressed file can honestly hold: measurements shrink by much less than a hundred times.
_ALWAYS_ALLOWED, _MOST_PER_BYTE = 1 << 26, 100


def honest_size(size: int) -> int:
    """Return how many bytes a compressed file of this size may hold."""
    return max(_ALWAYS_ALLOWED, _MOST_PER_BYTE * size)


@dataclass(frozen=True)
class Declared:
    """The type and the shape that a file states for an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool = False

    @property
    def size(self) -> int:
        """The number of bytes of the array."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


@dataclass(frozen=True)
class Expected:
    """The kinds of types ("f" for floats) and the shape that a reader asks for.

    A length of None is any length. An array that is not `required` may be missing.
    """

    kinds: str
    shape: tuple[int | None, ...]
    required: bool = True

    def allows(self, declared: Declared) -> bool:
        """Return whether an array is as asked for."""
        return (
            declared.dtype.kind in self.kinds
            and len(declared.shape) == len(self.shape)
            and all(
                wanted in (None, found)
                for wanted, found in zip(self.shape, declared.shape, strict=True)
            )
        )

    def __str__(self) -> str:
        lengths = ", ".join("any" if length is None else str(length) for length in self.shape)
        return f"the shape ({lengths}) of kind {self.kinds}"


def write_arrays(path: Path, arrays: Mapping[str, Any], about: Any = None) -> str:
    """Write arrays, and a description that JSON can hold, to a file that appears as a whole.

    Returns the checksum in its seal.
    """
    plain = {name: np.asanyarray(value) for name, value in arrays.items()}
    buffer = _packed(plain, about, zipfile.ZIP_DEFLATED)
    if sum(value.nbytes for value in plain.values()) > honest_size(buffer.tell()):
        buffer = _packed(plain, about, zipfile.ZIP_STORED)  # or it would be refused as too small
    checksum = seal(buffer)
    write_atomically(path, buffer.getbuffer())
    return checksum


def _packed(arrays: Arrays, about: Any, compression: int) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        if about is not None:
            with archive.open(_ABOUT, "w") as member:
                member.write(json.dumps(about, allow_nan=False).encode())
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)
    return buffer


def read_arrays(
    path: Path,
    *,
    most: int,
    sealed: bool = False,
    checksum: str | None = None,
    expected: Mapping[str, Expected] | None = None,
) -> tuple[Arrays, Any]:
    """Return the arrays of a file and its description, which is None if there is none.

    Nothing in the file is executed, and no memory is taken for more than it can hold.

    Parameters
    ----------
    path, most, sealed, checksum
        As for `open_arrays`.
    expected : mapping, optional
        The arrays that the file must have, and no others.

    Raises
    ------
    DamagedError
        If the file is missing, damaged, or anything but plain arrays.
    """
    with open_arrays(path, most=most, sealed=sealed, checksum=checksum) as file:
        if expected is not None:
            file.check(expected)
        return {name: file.read(name) for name in file.declared}, file.about


def read_array(path: Path, *, most: int) -> NDArray[Any]:
    """Return the only array of an npy file, which is checked like those of an npz."""
    with explained_damage(path), path.open("rb") as file:
        size = path.stat().st_size
        if size > most:
            raise DamagedError(f"it must have at most {_megabytes(most)}; got {_megabytes(size)}")
        return _values(file, path.name, _header(file, path.name, size))


@contextmanager
def open_arrays(
    path: Path, *, most: int, sealed: bool = False, checksum: str | None = None
) -> Iterator[ArrayFile]:
    """Give a file of arrays of which only the headers and the description are read.

    Parameters
    ----------
    path : path
        The file.
    most : int
        How many bytes all arrays together may have; a file with more is refused.
    sealed : bool
        Whether a file without a seal, which `write_arrays` did not write, is refused.
    checksum : str, optional
        The checksum that `write_arrays` returned; a file with another one is refused.

    Raises
    ------
    DamagedError
        If the file is missing, damaged, or anything but plain arrays.
    """
    with explained_damage(path), path.open("rb") as file:
        found = check_seal(file)
        if (sealed or checksum is not None) and found is None:
            raise DamagedError("it has no checksum")
        if checksum is not None and found != checksum:
            raise DamagedError("it has another checksum than the one that was saved")
        with zipfile.ZipFile(file) as archive:
            yield ArrayFile(archive, path.stat().st_size, most)


class ArrayFile:
    """The arrays of an open file, see `open_arrays`.

    Attributes
    ----------
    declared : dict of Declared
        The type and the shape of each array.
    about : object
        The description; None if there is none.
    """

    def __init__(self, archive: zipfile.ZipFile, size: int, most: int) -> None:
        self._archive = archive
        self._members = {member.filename: member for member in archive.infolist()}
        self._check_sizes(size, most)
        self.about: Any = None
        if _ABOUT in self._members:
            with archive.open(_ABOUT) as file:
                self.about = parse_json(file.read(_MOST_ABOUT), _ABOUT)
        self.declared = {
            name.removesuffix(".npy"): self._declared(member)
            for name, member in self._members.items()
            if name != _ABOUT
        }

    def _check_sizes(self, size: int, most: int) -> None:
        """Refuse members that claim more than a file of this size holds, or than is allowed."""
        members = self._archive.infolist()
        if len(members) > _MOST_MEMBERS:
            raise DamagedError(f"it must have at most {_MOST_MEMBERS} members; got {len(members)}")
        if len(self._members) < len(members):
            raise DamagedError("two of its members have the same name")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DamagedError(f"{member.filename[:80]!r} is compressed in another way")
        total = sum(member.file_size for member in members)
        if total > most:
            raise DamagedError(f"it must hold at most {_megabytes(most)}; got {_megabytes(total)}")
        if total > honest_size(size):
            raise DamagedError(
                f"compressed to {_megabytes(size)}, it must hold at most "
                f"{_megabytes(honest_size(size))}; got {_megabytes(total)}, which can be saved "
                "without compression"
            )

    def _declared(self, member: zipfile.ZipInfo) -> Declared:
        if not member.filename.endswith(".npy"):
            raise DamagedError(f"{member.filename[:80]!r} is not an array")
        with self._archive.open(member) as file:
            return _header(file, member.filename.removesuffix(".npy"), member.file_size)

    def check(self, expected: Mapping[str, Expected]) -> None:
        """Refuse arrays that are missing, of another type or shape, or not asked for."""
        for name, wanted in expected.items():
            if wanted.required and name not in self.declared:
                raise DamagedError(f"{name!r} is missing")
        for name, found in self.declared.items():
            if name not in expected:
                raise DamagedError(f"it must not have an array {name[:80]!r}")
            if not expected[name].allows(found):
                raise DamagedError(
                    f"{name!r} must have {expected[name]}; got {found.shape} of {found.dtype}"
                )

    def read(self, name: str) -> NDArray[Any]:
        """Return an array."""
        with self._archive.open(self._members[f"{name}.npy"]) as file:
            declared = _header(file, name, self._members[f"{name}.npy"].file_size)
            values = _values(file, name, declared)
            if file.read(1):  # at the end, where the checksum is compared
                raise DamagedError(f"{name[:80]!r} does not have the size that it states")
        return values


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1e8 else f"{size / 1e6:.3g} MB"


def _header(file: IO[bytes], name: str, size: int) -> Declared:
    """Read the header of an array in a file of `size` bytes, which has to hold it and no more."""
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise DamagedError(f"{name[:80]!r} has another version of the format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    except InputError:
        raise
    except Exception as error:  # the header is parsed as Python, which can fail in many ways
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise DamagedError(f"{name[:80]!r} is not an array ({reason})") from None
    declared = Declared(dtype, shape, fortran)
    if dtype.hasobject:  # refused when it is read
        return declared
    if not dtype.itemsize or declared.size != size - file.tell():
        raise DamagedError(f"{name[:80]!r} does not have the size that it states")
    return declared


def _values(file: IO[bytes], name: str, declared: Declared) -> NDArray[Any]:
    """Return the values after a header."""
    if declared.dtype.hasobject:
        raise DamagedError(
            f"{name[:80]} must hold numbers or text; got an array of Python objects, which could "
            "hold code: save it as numbers or with .astype(str)"
        )
    content = np.empty(declared.size, np.uint8)
    for start in range(0, declared.size, _CHUNK):
        chunk = file.read(min(_CHUNK, declared.size - start))
        content[start : start + len(chunk)] = np.frombuffer(chunk, np.uint8)
        if len(chunk) < min(_CHUNK, declared.size - start):
            raise DamagedError("it is shorter than it states")
    if declared.dtype.kind == "U":
        _check_characters(content.view(declared.dtype.byteorder + "u4"))
    values = content.view(declared.dtype)
    return values.reshape(declared.shape, order="F" if declared.fortran else "C")


def _check_characters(points: NDArray[Any]) -> None:
    """Refuse numbers that are no characters, which could not be printed."""
    surrogate = (points >= 0xD800) & (points < 0xE000)
    if (surrogate | (points > _LARGEST_CHARACTER)).any():
        raise DamagedError("its text is not in Unicode")


@contextmanager
def explained_damage(path: Path) -> Iterator[None]:
    """Turn anything that a damaged file raises into a `DamagedError` that names it."""
    try:
        if path.exists() and not path.is_file():  # a pipe would block until there is a writer
            raise DamagedError("it must be an ordinary file")
        yield
    except DamagedError as error:
        raise DamagedError(f"cannot read {path.name}: {error}.") from None
    except (InputError, MemoryError):
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DamagedError(f"cannot read {path.name}: {reason}.") from None
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DamagedError(f"{path.name} must be a whole file of arrays; {reason}.") from None

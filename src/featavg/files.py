"""Write files whole or not at all, and read files that are not trusted."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from featavg.errors import DamagedFileWarning, InputError

# A temporary file: a dot, the name of the file, a dot, and the eight characters of `tempfile`.
_TEMPORARY = re.compile(r"\.(.+)\.[a-z0-9_]{8}")
_OWN = re.compile(r".+\.(bin|csv|html|json|npz|parquet|png|pt|svg)")


class DamagedError(InputError):
    """A file or folder cannot be used; the message says why."""


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that a reader, or a crash, sees the old or the new one and nothing else.

    A process that is killed here leaves a temporary file beside it. The next one that writes the
    same file, or calls `clear_leftovers`, removes it. A device or a pipe is refused, because the
    new file would take its place.
    """
    if not _may_be_replaced(path):
        raise InputError(f"out must be a file or a new name; got {path}, a device or a pipe.")
    path.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(path.parent, path.name)
    handle, temporary = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)  # inside, because the lock ends when the file is closed
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _may_be_replaced(path: Path) -> bool:
    """Return whether there is nothing of this name, or a file, a link to one or a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)  # replacing a folder is an error anyway


def _temporary(path: Path) -> tuple[int, Path]:
    """Create a temporary file beside a file, locked for as long as it is open."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        # another process may have taken it for a left-over before it was locked
        if _lock(handle) is not False and os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)
        Path(name).unlink(missing_ok=True)


def _lock(handle: int) -> bool | None:
    """Lock a file; return False if another process has done so, None if there are no locks here."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def clear_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files that killed processes left in a folder.

    A process holds a lock on the temporary file that it is writing; such a file stays, and so do
    all of them on a file system without locks.

    Parameters
    ----------
    folder : path
        The folder; it may be missing.
    name : str, optional
        Only those of the file of this name. Without it, those of all files with a suffix that
        featavg writes, which is only for folders that belong to featavg.
    """
    try:
        entries = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return
    for entry in entries:
        found = _TEMPORARY.fullmatch(entry)
        if found and (found[1] == name if name is not None else _OWN.fullmatch(found[1])):
            with suppress(OSError, DamagedError):  # the folder may be read-only
                _remove_unless_locked(folder / entry)


def _remove_unless_locked(path: Path) -> None:
    with open_ordinary(path, write=True) as file:  # some file systems need that for a lock
        if _lock(file.fileno()):
            path.unlink(missing_ok=True)


def discard(path: Path, error: DamagedError | str, then: str) -> None:
    """Set a damaged file aside, which someone may want to look at, and warn of it.

    Parameters
    ----------
    path : path
        The file.
    error : DamagedError or str
        What is wrong with it.
    then : str
        What happens instead, the last clause of the warning.
    """
    if not path.exists():
        warn_of_damage(f"{path} is missing, and {then}.")
        return
    aside = path.with_name(f"{path.name}.corrupt")
    reason = str(error).removeprefix(f"cannot read {path.name}: ").removeprefix(f"{path.name} ")
    try:
        path.replace(aside)
        where = f"it is now {aside.name}"
    except OSError:  # the folder may be read-only
        where = "it cannot be set aside"
    warn_of_damage(f"{path} is damaged ({reason.rstrip('.')}): {where}, and {then}.")


def warn_of_damage(sentence: str) -> None:
    """Warn of damaged files."""
    warnings.warn(sentence, DamagedFileWarning, stacklevel=3)


def can_hold_files(folder: Path) -> bool:
    """Return whether files can be written to a folder, which may still have to be made."""
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


@contextmanager
def open_ordinary(path: Path, *, write: bool = False) -> Iterator[BufferedReader]:
    """Give an ordinary file, following no link; refuse a pipe, which could block, or a device."""
    flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DamagedError(f"{path.name} must be an ordinary file")
        yield file


def read_bytes(path: Path, *, most: int) -> bytes:
    """Return the content of an ordinary file of at most `most` bytes, without following a link."""
    if path.is_symlink():
        raise DamagedError(f"{path.name} must be a file and is a link")
    try:
        with open_ordinary(path) as file:
            # one byte more than it has: it may be growing, and memory is taken for what is asked
            content = file.read(min(most, os.fstat(file.fileno()).st_size) + 1)
    except FileNotFoundError as error:
        raise DamagedError(f"{path.name} is missing") from error
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read") from error
    if len(content) > most:
        raise DamagedError(f"{path.name} is larger than {most / 1e6:.3g} MB")
    return content


def read_json(path: Path, *, most: int) -> Any:
    """Return the content of a JSON file; NaN and Infinity, which are not JSON, are refused."""
    return parse_json(read_bytes(path, most=most), path.name)


def parse_json(content: bytes, name: str) -> Any:
    """Return JSON as plain data; `name` is what an error calls it."""
    try:
        return json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{name} is not valid JSON") from error


def to_json(value: Any, *, indent: int | None = 2) -> bytes:
    """Return a value as readable JSON; numbers that JSON does not have become null."""
    text = json.dumps(without_nan(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def without_nan(value: Any) -> Any:
    """Return plain data with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_hash(value: Any) -> str:
    """Return the SHA-256 of plain data, the same whatever the order of its keys is."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def is_file(path: Path) -> bool:
    """Return whether there is an ordinary file that is not a link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def subfolders(path: Path) -> list[Path]:
    """Return the folders in a folder, by name, and links to folders, but no hidden ones."""
    try:
        found = [p for p in path.iterdir() if not p.name.startswith(".") and p.is_dir()]
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read") from error
    return sorted(found)

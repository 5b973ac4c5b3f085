"""Write files whole or not at all, and read files that are not trusted."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from featavg.errors import InputError


class DamagedError(InputError):
    """A file or folder cannot be used; the message says why."""


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that a reader, or a crash, sees the old or the new one and nothing else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def can_hold_files(folder: Path) -> bool:
    """Return whether files can be written to a folder, which may still have to be made."""
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def read_bytes(path: Path, *, most: int) -> bytes:
    """Return the content of an ordinary file of at most `most` bytes, without following a link."""
    if path.is_symlink():
        raise DamagedError(f"{path.name} must be a file and is a link")
    # the path may have become a link since, or be a pipe that blocks until there is a writer
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            ordinary = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(most + 1) if ordinary else b""
    except FileNotFoundError as error:
        raise DamagedError(f"{path.name} is missing") from error
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read") from error
    if not ordinary:
        raise DamagedError(f"{path.name} must be an ordinary file")
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

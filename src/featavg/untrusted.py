"""Reading files that may come from anywhere: no links, no devices, nothing large, no surprises."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from featavg.errors import InputError


class DamagedError(InputError):
    """What was found cannot be shown; the message says why."""


def read_bytes(path: Path, *, most: int) -> bytes:
    """Return the content of an ordinary file of at most `most` bytes, without following a link."""
    if path.is_symlink():
        raise DamagedError(f"{path.name} must be a file and is a link")
    # should it have become a link since, or be a pipe whose writer one could wait for
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
    content = read_bytes(path, most=most)
    try:
        return json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path.name} is not valid JSON") from error


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def is_file(path: Path) -> bool:
    """Return whether there is an ordinary file, which is no link."""
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

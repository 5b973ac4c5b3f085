"""Seals: files that end with a checksum of everything before it.

A seal tells damage, to any byte, from what was written. It does not tell who wrote it.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from featavg.files import DamagedError, json_hash, parse_json, read_bytes, to_json, without_nan

_CHECKSUM = "checksum"
_SEAL = b"sha256:"
_SEAL_LENGTH = len(_SEAL) + 64
_CHUNK = 1 << 20


def to_sealed_json(value: Mapping[str, Any]) -> bytes:
    """Return an object as JSON that ends with its own checksum, for `read_sealed_json`."""
    plain = without_nan(dict(value))
    return to_json(plain | {_CHECKSUM: json_hash(plain)})


def read_sealed_json(path: Path, *, most: int) -> dict[str, Any]:
    """Return the object that `to_sealed_json` wrote; refuse a file in which any byte differs."""
    content = read_bytes(path, most=most)
    value = parse_json(content, path.name)
    if not isinstance(value, dict) or _CHECKSUM not in value:
        raise DamagedError(f"{path.name} has no checksum")
    del value[_CHECKSUM]
    try:
        same = to_sealed_json(value) == content
    except (ValueError, RecursionError):  # no text in Unicode, or too deep
        same = False
    if not same:
        raise DamagedError(f"{path.name} does not have its checksum")
    return value


def seal(buffer: io.BytesIO) -> str:
    """Seal a zip file by a comment with the checksum of all bytes before it, and return that."""
    buffer.seek(-2, os.SEEK_END)  # the length of the comment
    buffer.write(_SEAL_LENGTH.to_bytes(2, "little"))
    checksum = hashlib.sha256(buffer.getbuffer()).hexdigest()
    buffer.write(_SEAL + checksum.encode())
    return checksum


def check_seal(file: IO[bytes]) -> str | None:
    """Return the checksum of a sealed file, or None if it has no seal; refuse a damaged file."""
    end = max(0, file.seek(0, os.SEEK_END) - _SEAL_LENGTH)
    file.seek(end)
    found = file.read(_SEAL_LENGTH)
    if not found.startswith(_SEAL):
        return None
    file.seek(0)
    digest = hashlib.sha256()
    while end and (chunk := file.read(min(end, _CHUNK))):
        digest.update(chunk)
        end -= len(chunk)
    if found != _SEAL + digest.hexdigest().encode():
        raise DamagedError("its content does not have its checksum")
    return digest.hexdigest()

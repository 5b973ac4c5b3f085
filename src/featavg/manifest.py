"""Manifests: the names, sizes and SHA-256 of all files in a folder, which tell what is damaged.

A manifest is written last, and removed before any of its files is changed: a folder without one is
not finished, or older than manifests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from featavg.files import DamagedError, is_file, open_ordinary, write_atomically
from featavg.seals import read_sealed_json, to_sealed_json

MANIFEST = "manifest.json"
_FORMAT = "featavg manifest 1"
_MOST_BYTES, _LARGEST_FILE = 1 << 26, 1 << 34
_NAME = re.compile(r"(?:[\w-][\w.-]*/)?[\w-][\w.-]*")  # in the folder, or in a subfolder


def write_manifest(folder: Path, own: re.Pattern[str], subfolders: Iterable[str] = ()) -> None:
    """Write the manifest of the files in a folder and in some of its subfolders.

    `own` matches the names of what featavg writes, such as ``seeds/0.npz``. Other files belong to
    the user, who may change them.
    """
    files = {}
    for place in (folder, *(folder / name for name in subfolders)):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            name = path.relative_to(folder).as_posix()
            if own.fullmatch(name) and is_file(path):
                with suppress(FileNotFoundError):  # another process may be at work here
                    files[name] = {"bytes": path.stat().st_size, "sha256": _sha256(path)}
    content = to_sealed_json({"format": _FORMAT, "files": files})
    write_atomically(folder / MANIFEST, content)


def remove_manifest(folder: Path) -> None:
    """Remove the manifest, if there is one, because files are about to change."""
    (folder / MANIFEST).unlink(missing_ok=True)


def damaged_files(folder: Path) -> dict[str, str] | None:
    """Return what is wrong with which files; None if the folder has no manifest.

    The manifest itself may be damaged; then nothing is known of the others.
    """
    path = folder / MANIFEST
    if not path.exists() and not path.is_symlink():
        return None
    try:
        about = read_sealed_json(path, most=_MOST_BYTES)
        if about.get("format") != _FORMAT or not isinstance(about.get("files"), dict):
            raise DamagedError("it has another format")
    except DamagedError as error:
        reason = str(error).removeprefix(f"{MANIFEST} ")
        return {MANIFEST: f"{reason}, so damage to the other files would not be noticed"}
    wrong = {name: _wrong(folder, name, entry) for name, entry in about["files"].items()}
    return {name: reason for name, reason in wrong.items() if reason}


def _wrong(folder: Path, name: str, entry: Any) -> str:
    """Return what is wrong with a file; nothing if it is as the manifest says."""
    path = folder / name
    if not _NAME.fullmatch(name) or path.parent.is_symlink() or not isinstance(entry, Mapping):
        return "is not a file of this folder"
    try:
        size = path.lstat().st_size
        if size != entry.get("bytes") or size > _LARGEST_FILE:
            return "does not have the size that manifest.json states"
        return "" if _sha256(path) == entry.get("sha256") else "does not have its checksum"
    except FileNotFoundError:
        return "is missing"
    except (OSError, DamagedError):
        return "cannot be read"


def _sha256(path: Path) -> str:
    with open_ordinary(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

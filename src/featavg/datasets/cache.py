"""The cache: one file for each data set or network, which contains its canonical form.

The size and the SHA-256 of the file are known in advance. It is written atomically, so that two
processes that write it at the same time leave one complete file. A data set whose SHA-256 is not
known in advance is followed by its own in the file, which tells a damaged file from a whole one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import numpy as np

from featavg.datasets.decode import Bytes
from featavg.datasets.read import check, read_at_most
from featavg.errors import InputError
from featavg.files import clear_leftovers, write_atomically

_ABANDONED_AFTER = 24 * 3600.0  # seconds
_SCRATCH = ".fetch-"


class Cacheable(Protocol):
    """What can be cached: a data set, or the weights of a network."""

    @property
    def name(self) -> str:
        """Its name, also that of the file."""

    @property
    def size(self) -> int:
        """The number of bytes of the canonical form."""

    @property
    def sha256(self) -> str | None:
        """The checksum of the canonical form; None if it is not known in advance."""


def cache_folder(kind: str = "datasets") -> Path:
    """Return the cache folder of the data sets, or of models, attacks or embeddings.

    It is in ``$FEATAVG_CACHE``, otherwise in ``featavg`` in ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    if own := os.environ.get("FEATAVG_CACHE"):
        return Path(own).absolute() / kind
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(shared):  # noqa: PTH117 - the standard says that a relative one is ignored
        return Path(shared) / "featavg" / kind
    try:
        return Path.home() / ".cache" / "featavg" / kind
    except RuntimeError:
        raise InputError(
            "FEATAVG_CACHE must name a folder because there is no home folder."
        ) from None


def cache_path(entry: Cacheable) -> Path:
    """Return the path of the cached file of a data set or network."""
    return cache_folder() / f"{entry.name}.bin"


def read_cached(entry: Cacheable) -> Bytes | None:
    """Return the cached canonical form, or None if there is none; refuse a corrupt file."""
    path, own = cache_path(entry), 0 if entry.sha256 else hashlib.sha256().digest_size
    try:
        content = memoryview(read_at_most(path, entry.size + own))
        body, seal = content[: len(content) - own], content[len(content) - own :]
        check(str(path), body, entry.size, entry.sha256 or seal.hex())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except InputError as error:
        raise InputError(f"{error} 'featavg data get {entry.name}' replaces it.") from None
    return np.frombuffer(body, dtype=np.uint8)


def write_cached(entry: Cacheable, canonical: Bytes) -> None:
    """Write the canonical form."""
    path, content = cache_path(entry), canonical.data
    if entry.sha256 is None:
        content = memoryview(bytes(content) + hashlib.sha256(content).digest())
    with explained_write_errors(path):
        write_atomically(path, content)


@contextmanager
def scratch_folder(needed: int) -> Iterator[Path]:
    """Create a temporary folder beside the cached files, with `needed` free bytes."""
    folder = cache_folder()
    with explained_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise InputError(
                f"{folder} must have {needed / 1e6:,.0f} MB free, and it has {free / 1e6:,.0f}; "
                "FEATAVG_CACHE can name another folder."
            )
        scratch = tempfile.mkdtemp(dir=folder, prefix=_SCRATCH)
    try:
        yield Path(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left: temporary files, and folders more than a day old."""
    clear_leftovers(folder)
    for path in folder.glob(f"{_SCRATCH}*"):
        with suppress(OSError):
            old = time.time() - path.lstat().st_mtime >= _ABANDONED_AFTER
            if old and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def explained_write_errors(path: Path) -> Iterator[None]:
    """Turn a failed write into an `InputError` that names the path and the variable to set."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; FEATAVG_CACHE can name another "
            "folder."
        ) from None

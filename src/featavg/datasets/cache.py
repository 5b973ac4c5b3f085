"""The cache: one file for each data set, the canonical form and nothing else.

There is no header to trust: the size and the SHA-256 of the whole file are known beforehand. It
appears by renaming, so two processes that write it at once leave one whole file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from featavg.datasets.catalogue import Dataset
from featavg.datasets.decode import Bytes
from featavg.datasets.read import check, read_at_most
from featavg.errors import InputError
from featavg.files import write_atomically

_ABANDONED_AFTER = 24 * 3600.0  # seconds


def cache_folder(kind: str = "datasets") -> Path:
    """Return the folder of the data sets, or of models, attacks or embeddings.

    It is in ``$FEATAVG_CACHE``, or else in ``featavg`` in ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    if own := os.environ.get("FEATAVG_CACHE"):
        return Path(own).absolute() / kind
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(shared):  # noqa: PTH117 - a relative one must be ignored, says the standard
        return Path(shared) / "featavg" / kind
    try:
        return Path.home() / ".cache" / "featavg" / kind
    except RuntimeError:
        raise InputError(
            "FEATAVG_CACHE must name a folder because there is no home folder."
        ) from None


def cache_path(dataset: Dataset) -> Path:
    """Return where a data set is, or would be."""
    return cache_folder() / f"{dataset.name}.bin"


def read_cached(dataset: Dataset) -> Bytes | None:
    """Return the canonical form, or None if it is not there; refuse it if a byte is wrong."""
    path = cache_path(dataset)
    if not path.exists():
        return None
    content = read_at_most(path, dataset.size)
    try:
        check(str(path), content, dataset.size, sha256=dataset.sha256)
    except InputError as error:
        raise InputError(f"{error} 'featavg data get {dataset.name}' replaces it.") from None
    return np.frombuffer(content, dtype=np.uint8)


def write_cached(dataset: Dataset, canonical: Bytes) -> Path:
    """Write the canonical form and return where."""
    path = cache_path(dataset)
    with _explained(path):
        write_atomically(path, canonical.data)
    return path


@contextmanager
def scratch_folder(needed: int) -> Iterator[Path]:
    """Make a folder beside the cached files, with room for `needed` bytes, and remove it after."""
    folder = cache_folder()
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise InputError(
                f"{folder} must have {needed / 1e6:,.0f} MB free, and it has {free / 1e6:,.0f}; "
                "FEATAVG_CACHE can name another folder."
            )
        scratch = tempfile.mkdtemp(dir=folder, prefix=".fetch-")
    try:
        yield Path(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove what processes that were killed have left behind, a day later."""
    for path in folder.glob(".*"):
        try:
            if time.time() - path.lstat().st_mtime < _ABANDONED_AFTER:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        except OSError:
            continue


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say of a write that fails where it was to go, and what can be done."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; FEATAVG_CACHE can name another "
            "folder."
        ) from None

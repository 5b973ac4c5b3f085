"""The places on this machine where data sets and weights are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from featavg.datasets.cache import Cacheable, cache_path, read_cached, write_cached
from featavg.datasets.decode import Bytes
from featavg.errors import InputError
from featavg.progress import ProgressReporter


@dataclass(frozen=True)
class Place:
    """The state and the source of a data set, or of weights, on this machine.

    ``state`` is ``cached`` (checked), ``found`` (in a folder or a package, checked when it is
    read), ``corrupt`` (`remark` names the file) or ``absent``; ``source`` is the source it came
    from, or can be fetched from.
    """

    name: str
    state: Literal["cached", "found", "corrupt", "absent"]
    source: str
    path: Path | None = None
    remark: str = ""


def data_folder(data_dir: str | Path | None) -> Path | None:
    """Return the user's own folder: `data_dir`, by default ``$FEATAVG_DATA``."""
    given = os.environ.get("FEATAVG_DATA") if data_dir is None else data_dir
    if not given:
        return None
    folder = Path(given)
    if not folder.is_dir():
        what = "FEATAVG_DATA" if data_dir is None else "data_dir"
        raise InputError(f"{what} must be a folder that exists; got {str(given)!r}.")
    return folder


def advice(inside: Sequence[str]) -> str:
    """Return where files can be stored by hand, as the second half of a sentence."""
    named = "set FEATAVG_DATA (or --data-dir of 'featavg data get') to a folder"
    return f"or {named} that has {' or '.join(inside)}"


def cached_place(entry: Cacheable, package: str) -> Place | None:
    """Return the place of the cached file of an entry, which is checked; None if there is none."""
    try:
        found = read_cached(entry)
    except InputError as error:
        return Place(entry.name, "corrupt", package, cache_path(entry), str(error))
    return None if found is None else Place(entry.name, "cached", package, cache_path(entry))


def bring(
    entry: Cacheable, make: Callable[[], tuple[str, Bytes]], *, anew: bool, progress: bool
) -> Place:
    """Write an entry to the cache, and return its place.

    Parameters
    ----------
    entry : Cacheable
        The data set, or the weights.
    make : callable
        Returns the name of its source, and its canonical form.
    anew : bool
        Whether to call `make` although the entry is cached.
    progress : bool
        Whether to report progress on standard error.
    """
    remark, cached = "", None
    try:
        cached = read_cached(entry)
    except InputError:
        remark = "the cached file was corrupt and has been replaced"
    if cached is not None and not anew:
        return Place(entry.name, "cached", "cache", cache_path(entry), "already cached")
    source, canonical = make()
    if cached is None:
        with ProgressReporter(f"{entry.name}: writing the cache", 1, enabled=progress) as reporter:
            write_cached(entry, canonical)
            reporter.advance()
    return Place(entry.name, "cached", source, cache_path(entry), remark)

"""The store of a sweep: Parquet files that appear whole or not at all.

A finished batch of runs is one file ``parts/<hash of its content>.parquet``. Nothing is ever
changed in place, so a crash leaves what was there, two processes cannot disturb each other, and a
file whose content does not have the hash in its name is noticed, set aside and its runs done again.
``results.parquet`` is all of them in one table, without times: the same bytes however often the
sweep was interrupted. ``design.json`` ends with its own checksum, and ``manifest.json``, which is
written last, has those of all files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featavg.errors import InputError
from featavg.files import (
    DamagedError,
    clear_leftovers,
    discard,
    read_bytes,
    warn_of_damage,
    write_atomically,
)
from featavg.lab.sweeps.design import Design, Job
from featavg.manifest import damaged_files, remove_manifest, write_manifest
from featavg.parquet_files import read_parquet
from featavg.seals import read_sealed_json, to_sealed_json

if TYPE_CHECKING:
    import pyarrow as pa

# A batch has at most a few hundred runs.
_LARGEST_PART, _LARGEST_DESIGN, _MOST_VALUES = 1 << 26, 1 << 24, 1_000_000
_ABOUT = {"id": str, "seed": int, "status": str, "error": str, "source": str, "seconds": float}
DONE, FAILED, _OUTDATED = "done", "failed", "outdated"
_OWN_FILES = re.compile(r"design\.json|results\.parquet|parts/[0-9a-f]{32}\.parquet")
Row = dict[str, Any]


@dataclass(frozen=True)
class Tally:
    """The numbers of runs that are done, failed, missing, and done by other source code."""

    done: int
    failed: int
    missing: int
    outdated: int
    corrupt: tuple[str, ...] = ()


@dataclass
class Store:
    """The folder of one sweep.

    Parameters
    ----------
    path : path
        The folder.
    source : str
        The hash of the code whose results count, see `featavg.lab.source`; results of other code
        stay in their parts and are not used.
    """

    path: Path
    source: str
    rows: dict[str, Row] = field(default_factory=dict, init=False)
    corrupt: list[str] = field(default_factory=list, init=False)
    _seen: set[str] = field(default_factory=set, init=False)
    _outdated: set[str] = field(default_factory=set, init=False)

    def open(self, design: Design) -> None:
        """Make the folder for a design, or check that it is the folder of this design.

        What killed processes left behind is removed, and damaged files are named.
        """
        about = to_sealed_json(design.describe())
        try:
            (self.path / "parts").mkdir(parents=True, exist_ok=True)
            for folder in (self.path, self.path / "parts"):
                clear_leftovers(folder)
            self.name_damage()
            found = self._design()
            if found is None:
                write_atomically(self.path / "design.json", about)
            elif to_sealed_json(found) != about:
                raise InputError(
                    f"out must be the folder of this sweep, and {self.path} holds another; "
                    "name another folder."
                )
        except OSError as error:
            raise InputError(
                f"out must be a folder that can be written to; got {str(self.path)!r} "
                f"({error.strerror})."
            ) from None

    def _design(self) -> dict[str, Any] | None:
        """Return the design that is saved; None if there is none, or a damaged one is set aside."""
        path = self.path / "design.json"
        try:
            return read_design(self.path) if path.exists() else None
        except DamagedError as error:
            discard(path, error, "it is written again")
            return None

    def name_damage(self) -> None:
        """Warn of files that are not as the manifest says; other methods name the rest."""
        for name, reason in (damaged_files(self.path) or {}).items():
            path = self.path / name
            if not name.startswith("parts/") and name != "design.json":
                warn_of_damage(f"{path} {reason}; it is written again at the end of the sweep.")
            elif not path.exists():
                warn_of_damage(f"{path} {reason}, and what it held is done again.")

    def refresh(self) -> None:
        """Read the parts that were finished since the last call, also by other processes."""
        folder = self.path / "parts"
        names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        for name in names:
            if name in self._seen or not name.endswith(".parquet") or name.startswith("."):
                continue
            self._seen.add(name)
            try:
                self._add(_read(folder / name))
            except DamagedError as error:
                self.corrupt.append(name)
                with contextlib.suppress(OSError):  # the store may be read-only
                    remove_manifest(self.path)
                discard(folder / name, error, "its runs count as missing")

    def add(self, rows: Sequence[Row]) -> None:
        """Save finished runs: when this returns they are on the disk."""
        content = _bytes(_table(rows))
        name = f"{hashlib.sha256(content).hexdigest()[:32]}.parquet"
        write_atomically(self.path / "parts" / name, content)
        self._seen.add(name)
        self._add(rows)

    def _add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row["source"] != self.source:
                self._outdated.add(row["id"])
                continue
            known = self.rows.get(row["id"])
            if known is None or known["status"] == FAILED:  # done is final, a failure is not
                self.rows[row["id"]] = row

    def status(self, job: Job) -> str | None:
        """Return whether a run is done or failed; None if it is missing."""
        row = self.rows.get(job.id)
        return None if row is None else str(row["status"])

    def tally(self, design: Design) -> Tally:
        """Return the numbers of runs in each state."""
        states = Counter(map(self._state, design.ids()))
        done, failed, outdated = states[DONE], states[FAILED], states[_OUTDATED]
        missing = states.total() - done - failed
        return Tally(done, failed, missing, outdated, tuple(self.corrupt))

    def _state(self, id: str) -> str:  # noqa: A002
        if (row := self.rows.get(id)) is not None:
            return str(row["status"])
        return _OUTDATED if id in self._outdated else "missing"

    def finished(self, jobs: Sequence[Job]) -> list[Row]:
        """Return the finished runs in the order of the design."""
        return [self.rows[job.id] for job in jobs if job.id in self.rows]

    def table(self, jobs: Sequence[Job]) -> pa.Table:
        """Return the finished runs, a row for each, without their times, which always differ."""
        table = _table(self.finished(jobs))
        return table.drop_columns([name for name in table.column_names if name == "seconds"])

    def write_table(self, jobs: Sequence[Job]) -> pa.Table:
        """Write ``results.parquet`` and the manifest, and return the table."""
        table = self.table(jobs)
        remove_manifest(self.path)
        write_atomically(self.path / "results.parquet", _bytes(table))
        write_manifest(self.path, _OWN_FILES, ["parts"])
        return table

    @contextlib.contextmanager
    def opened(self, design: Design) -> Iterator[bool]:
        """Make or read the folder, and give whether no other process is working on it.

        The lock is released when the process ends, also by kill -9.
        """
        self.open(design)
        self.refresh()
        with (self.path / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True


def row_of(job: Job, source: str, seconds: float, **outcome: Any) -> Row:
    """Return a finished run as a row."""
    about = {"id": job.id, "seed": job.seed, "source": source, "seconds": seconds}
    return {**about, **job.varied, "status": DONE, "error": "", **outcome}


def _table(rows: Sequence[Row]) -> pa.Table:
    import pyarrow as pa

    columns = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in columns})


def _bytes(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _read(path: Path) -> list[Row]:
    """Return the rows of a part, or refuse one whose content does not have the hash in its name."""
    content = read_bytes(path, most=_LARGEST_PART)
    if hashlib.sha256(content).hexdigest()[:32] != path.stem:
        raise DamagedError("it does not have its checksum")
    names, columns = read_parquet(
        io.BytesIO(content), most_values=_MOST_VALUES, most_bytes=_LARGEST_PART
    )
    kinds = dict(zip(names, columns, strict=True))
    if len(kinds) < len(names) or not all(
        name in kinds and all(isinstance(value, kind) for value in kinds[name])
        for name, kind in _ABOUT.items()
    ):
        raise DamagedError("it has other columns than a sweep writes")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def read_design(folder: Path) -> dict[str, Any]:
    """Return what `Design.describe` said of the sweep in a folder."""
    return read_sealed_json(folder / "design.json", most=_LARGEST_DESIGN)

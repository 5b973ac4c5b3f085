"""The folder that a run leaves behind. Every file appears whole or not at all."""

from __future__ import annotations

import csv
import io
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_info

from featavg.array_files import Arrays, read_arrays, write_arrays
from featavg.errors import InputError
from featavg.files import (
    DamagedError,
    can_hold_files,
    clear_leftovers,
    discard,
    to_json,
    warn_of_damage,
    write_atomically,
)
from featavg.manifest import damaged_files, remove_manifest, write_manifest
from featavg.reading import read_as
from featavg.seals import read_sealed_json, to_sealed_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VERSIONS_OF = ("featavg", "numpy", "scipy", "matplotlib", "torch")
_OWN_FILES = re.compile(
    r"(parameters|provenance|summary|views)\.json|(results|scalars)\.csv|figure\.(png|svg)"
    r"|seeds/[0-9]+\.(json|npz)"
)
_MOST_ARRAYS, _MOST_JSON = 1 << 32, 1_000_000


@cache
def versions() -> dict[str, str]:
    """Return the versions and the number of threads that results depend on.

    Sums of floating-point numbers depend on how many threads share them, and a long training
    amplifies the difference.
    """
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in _VERSIONS_OF if find_spec(name) is not None},
        "threads": str(max((pool["num_threads"] for pool in threadpool_info()), default=1)),
    }


@dataclass(frozen=True)
class SeedRecord:
    """The content of ``seeds/N.json``: how a seed was measured, and the checksum of its arrays.

    `run` is the hash of the experiment and its parameters, see `Experiment.key`.
    """

    seed: int
    seconds: float
    versions: Mapping[str, str]
    arrays: str
    run: str


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run.

    ``parameters.json`` says what was run, ``seeds/N.npz`` holds the measurements of seed N and
    ``N.json`` its time and versions, ``results.csv`` and ``scalars.csv`` hold all measurements as
    tables, ``summary.json`` the expectations, ``figure.png`` and ``figure.svg`` the picture, and
    ``views.json``, if the experiment declares views, the interactive figures of the report.
    ``manifest.json`` is written last and has the checksums of all of them.

    Attributes
    ----------
    path : path
        The folder.
    source : str
        The hash of the code whose results count, see `featavg.lab.source`.
    key : str
        The hash of the experiment and the parameters whose results count.
    """

    path: Path
    source: str
    key: str

    @property
    def versions(self) -> dict[str, str]:
        """What results depend on: versions, threads and code."""
        return versions() | {"source": self.source}

    def clear(self) -> None:
        """Remove what killed processes left behind, and name files that are damaged.

        Damaged measurements are set aside; all other files are written again at the end of a run.
        """
        for folder in (self.path, self.path / "seeds"):
            clear_leftovers(folder)
        for name, reason in (damaged_files(self.path) or {}).items():
            if name.startswith("seeds/"):
                self._discard(self.path / name, reason)
            else:
                warn_of_damage(f"{self.path / name} {reason}; it is written again.")

    def save_seed(self, seed: int, measurements: Mapping[str, Any], seconds: float) -> None:
        """Save the measurements of a seed; the JSON is written last and marks a finished seed."""
        remove_manifest(self.path)
        self._seed(seed, "json").unlink(missing_ok=True)
        arrays = write_arrays(self._seed(seed, "npz"), measurements)
        record = SeedRecord(seed, seconds, self.versions, arrays, self.key)
        write_atomically(self._seed(seed, "json"), to_sealed_json(vars(record)))

    def load_seed(self, seed: int) -> tuple[Arrays, float] | None:
        """Return the measurements of a seed and their time, or None if it has to be run.

        Results of other code do not count. A damaged file is named and set aside.
        """
        path = self._seed(seed, "json")
        try:
            if not path.exists():
                return None
            record = read_as(SeedRecord, path.name, read_sealed_json(path, most=_MOST_JSON))
            if record.seed != seed:
                raise DamagedError(f"{path.name} is of seed {record.seed}")
            if record.run != self.key:
                raise DamagedError(f"{path.name} is of other parameters")
            if record.versions.get("source") != self.source:
                return None
            path = self._seed(seed, "npz")
            arrays, _ = read_arrays(path, most=_MOST_ARRAYS, checksum=record.arrays)
            return arrays, record.seconds
        except InputError as error:
            self._discard(path, str(error))
            return None

    def _discard(self, path: Path, reason: str) -> None:
        """Set a damaged file of a seed aside; without its JSON the seed is not finished."""
        remove_manifest(self.path)
        discard(path, reason, "its seed has to be measured again")
        path.with_suffix(".json").unlink(missing_ok=True)

    def save_json(self, name: str, value: Any, *, indent: int | None = 2) -> None:
        """Save a value as JSON, on one line if `indent` is None."""
        self._write(name, to_json(value, indent=indent))

    def save_table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Save a table as CSV."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        self._write(name, buffer.getvalue().encode())

    def save_figure(self, figure: Figure) -> None:
        """Save a figure as PNG and SVG."""
        from featavg.drawing.style import rendered

        for kind in ("png", "svg"):
            self._write(f"figure.{kind}", rendered(figure, kind))

    def finish(self) -> None:
        """Write the manifest, when all other files are there."""
        write_manifest(self.path, _OWN_FILES, ["seeds"])

    def _write(self, name: str, content: bytes) -> None:
        remove_manifest(self.path)
        write_atomically(self.path / name, content)

    def _seed(self, seed: int, ending: str) -> Path:
        return self.path / "seeds" / f"{seed}.{ending}"


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to before any work is done, writing nothing."""
    if not can_hold_files(folder):
        raise InputError(f"out must be a folder that can be written to; got {str(folder)!r}.")

"""The folder that a run leaves behind. Every file appears whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
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
from featavg.files import can_hold_files, read_json, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VERSIONS_OF = ("featavg", "numpy", "scipy", "matplotlib", "torch")
_MOST_ARRAYS, _MOST_JSON = 1 << 34, 1_000_000


def to_json(value: Any, *, indent: int | None = 2) -> bytes:
    """Return a value as readable JSON; numbers that JSON does not have become null."""
    text = json.dumps(_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
class RunFolder:
    """The folder of one run.

    ``parameters.json`` says what was run, ``seeds/N.npz`` holds the measurements of seed N and
    ``N.json`` its time and versions, ``results.csv`` and ``scalars.csv`` hold all measurements as
    tables, ``summary.json`` the expectations, ``figure.png`` and ``figure.svg`` the picture, and
    ``views.json``, if the experiment declares views, the interactive figures of the report.

    Attributes
    ----------
    path : path
        The folder.
    source : str
        The hash of the code whose results count, see `featavg.lab.source`.
    """

    path: Path
    source: str

    @property
    def versions(self) -> dict[str, str]:
        """What results depend on: versions, threads and code."""
        return versions() | {"source": self.source}

    def save_seed(self, seed: int, measurements: Mapping[str, Any], seconds: float) -> None:
        """Save the measurements of a seed; the npz is written last, so it marks a finished seed."""
        about = {"seed": seed, "seconds": seconds, "versions": self.versions}
        write_atomically(self._seed(seed, "json"), to_json(about))
        write_arrays(self._seed(seed, "npz"), measurements)

    def load_seed(self, seed: int) -> tuple[Arrays, float] | None:
        """Return the measurements of a seed and their time, or None if it has to be run.

        Results of other code, and files that cannot be read, do not count.
        """
        try:
            about = read_json(self._seed(seed, "json"), most=_MOST_JSON)
            if about["versions"]["source"] != self.source:
                return None
            arrays, _ = read_arrays(self._seed(seed, "npz"), most=_MOST_ARRAYS)
            return arrays, float(about["seconds"])
        except (ValueError, KeyError, TypeError):
            return None

    def save_json(self, name: str, value: Any, *, indent: int | None = 2) -> None:
        """Save a value as JSON, on one line if `indent` is None."""
        write_atomically(self.path / name, to_json(value, indent=indent))

    def save_table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Save a table as CSV."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        write_atomically(self.path / name, buffer.getvalue().encode())

    def save_figure(self, figure: Figure) -> None:
        """Save a figure as PNG and SVG."""
        from featavg.drawing.style import rendered

        for kind in ("png", "svg"):
            write_atomically(self.path / f"figure.{kind}", rendered(figure, kind))

    def _seed(self, seed: int, ending: str) -> Path:
        return self.path / "seeds" / f"{seed}.{ending}"


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to before any work is done, writing nothing."""
    if not can_hold_files(folder):
        raise InputError(f"out must be a folder that can be written to; got {folder}.")

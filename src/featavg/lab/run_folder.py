"""The folder that a run leaves behind. Every file appears whole or not at all."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import platform
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_info

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.files import write_atomically as write_atomically
from featavg.lab.experiment import Measurements, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VERSIONS_OF = ("featavg", "numpy", "scipy", "matplotlib", "torch")


def to_json(value: Any, *, indent: int | None = 2) -> bytes:
    """Return a value as readable JSON; what JSON has no number for becomes null."""
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
    """Return what results depend on: versions, threads and a hash of the package's own source.

    Sums of floating-point numbers depend on how many threads share them, and a long training
    makes more of that.
    """
    source = hashlib.sha256()
    package = Path(__file__).parent.parent
    for path in sorted(package.rglob("*.py")):
        source.update(path.relative_to(package).as_posix().encode())
        source.update(path.read_bytes())
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in _VERSIONS_OF if _is_installed(name)},
        "threads": str(max((pool["num_threads"] for pool in threadpool_info()), default=1)),
        "source": source.hexdigest()[:12],
    }


def _is_installed(name: str) -> bool:
    return find_spec(name) is not None


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run.

    ``parameters.json`` says what was run, ``seeds/N.npz`` what seed N measured (and ``N.json``
    with which versions, in what time), ``results.csv`` and ``scalars.csv`` hold it all as tables,
    ``summary.json`` the expectations, ``figure.png`` and ``figure.svg`` the picture, and
    ``views.json``, where the experiment declares views, what a reader of the report can play with.
    """

    path: Path

    def check_writable(self) -> None:
        """Refuse a place that cannot be written to before any work is done, writing nothing."""
        existing = next(p for p in (self.path, *self.path.absolute().parents) if p.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            raise InputError(f"out must be a folder that can be written to; got {existing}.")

    def save_seed(self, seed: int, measurements: Measurements, seconds: float) -> None:
        """Save what a seed measured; the npz comes last, so where it is, the seed is done."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **dict(measurements))
        about = {"seed": seed, "seconds": seconds, "versions": versions()}
        write_atomically(self._seed(seed, "json"), to_json(about))
        write_atomically(self._seed(seed, "npz"), buffer.getvalue())

    def load_seed(self, seed: int) -> tuple[dict[str, FloatArray], float] | None:
        """Return the measurements of a seed and their time, or None if it has to be run.

        Results of other source code, and files that cannot be read, do not count.
        """
        try:
            about = json.loads(self._seed(seed, "json").read_text(encoding="utf-8"))
            content = io.BytesIO(self._seed(seed, "npz").read_bytes())
            with np.load(content, allow_pickle=False) as arrays:
                measurements = {name: arrays[name] for name in arrays.files}
            if about["versions"]["source"] != versions()["source"]:
                return None
            return measurements, float(about["seconds"])
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            return None

    def save_json(self, name: str, value: Any, *, indent: int | None = 2) -> None:
        """Save a value as JSON, on one line if `indent` is None."""
        write_atomically(self.path / name, to_json(value, indent=indent))

    def save_table(self, name: str, table: Table) -> None:
        """Save a table as CSV."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)
        write_atomically(self.path / name, buffer.getvalue().encode())

    def save_figure(self, figure: Figure) -> list[Path]:
        """Save a figure as PNG and SVG and return the two paths."""
        from featavg.plot.style import rendered

        paths = [self.path / f"figure.{kind}" for kind in ("png", "svg")]
        for path in paths:
            write_atomically(path, rendered(figure, path.suffix[1:]))
        return paths

    def _seed(self, seed: int, ending: str) -> Path:
        return self.path / "seeds" / f"{seed}.{ending}"


def scalar_table(per_seed: Sequence[Measurements]) -> Table:
    """Return all quantities that are single numbers, a row for each seed."""
    names = [name for name, value in per_seed[0].items() if np.ndim(value) == 0]
    rows = [(seed, *(float(m[name]) for name in names)) for seed, m in enumerate(per_seed)]
    return Table(("seed", *names), rows)

"""Experiments that are made of the runs of a sweep."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from featavg.errors import InputError
from featavg.lab.experiment import Experiment, Measured, as_arrays
from featavg.lab.run_folder import RunFolder
from featavg.lab.source import code_hash
from featavg.lab.sweeps.design import Design
from featavg.lab.sweeps.engine import require, sweep
from featavg.lab.sweeps.store import Row
from featavg.lab.tables import Measurements

_SECONDS_BETWEEN_PICTURES = 10.0


def _no_measure(*_: Any) -> Measurements:
    raise InputError("an experiment made of a sweep cannot measure a single seed.")


@dataclass(frozen=True, kw_only=True)
class SweepExperiment(Experiment):
    """The declaration of an experiment that is made of the runs of another one.

    Attributes
    ----------
    design : callable
        ``design(parameters, seeds)`` returns the `Design` of the sweep.
    collect : callable
        ``collect(parameters, rows)`` returns the measurements of one seed from the rows of its runs
        that are finished.
    """

    has_own_axes = True

    design: Callable[[Any, int], Design]
    collect: Callable[[Any, list[Row]], Measurements]
    extra: str | None = "data"
    measure: Callable[[Any, int], Measurements] = field(default=_no_measure, init=False, repr=False)

    @property
    def source(self) -> str:
        """The hash of the code that measures, see `featavg.lab.source`."""
        return code_hash(self.design, self.collect, type(self.parameters))

    def measure_seeds(
        self,
        parameters: Any,
        seeds: int,
        folder: RunFolder,
        *,
        workers: int,
        fresh: bool,
        progress: bool,
    ) -> Measured:
        """Run what is missing of the sweep, and redraw the picture while it fills in."""
        require()  # before anything is written
        design = self.design(parameters, seeds)
        started = drawn = time.perf_counter()

        def collected(rows: list[Row]) -> Measured:
            parts = [[row for row in rows if row["seed"] == seed] for seed in range(seeds)]
            per_seed = [as_arrays(self.collect(parameters, part)) for part in parts]
            return Measured(per_seed, time.perf_counter() - started)

        def draw(rows: list[Row]) -> None:
            nonlocal drawn
            if time.perf_counter() - drawn > _SECONDS_BETWEEN_PICTURES:
                folder.save_figure(self.figure(parameters, collected(rows).results))
                drawn = time.perf_counter()

        if fresh:
            shutil.rmtree(folder.path / "sweep", ignore_errors=True)
        folder.save_json("parameters.json", self.describe(parameters))
        table = sweep(design, folder.path / "sweep", workers=workers, progress=progress, watch=draw)
        return collected(table.to_pylist())

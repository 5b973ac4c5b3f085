"""Run an experiment: seed by seed, keeping what is finished."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.lab.experiment import Experiment, Outcome, Results
from featavg.lab.run_folder import RunFolder, scalar_table, versions
from featavg.plot.views import plain
from featavg.progress import ProgressReporter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from featavg.lab.sweeps.design import Design

_SECONDS_BETWEEN_PICTURES = 10.0


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: where it is, what it measured, and whether the expectations hold.

    `seconds` is the time that measuring took, now or before; `reused` says how many seeds were
    there already.
    """

    experiment: Experiment
    parameters: Any
    folder: Path
    results: Results
    outcomes: tuple[Outcome, ...]
    seconds: float
    reused: int

    @property
    def holds(self) -> bool:
        """Whether every expectation holds."""
        return all(outcome.holds for outcome in self.outcomes)

    @property
    def conclusion(self) -> str:
        """The result in words; empty if the experiment has none."""
        conclude = self.experiment.conclude
        return "" if conclude is None else conclude(self.parameters, self.results)

    def summary(self) -> dict[str, Any]:
        """Return what `summary.json` holds: all of it follows from parameters and seeds."""
        return self.experiment.describe(self.parameters) | {
            "seeds": len(next(iter(self.results.values()))),
            "holds": self.holds,
            "conclusion": self.conclusion,
            "expectations": [outcome.summary() for outcome in self.outcomes],
        }


def run(
    experiment: Experiment,
    parameters: Any | None = None,
    *,
    seeds: int | None = None,
    out: str | Path = "runs",
    fresh: bool = False,
    progress: bool = False,
) -> Run:
    """Run an experiment, or what is missing of it, and write its folder.

    Paper: none, an extension.

    Each seed is saved as soon as it is finished, so a run that was stopped continues where it
    was. The folder is ``out/<id>/<hash of the parameters>``.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    parameters : dataclass, optional
        The paper's setting by default.
    seeds : int, optional
        How many seeds, numbered from 0.
    out : path
        The folder for all runs.
    fresh : bool
        Whether to run again what is already there.
    progress : bool
        Whether to report progress on standard error.
    """
    parameters = experiment.parameters if parameters is None else parameters
    seeds = experiment.seeds if seeds is None else checks.count("seeds", seeds)
    folder = RunFolder(Path(out) / experiment.id / experiment.key(parameters))
    folder.check_writable()

    if experiment.design is not None:
        design = experiment.design(parameters, seeds)
        if fresh:
            shutil.rmtree(folder.path / "sweep", ignore_errors=True)
        swept = _swept(experiment, parameters, design, folder, progress)
        return _finish(experiment, parameters, folder, *swept)
    per_seed, seconds, reused = [], 0.0, 0
    with ProgressReporter(experiment.id, seeds, enabled=progress) as reporter:
        for seed in range(seeds):
            saved = None if fresh else folder.load_seed(seed)
            reused += saved is not None
            if saved is None:
                start = time.perf_counter()
                measured = experiment.measure(parameters, seed)
                elapsed = time.perf_counter() - start
                folder.save_json("parameters.json", experiment.describe(parameters))
                folder.save_seed(seed, measured, elapsed)
                saved = {name: np.asarray(value) for name, value in measured.items()}, elapsed
            per_seed.append(saved[0])
            seconds += saved[1]
            reporter.advance()

    return _finish(experiment, parameters, folder, per_seed, seconds, reused)


def _finish(
    experiment: Experiment,
    parameters: Any,
    folder: RunFolder,
    per_seed: list[dict[str, FloatArray]],
    seconds: float,
    reused: int,
) -> Run:
    """Judge what was measured, and write everything that follows from it."""
    results = {name: np.stack([m[name] for m in per_seed]) for name in per_seed[0]}
    outcomes = tuple(e.judge(results) for e in experiment.expects(parameters))
    finished = Run(experiment, parameters, folder.path, results, outcomes, seconds, reused)
    folder.save_table("scalars.csv", scalar_table(per_seed))
    folder.save_table("results.csv", experiment.table(parameters, results))
    if experiment.views is not None:
        shown = plain(experiment.views(parameters, results))
        folder.save_json("views.json", shown, indent=None)
    folder.save_json("summary.json", finished.summary())
    folder.save_json("provenance.json", {"versions": versions(), "seconds": seconds})
    folder.save_figure(_figure(experiment, parameters, results))
    return finished


def _figure(experiment: Experiment, parameters: Any, results: Results) -> Figure:
    """Return the figure: the experiment's own, or its views as `featavg.plot` draws them."""
    from featavg.plot import draw

    if experiment.plot is not None:
        return experiment.plot(parameters, results)
    return draw.figure([] if experiment.views is None else experiment.views(parameters, results))


def _swept(
    experiment: Experiment, parameters: Any, design: Design, folder: RunFolder, progress: bool
) -> tuple[list[dict[str, FloatArray]], float, int]:
    """Measure by a sweep, drawing the picture as it fills in."""
    from featavg.lab.sweeps import Progress, sweep

    started = drawn = time.perf_counter()

    def per_seed(rows: list[dict[str, Any]]) -> list[dict[str, FloatArray]]:
        parts = [[row for row in rows if row["seed"] == seed] for seed in range(design.seeds)]
        measured = [experiment.measure(parameters, part) for part in parts]
        return [{name: np.asarray(value) for name, value in m.items()} for m in measured]

    def draw(now: Progress) -> None:
        nonlocal drawn
        if time.perf_counter() - drawn > _SECONDS_BETWEEN_PICTURES:
            measured = per_seed([now.store.rows[j.id] for j in now.jobs if j.id in now.store.rows])
            results = {name: np.stack([m[name] for m in measured]) for name in measured[0]}
            folder.save_figure(_figure(experiment, parameters, results))
            drawn = time.perf_counter()

    folder.save_json("parameters.json", experiment.describe(parameters))
    found = sweep(design, folder.path / "sweep", progress=progress, watch=draw)
    return per_seed(found.to_pylist()), time.perf_counter() - started, 0

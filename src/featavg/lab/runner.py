"""Run an experiment and write its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from featavg import checks
from featavg.drawing.views import plain
from featavg.lab.expectations import Outcome
from featavg.lab.experiment import Experiment, Measured
from featavg.lab.run_folder import RunFolder, check_writable
from featavg.lab.tables import Results


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: its folder, its measurements, and whether the expectations hold.

    `seconds` is the time that measuring took, now or before; `reused` is the number of seeds that
    were saved before.
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
        """Return the content of `summary.json`, which follows from parameters and seeds alone."""
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
    workers: int = 1,
    fresh: bool = False,
    progress: bool = False,
) -> Run:
    """Run an experiment, or the seeds of it that are missing, and write its folder.

    Paper: none, an extension.

    Each seed is saved as soon as it is finished, so a run that was stopped continues where it
    was. A saved seed counts as long as the code that measured it is the same, see
    `featavg.lab.source`. The folder is ``out/<id>/<hash of the parameters>``. Files in it that are
    damaged are named in a `DamagedFileWarning` and made again.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    parameters : dataclass, optional
        The paper's setting by default.
    seeds : int, optional
        How many seeds, numbered from 0.
    out : path
        The folder for all runs.
    workers : int
        How many seeds are measured at once, in processes of their own; the numbers do not depend
        on it.
    fresh : bool
        Whether to measure again what is saved.
    progress : bool
        Whether to report progress on standard error.
    """
    parameters = experiment.parameters if parameters is None else parameters
    seeds = experiment.seeds if seeds is None else checks.count("seeds", seeds)
    workers = checks.count("workers", workers)
    key = experiment.key(parameters)
    path = Path(out) / experiment.id / key
    check_writable(path)
    folder = RunFolder(path, experiment.source, key)
    folder.clear()
    measured = experiment.measure_seeds(
        parameters, seeds, folder, workers=workers, fresh=fresh, progress=progress
    )
    return _finish(experiment, parameters, folder, measured)


def _finish(experiment: Experiment, parameters: Any, folder: RunFolder, measured: Measured) -> Run:
    """Judge the measurements, and write everything that follows from them."""
    results, seconds = measured.results, measured.seconds
    outcomes = tuple(e.judge(results) for e in experiment.expectations(parameters))
    finished = Run(experiment, parameters, folder.path, results, outcomes, seconds, measured.reused)
    folder.save_json("parameters.json", experiment.describe(parameters))
    for name, table in (
        ("scalars.csv", measured.scalars),
        ("results.csv", experiment.tidy(parameters, results)),
    ):
        folder.save_table(name, table.columns, table.rows)
    if experiment.views is not None:
        shown = plain(experiment.shown(parameters, results))
        folder.save_json("views.json", shown, indent=None)
    folder.save_json("summary.json", finished.summary())
    folder.save_json("provenance.json", {"versions": folder.versions, "seconds": seconds})
    folder.save_figure(experiment.figure(parameters, results))
    folder.finish()
    return finished

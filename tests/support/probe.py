"""An experiment that counts how often it is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from featavg.experiments import (
    Expectation,
    Experiment,
    Table,
    parameter,
)


@dataclass(frozen=True)
class Settings:
    size: int = parameter(3, "how many numbers")


class Probe:
    """A small experiment that counts how often it is measured and can be told to break."""

    def __init__(self):
        self.measured: list[int] = []
        self.breaks_at: int | None = None
        self.experiment = Experiment(
            id="probe",
            title="A probe",
            paper="none",
            parameters=Settings(),
            quick=Settings(size=2),
            measure=self.measure,
            table=self.table,
            plot=self.plot,
            expects=lambda p: [Expectation("the mean", "mean", -1, 1, "0")],
            seeds=3,
        )

    def measure(self, parameters, seed):
        if seed == self.breaks_at:
            raise KeyboardInterrupt
        self.measured.append(seed)
        numbers = np.random.default_rng(seed).random(parameters.size)
        return {"numbers": numbers, "mean": numbers.mean()}

    def table(self, parameters, results):
        rows = [(s, i, float(v)) for (s, i), v in np.ndenumerate(results["numbers"])]
        return Table(("seed", "index", "number"), rows)

    def plot(self, parameters, results):
        figure = Figure()
        figure.subplots().plot(results["numbers"].T)
        return figure


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that has to be the same from run to run: all but the times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name not in ("provenance.json", "manifest.json")
        and (path.parent.name != "seeds" or path.suffix == ".npz")
    }

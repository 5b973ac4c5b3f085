"""An experiment as somebody else would write it, and the same text to put into another file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from featavg.experiments import Expectation, Experiment, Table, parameter


@dataclass(frozen=True)
class Parameters:
    size: int = parameter(3, "how many numbers, in %")
    shift: float = parameter(0.0, "what is added")


def measure(parameters, seed):
    numbers = np.random.default_rng(seed).random(parameters.size) + parameters.shift
    return {"numbers": numbers, "mean": numbers.mean()}


def expects(parameters):
    return [Expectation("the mean", "mean", 0, 1)]


def table(parameters, results):
    return Table(("seed", "mean"), [(s, float(m)) for s, m in enumerate(results["mean"])])


def plot(parameters, results):
    return Figure()


EXPERIMENT = Experiment(
    id="mine",
    title="An experiment of somebody else",
    paper="none, an extension",
    parameters=Parameters(),
    quick=Parameters(size=2),
    measure=measure,
    expects=expects,
    table=table,
    plot=plot,
    seeds=2,
)
TEXT = Path(__file__).read_text(encoding="utf-8").partition("TEXT =")[0]

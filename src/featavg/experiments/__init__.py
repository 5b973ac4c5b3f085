"""The experiments, each declared in a file of its own."""

from __future__ import annotations

from featavg.experiments import (
    ablations,
    averaging,
    figure1,
    figure2,
    figure2_embeddings,
    figure3,
    figure3_images,
    figure10,
    ledger,
    margin_mnist,
    margins,
    minvidal,
    phase,
    scaling,
    theorem,
)
from featavg.lab.expectations import Expectation, Outcome
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import parameter
from featavg.lab.runner import Run, run
from featavg.lab.tables import Results, Table

EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (
        figure1.EXPERIMENT,
        figure2.EXPERIMENT,
        figure2_embeddings.EXPERIMENT,
        figure3.EXPERIMENT,
        *figure3_images.EXPERIMENTS,
        *ablations.EXPERIMENTS,
        figure10.EXPERIMENT,
        averaging.EXPERIMENT,
        ledger.EXPERIMENT,
        theorem.EXPERIMENT,
        scaling.EXPERIMENT,
        margins.EXPERIMENT,
        margin_mnist.EXPERIMENT,
        minvidal.EXPERIMENT,
        *phase.EXPERIMENTS,
    )
}
"""Every experiment by its id, in the order of the paper."""

__all__ = [
    "EXPERIMENTS",
    "Expectation",
    "Experiment",
    "Outcome",
    "Results",
    "Run",
    "Table",
    "parameter",
    "run",
]

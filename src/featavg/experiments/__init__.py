"""The experiments, each declared in a file of its own."""

from __future__ import annotations

from featavg.experiments import (
    ablations,
    averaging,
    beyond,
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
from featavg.experiments.fine_labels import losses as fine_labels_losses
from featavg.experiments.fine_labels import recipes as fine_labels_recipes
from featavg.experiments.fine_labels import shares as fine_labels_shares
from featavg.lab.expectations import Expectation, Outcome
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import parameter
from featavg.lab.runner import Run, run
from featavg.lab.tables import Results, Table

_IN_ORDER = (
    *(figure1, figure2, figure2_embeddings, figure3, figure3_images, ablations, figure10),
    *(averaging, ledger, theorem, scaling, margins, margin_mnist, minvidal, phase),
    *beyond.MODULES,
    *(fine_labels_shares, fine_labels_recipes, fine_labels_losses),
)
EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment
    for module in _IN_ORDER
    for experiment in getattr(module, "EXPERIMENTS", None) or [module.EXPERIMENT]
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

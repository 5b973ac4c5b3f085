"""Figure 2 (a, b): what the neurons learn from coarse and from fine labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from featavg.arrays import FloatArray
from featavg.drawing.common import cosine_maps
from featavg.drawing.views import Matrix, View
from featavg.lab.expectations import Expectation, at_least, at_most
from featavg.lab.experiment import Experiment
from featavg.lab.setting import MatrixSetting
from featavg.lab.tables import Measurements, Results, Table, tidy_rows
from featavg.measures.alignment import averaging_index, clean_accuracy, equivalent_alignment
from featavg.training.trajectory import Trajectory

# How many times of training are kept, evenly spaced in log-time, so that one can watch.
_TIMES = 20


@dataclass(frozen=True, kw_only=True)
class Parameters(MatrixSetting):
    """The parameters of Figure 2: those of the synthetic setting."""


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks and return the matrices of Figure 2 and numbers drawn from them."""
    pair = parameters.train(seed, record=_TIMES)
    coarse = equivalent_alignment(pair.coarse.net, pair.train)
    fine = equivalent_alignment(pair.fine.net, pair.train)
    own = parameters.own_side
    diagonal = np.eye(len(fine), dtype=bool)
    return {
        "coarse_cosines": coarse,
        "fine_cosines": fine,
        "steps": pair.coarse.steps,
        "coarse_cosines_over_time": _over_time(pair.coarse),
        "fine_cosines_over_time": _over_time(pair.fine),
        "coarse_own_mean": coarse[own].mean(),
        "coarse_opposite_max": np.abs(coarse[~own]).max(),
        "coarse_index": averaging_index(pair.coarse.net, pair.train),
        "coarse_accuracy": clean_accuracy(pair.coarse.net, pair.test.x, pair.test.y),
        "fine_diagonal_min": fine[diagonal].min(),
        "fine_off_diagonal_max": np.abs(fine[~diagonal]).max(),
        "fine_index": averaging_index(pair.fine.net, pair.train),
        "fine_accuracy": clean_accuracy(pair.fine.net, pair.test.x, pair.test.y),
    }


def _over_time(run: Trajectory) -> FloatArray:
    """Return the matrix at every recorded time."""
    return np.stack(
        [equivalent_alignment(run.net_at(i), run.sample) for i in range(len(run.steps))]
    )


def expects(parameters: Parameters) -> list[Expectation]:
    """Return what Theorems 4.5 and 4.7 say about the two matrices."""
    own, opposite = parameters.average_cosines
    c, k = abs(parameters.cosine), parameters.clusters
    mean, theory = "2-class: mean cosine, own centres", f"{own:.3f}"
    coarse, fine = (f"{n}-class: max |cosine|, " for n in (2, k))
    rows = [
        Expectation(mean, "coarse_own_mean", own - 0.02, own + 0.02, theory),
        at_most(
            f"{coarse}opposite centres", "coarse_opposite_max", opposite + 0.08, f"{opposite:.3g}"
        ),
        at_least("2-class: averaging index", "coarse_index", 0.9, "1"),
        at_least("2-class: clean accuracy", "coarse_accuracy", 0.99, "1"),
        at_least(f"{k}-class: min cosine, own centre", "fine_diagonal_min", 0.95, "1"),
        at_most(f"{fine}other centres", "fine_off_diagonal_max", c + 0.08, f"{c:.3g}"),
        at_most(f"{k}-class: averaging index", "fine_index", 0.1, "0"),
        at_least(f"{k}-class: clean accuracy", "fine_accuracy", 0.99, "1"),
    ]
    if max(parameters.side_sizes) == 1:  # with one centre a side there is nothing to average
        return [row for row in rows if not row.quantity.endswith("_index")]
    return rows


def table(parameters: Parameters, results: Results) -> Table:
    """Return every entry of every matrix."""
    rows = [
        row
        for classes, name in ((2, "coarse_cosines"), (parameters.clusters, "fine_cosines"))
        for row in tidy_rows(results[name], label=(classes,))
    ]
    return Table(("seed", "classes", "center", "weight", "cosine"), rows)


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return both matrices as they form."""
    return [
        cosine_maps(
            "Cosines of centres and weights, as they form",
            columns="weight",
            frame="gradient step",
            frames=[f"{step:.0f}" for step in results["steps"][0]],
            panels=[
                Matrix.over_seeds(
                    f"{classes}-class labels: averaging index "
                    f"{results[f'{name}_index'].mean():.2f} at the end",
                    results[f"{name}_cosines_over_time"],
                )
                for name, classes in (("coarse", 2), ("fine", parameters.clusters))
            ],
        )
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="figure2-synthetic",
    calibrated=True,
    title="Coarse labels teach the average of the features, fine labels each of them",
    paper="Figure 2 (a, b)",
    parameters=Parameters(),
    quick=replace(Parameters(), dim=1536, samples=500, test_samples=200),
    series="figures",
)

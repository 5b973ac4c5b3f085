"""One network trained on coarse labels at one setting: the unit of sweeps and phase diagrams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from featavg.data.law import Sample
from featavg.drawing.common import cosine_maps
from featavg.drawing.views import Matrix, View
from featavg.lab.expectations import Expectation, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import parameter
from featavg.lab.setting import CoarseSetting
from featavg.lab.tables import Measurements, Results, Table, tidy_rows
from featavg.measures.alignment import alignment, averaging_index, clean_accuracy
from featavg.robustness import exact_radii


@dataclass(frozen=True, kw_only=True)
class Parameters(CoarseSetting):
    """The setting of Section 6.1, and how many fresh points are looked at."""

    test_samples: int = parameter(50, "the number of fresh points that radii are the median of")
    max_nodes: int = parameter(2000, "how long the exact radius of a point is searched for")
    precision: Literal["float64", "float32"] = parameter(
        "float64", "of points and weights; float32 trains twice as fast"
    )


DATA_FIELDS = (
    *("clusters", "positive", "dim", "signal", "noise", "cosine"),
    *("samples", "test_samples", "precision"),
)
"""The parameters that the data follow from; the others leave it, and its Gram matrix, as it is."""


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train the 2-class network, from the same random streams as the figures do."""
    train, test = _drawn(tuple(getattr(parameters, name) for name in DATA_FIELDS), seed)
    run = parameters.train_coarse(train, seed)
    net = run.net
    radii = exact_radii(
        net, test.x, test.y, max_nodes=parameters.max_nodes, certificates=False, jobs=1
    )
    own = train.law.signs[:, None] == net.neuron_signs[None, :]
    cosines = alignment(net, train.centers)
    coarse, fine = parameters.predicted
    radius = float(np.median(radii.upper))
    return {
        "index": averaging_index(net, train),
        "own_cosine": float(cosines[own].mean()),
        "radius": radius,
        "radius_over_theory": radius / coarse,
        "radius_over_decoupled": radius / fine,
        "exact": float(radii.exact.mean()),
        "accuracy": clean_accuracy(net, test.x, test.y),
        "loss": float(run.loss[-1]),
        "cosines": np.asarray(cosines, dtype=np.float64),
    }


@lru_cache(maxsize=1)
def _drawn(data: tuple[Any, ...], seed: int) -> tuple[Sample, Sample]:
    """Return training and fresh points; runs that share them share their Gram matrix."""
    setting = Parameters(**dict(zip(DATA_FIELDS, data, strict=True)))
    return setting.draw(seed, dtype=setting.precision)


def expects(parameters: Parameters) -> list[Expectation]:
    """Return what is measured; what it should be depends on the setting."""
    theory = f"{parameters.predicted[0]:.1f}"
    return [
        reported("averaging index", "index"),
        reported("mean cosine with own centres", "own_cosine"),
        reported("median radius", "radius", theory),
        reported("radius over that of averaged features", "radius_over_theory"),
        reported("clean accuracy", "accuracy"),
    ]


def table(_: Parameters, results: Results) -> Table:
    """Return the cosine of every neuron with every centre."""
    return Table(("seed", "center", "neuron", "cosine"), tidy_rows(results["cosines"]))


def views(_: Parameters, results: Results) -> list[View]:
    """Return the cosines of the first seed: a mean over seeds would look averaged."""
    index, radius = (results[name].mean() for name in ("index", "radius"))
    title = f"averaging index {index:.2f}, median radius {radius:.1f}"
    return [
        cosine_maps(
            "Cosines of centres and neurons",
            columns="neuron",
            panels=[Matrix.over_seeds(title, results["cosines"][:1, None])],
            note="The matrix is of the first seed, index and radius are means over seeds.",
        )
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="averaging",
    calibrated=True,
    title="One network on coarse labels, at any setting: the unit of sweeps",
    paper="Section 6.1",
    parameters=Parameters(),
    quick=replace(Parameters(), dim=1000, samples=300, test_samples=20),
    data_fields=DATA_FIELDS,
)

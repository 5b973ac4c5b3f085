"""One network trained on coarse labels at one setting: the unit of sweeps and phase diagrams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from featavg import checks
from featavg.data.law import Sample
from featavg.lab.experiment import (
    Expectation,
    Experiment,
    Measurements,
    Results,
    Table,
    parameter,
)
from featavg.lab.setting import CoarseSetting
from featavg.measures.alignment import alignment, averaging_index, clean_accuracy
from featavg.robustness import exact_radii

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ATTACK_STEPS = 20


@dataclass(frozen=True, kw_only=True)
class Parameters(CoarseSetting):
    """The setting of Section 6.1, and how many fresh points are looked at."""

    test_samples: int = parameter(50, "the number of fresh points that radii are the median of")
    max_nodes: int = parameter(2000, "how long the exact radius of a point is searched for")
    precision: Literal["float64", "float32"] = parameter(
        "float64", "of points and weights; float32 trains twice as fast"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.count("max_nodes", self.max_nodes)
        checks.choice("precision", self.precision, ("float64", "float32"))


DATA_FIELDS = (
    "clusters",
    "positive",
    "dim",
    "signal",
    "noise",
    "cosine",
    "samples",
    "test_samples",
    "precision",
)
"""The parameters that the data follow from; the others leave it, and its Gram matrix, as it is."""


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train the 2-class network, from the same random streams as the figures do."""
    train, test = _drawn(tuple(getattr(parameters, name) for name in DATA_FIELDS), seed)
    run = parameters.train_coarse_on(train, seed)
    net = run.net
    # the search is exact whatever the attack before it found
    radii = exact_radii(
        net,
        test.x,
        test.y,
        max_nodes=parameters.max_nodes,
        attack_steps=_ATTACK_STEPS,
        jobs=1,
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
        Expectation("averaging index", "index"),
        Expectation("mean cosine with own centres", "own_cosine"),
        Expectation("median radius", "radius", paper=theory),
        Expectation("radius over that of averaged features", "radius_over_theory"),
        Expectation("clean accuracy", "accuracy"),
    ]


def table(_: Parameters, results: Results) -> Table:
    """Return the cosine of every neuron with every centre."""
    rows = [
        (int(seed), int(i), int(j), float(cosine))
        for (seed, i, j), cosine in np.ndenumerate(results["cosines"])
    ]
    return Table(("seed", "center", "neuron", "cosine"), rows)


def plot(_: Parameters, results: Results) -> Figure:
    """Draw the cosines of the first seed."""
    from featavg.plot import style as plots

    with plots.style():
        figure, (panel,) = plots.new_figure(6.5, 5.2)
        picture = plots.heat_map(
            panel,
            results["cosines"][0],
            rows="centre",
            columns="neuron",
            title=f"index {results['index'].mean():.2f}, radius {results['radius'].mean():.1f}",
        )
        figure.colorbar(picture, ax=panel, label="cosine", shrink=0.9)
    return figure


EXPERIMENT = Experiment(
    id="averaging",
    title="One network on coarse labels, at any setting: the unit of sweeps",
    paper="Section 6.1",
    parameters=Parameters(),
    quick=replace(Parameters(), dim=1000, samples=300, test_samples=20),
    measure=measure,
    expects=expects,
    table=table,
    plot=plot,
    in_reproduce=False,
    data_fields=DATA_FIELDS,
)

"""Training on the certified radius: features decouple with coarse labels alone, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.estimators.piece_alignment import piece_averaging_index
from featavg.estimators.piece_start import Groups, Shape, start_head
from featavg.estimators.piece_training import Examples, train
from featavg.estimators.pieces import PieceHead
from featavg.experiments.beyond import radius_pictures
from featavg.experiments.beyond.piece_objectives import (
    OBJECTIVES,
    averaged_head,
    center_margin,
    descent,
    spread_of_pieces,
)
from featavg.experiments.beyond.radius_setting import STARTS, SWEEPS, Parameters
from featavg.lab.expectations import Expectation, at_least, at_most, reported, within
from featavg.lab.experiment import Experiment
from featavg.lab.tables import Measurements
from featavg.progress import counted, wanted

_BATCH = 256
_PERTURBATION = 1e-3


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Fit the classifier as it is, vary its training, and follow descent from the average."""
    sample, fresh = parameters.draw(np.random.default_rng([seed, 0]))
    return {
        **_of_defaults(parameters, sample, fresh, seed),
        **_of_sweeps(parameters, seed),
        **_of_descent(parameters, np.random.default_rng([seed, 2])),
    }


def _of_defaults(
    parameters: Parameters, sample: Sample, fresh: Sample, seed: int
) -> dict[str, Any]:
    """Return what `RadiusClassifier` learns with its own settings from coarse labels."""
    from featavg.estimators.radius import RadiusClassifier  # and with it scikit-learn

    model = RadiusClassifier(max_iter=parameters.max_iter, random_state=seed)
    model.fit(sample.x, sample.y)
    head = model.head_.after(model.scaling_)
    return {
        "default_radius": _median_radius(head, fresh),
        "default_index": piece_averaging_index(head, sample),
        "default_pieces": len(head.weights) / 2,
        "default_features": 0 if head.features is None else len(head.features.weights),
        "default_accuracy": float((head.predict(fresh.x) == _classes(fresh)).mean()),
    }


def _of_sweeps(parameters: Parameters, seed: int) -> dict[str, Any]:
    """Return radius and index along all sweeps, from both starts; equal settings are run once."""
    settings = {sweep: parameters.varied(sweep) for sweep in SWEEPS}
    distinct = list(dict.fromkeys(setting for some in settings.values() for setting in some))
    places = counted(len(distinct), "settings", enabled=wanted())
    runs = {distinct[i]: _of_setting(distinct[i], seed) for i in places}
    found: dict[str, Any] = {
        f"middle_{name}": value for name, value in runs[replace(parameters)].items()
    }
    many = runs[settings["pieces"][-1]]
    found |= {f"many_{name}": value for name, value in many.items()}
    for sweep, some in settings.items():
        found[f"{sweep}_values"] = np.array([getattr(s, sweep) for s in some], dtype=np.float64)
        for name in runs[some[0]]:
            found[f"{sweep}_{name}"] = np.array([runs[s][name] for s in some])
    return found


def _of_setting(parameters: Parameters, seed: int) -> dict[str, float]:
    """Train from k-means and from random pieces."""
    sample, fresh = parameters.draw(np.random.default_rng([seed, 0]))
    # coordinates in the span of the points, in a frame that has nothing to do with the centres
    axes = np.linalg.qr(sample.x.T)[0].T
    x, classes = (sample.x @ axes.T).astype(np.float32), _classes(sample)
    points = Examples(x, classes, np.ones(len(x), dtype=np.float32))
    found: dict[str, float] = {"learnable": parameters.learnable}
    for start in STARTS:
        rng = np.random.default_rng([seed, 1])
        head = _start(start, x, classes, parameters.pieces, rng)
        margin = parameters.margin * parameters.radii[1]
        trained = train(head, points, margin, steps=parameters.steps, batch=_BATCH, rng=rng)
        trained = trained.after_projection(axes)
        found[f"{start}_radius"] = _median_radius(trained, fresh)
        found[f"{start}_index"] = piece_averaging_index(trained, sample)
    return found


def _start(
    start: str, x: FloatArray, classes: IntArray, pieces: int, rng: np.random.Generator
) -> PieceHead:
    if start == "kmeans":
        shape, groups = Shape(pieces, 0), Groups(classes, np.arange(2))
        return start_head(x, classes, groups, shape, weights=np.ones(len(x)), starts=1, rng=rng)[0]
    weights = rng.standard_normal((2 * pieces, x.shape[1])) / np.sqrt(x.shape[1])
    return PieceHead(weights, np.zeros(2 * pieces), np.repeat([0, 1], pieces))


def _of_descent(parameters: Parameters, rng: np.random.Generator) -> dict[str, Any]:
    """Follow gradient descent on each objective from slightly perturbed averaged features.

    Gradient descent commutes with rotations, so span coordinates serve where they are fewer.
    """
    reserve = parameters.clusters  # the perturbations
    fewest = parameters.clusters + parameters.samples + reserve
    coordinates = "span" if fewest < parameters.dim else "ambient"
    sample, fresh = parameters.draw(rng, coordinates=coordinates, reserve=reserve)
    start = averaged_head(sample, parameters.clusters // 2, _PERTURBATION, rng)
    margin = parameters.margin * parameters.radii[1]
    found: dict[str, Any] = {}
    for name, objective in OBJECTIVES.items():
        heads = descent(start, sample, objective, margin, parameters.times)
        spreads = np.array([spread_of_pieces(head, sample) for head in heads])
        margins = np.array([center_margin(head, sample, objective.readout) for head in heads])
        index = np.array([piece_averaging_index(head, sample) for head in heads])
        found |= {
            f"{name}_spread": spreads,
            f"{name}_margin": margins,
            f"{name}_index": index,
            f"{name}_final_index": index[-1],
            f"{name}_final_radius": _median_radius(heads[-1], fresh),
            f"{name}_growth": np.polyfit(margins, np.log(spreads), 1)[0],
        }
    margins, spreads = found["max_margin"], found["max_spread"]
    gained = (spreads[-1] - spreads[0]) / (margins[-1] - margins[0])
    found["max_parting"] = gained / parameters.parting
    return found


def _classes(sample: Sample) -> IntArray:
    return (sample.y == 1).astype(np.int64)


def _median_radius(head: PieceHead, fresh: Sample) -> float:
    """Return the median radius, 0 for points that are wrong.

    It is exact, or with learned features, where that may take minutes, the certified lower bound.
    """
    if head.features is not None:
        return float(np.median(head.lower_radii(fresh.x, _classes(fresh))))
    return float(np.median(head.radii(fresh.x, _classes(fresh)).upper))


def expects(parameters: Parameters) -> list[Expectation]:
    r"""Return what was written down before the full run, after a look at one or two seeds.

    The rules on the classifier are those that it was asked to meet. Decoupled features that were
    learned from n points have the median radius `Parameters.learnable`. The proposition on the page
    "Why training on the radius decouples" says that the difference of pieces is constant for the
    mean of pieces, and grows by the factor :math:`e^{1/2}` for each unit of margin for their
    log-mean-exp: from 0.001, that is too little to matter within a margin of 6. Where the largest
    piece decides alone, clusters part at once for both losses, and the differences grow by
    `Parameters.parting` for each unit of margin. How far they part is a matter of chance: clusters
    that are won by the same piece stay together, which is rarer with more pieces.
    """
    averaged, decoupled = parameters.radii
    partly = averaged + 0.4 * (decoupled - averaged)
    radius, index = "median radius", "averaging index"
    mean, soft, largest, trained = (objective.title for objective in OBJECTIVES.values())
    learnable = f"{radius}, theory {parameters.learnable:.1f}"
    growth = "growth of differences with the margin"
    return [
        within(
            0.04,
            f"RadiusClassifier: {radius}, √(d/2) = {decoupled:.1f}",
            "default_radius",
            decoupled,
        ),
        at_most(f"RadiusClassifier: {index}", "default_index", 0.1),
        reported("RadiusClassifier: pieces of a class", "default_pieces"),
        reported("RadiusClassifier: learned features", "default_features"),
        at_least("RadiusClassifier: accuracy", "default_accuracy", 0.99),
        within(0.04, f"k-means start: {learnable}", "middle_kmeans_radius", parameters.learnable),
        at_most(f"k-means start: {index}", "middle_kmeans_index", 0.1),
        at_least(f"random start: {radius}", "middle_random_radius", partly),
        at_most(f"random start: {index}", "middle_random_index", 0.3),
        reported(f"random start, most pieces: {radius}", "many_random_radius"),
        reported(f"random start, most pieces: {index}", "many_random_index"),
        at_least(f"{mean}: {index}", "mean_final_index", 0.95),
        at_least(f"{soft}: {index}", "soft_final_index", 0.95),
        at_most(f"{largest}: {index}", "max_final_index", 0.7),
        at_most(f"{trained}: {index}", "radius_final_index", 0.5),
        within(0.05, f"{mean}: {radius}", "mean_final_radius", averaged),
        within(0.05, f"{soft}: {radius}", "soft_final_radius", averaged),
        reported(f"{largest}: {radius}", "max_final_radius"),
        reported(f"{trained}: {radius}", "radius_final_radius"),
        Expectation(f"{mean}: {growth}, theory 0", "mean_growth", -0.01, 0.01),
        within(0.1, f"{soft}: {growth}, theory 1/2", "soft_growth", 0.5),
        within(0.15, f"{largest}: {growth}, over theory", "max_parting", 1.0),
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="radius-training",
    title="Trained on the radius, features decouple without fine labels",
    paper="none, an extension",
    parameters=Parameters(),
    table=radius_pictures.table,
    views=radius_pictures.views,
    conclude=radius_pictures.conclude,
    quick=replace(
        Parameters(),
        clusters=6,
        dim=900,
        samples=240,
        noise=0.4,
        pieces=5,
        steps=400,
        descent_steps=60,
        max_iter=300,
        test_samples=20,
    ),
    quick_seeds=1,
    series="beyond",
)

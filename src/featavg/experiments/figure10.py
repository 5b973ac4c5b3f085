"""Figure 10: the cosines between embeddings of CIFAR-10 images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.drawing.views import HeatMaps, Matrix, View
from featavg.errors import InputError
from featavg.experiments import embedded
from featavg.lab.expectations import Expectation, at_least, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import parameter
from featavg.lab.tables import Measurements, Results, Table, prefixed
from featavg.measures.alignment import cosines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CENTERINGS = {"raw": "embeddings as they are", "centred": "their mean subtracted"}


@dataclass(frozen=True, kw_only=True)
class Parameters(embedded.EmbeddedSetting):
    """The parameters of Figure 10."""

    per_class: int = parameter(100, "images drawn from each class", least=2)


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Draw images of each class and return the cosines between their embeddings.

    "raw" is the paper's figure; "centred" has the mean of all training embeddings subtracted.
    """
    data = parameters.load()
    rng = np.random.default_rng(seed)
    chosen = _drawn(data.train_classes, len(embedded.CLASS_NAMES), parameters.per_class, rng)
    classes = data.train_classes[chosen]
    same = classes[:, None] == classes[None, :]
    pairs = ~np.eye(len(chosen), dtype=bool)
    measured: dict[str, object] = {}
    for name in _CENTERINGS:
        shift = data.train.mean(axis=0, dtype=np.float64) if name == "centred" else 0.0
        images = (data.train[chosen] - shift).astype(np.float64)
        between = cosines(images, images)
        means = [data.train[data.train_classes == j].mean(axis=0) for j in np.unique(classes)]
        centers = (np.stack(means) - shift).astype(np.float64)
        mean_cosines = cosines(centers, centers)
        different = ~np.eye(len(means), dtype=bool)
        numbers = {
            "cosines": between.astype(np.float32),
            "by_class": _by_class(between, classes, pairs),
            "means": mean_cosines,
            "same": between[same & pairs].mean(),
            "different": between[~same].mean(),
            "gap": between[same & pairs].mean() - between[~same].mean(),
            "means_mean": mean_cosines[different].mean(),
            "means_max": np.abs(mean_cosines[different]).max(),
        }
        measured |= prefixed(name, numbers)
    return measured


def expects(_: Parameters) -> list[Expectation]:
    """Return what Section 6.1 says: significantly more alike within a class than between."""
    different = "cosine of two images of different classes"
    return [
        reported("cosine of two images of one class", "raw_same"),
        reported(different, "raw_different"),
        at_least("difference", "raw_gap", 0.05, "significantly > 0"),
        reported("centred: cosine of two images of one class", "centred_same"),
        Expectation(f"centred: {different}", "centred_different", -0.1, 0.1, "near 0"),
        at_least("centred: difference", "centred_gap", 0.1, "significantly > 0"),
        reported("cosine of two class means, on average", "raw_means_mean", "near 0"),
        reported("centred: cosine of two class means, on average", "centred_means_mean"),
        reported("centred: largest |cosine| of two class means", "centred_means_max"),
    ]


def table(_: Parameters, results: Results) -> Table:
    """Return the mean cosine of the images of each two classes, and that of their means."""
    columns = ("seed", "embeddings", "class", "other_class", "mean_cosine", "cosine_of_means")
    groups = {(n,): [results[f"{n}_{what}"] for what in ("by_class", "means")] for n in _CENTERINGS}
    return Table.of_groups(columns, groups)


def plot(parameters: Parameters, results: Results) -> Figure:
    """Draw the cosines of all pairs of images in the first seed, sorted by class.

    The figure of the paper: a million entries, too many for a view.
    """
    from featavg.drawing import draw
    from featavg.drawing.style import new_figure, style

    with style():
        figure, panels = new_figure(12.5, 5.2, columns=2)
        middles = parameters.per_class * (np.arange(len(embedded.CLASS_NAMES)) + 0.5)
        for panel, (name, title) in zip(panels, _CENTERINGS.items(), strict=True):
            within, between = (results[f"{name}_{what}"].mean() for what in ("same", "different"))
            picture = draw.heat_map(
                panel,
                results[f"{name}_cosines"][0],
                title=f"{title}: {within:.2f} within a class, {between:.2f} between",
                high=1.0 if name == "raw" else 0.5,
            )
            panel.set_xticks(middles, embedded.CLASS_NAMES, rotation=45, ha="right")
            panel.set_yticks(middles, embedded.CLASS_NAMES)
            figure.colorbar(picture, ax=panel, label="cosine", shrink=0.9)
    return figure


def views(_: Parameters, results: Results) -> list[View]:
    """Return the mean cosine of the images of each two classes."""
    return [
        HeatMaps(
            "Mean cosine of the images of two classes",
            rows="class",
            columns="class",
            value="mean cosine",
            panels=[
                Matrix.over_seeds(title, results[f"{name}_by_class"][:, None])
                for name, title in _CENTERINGS.items()
            ],
            row_names=embedded.CLASS_NAMES,
            column_names=embedded.CLASS_NAMES,
        )
    ]


def _drawn(classes: IntArray, count: int, per_class: int, rng: np.random.Generator) -> IntArray:
    """Return the indices of images drawn from each class, class by class."""
    chosen = []
    for j in range(count):
        members = np.flatnonzero(classes == j)
        if len(members) < per_class:
            raise InputError(
                f"per_class must be at most the images of each class; got {per_class}, and class "
                f"{j} has {len(members)}."
            )
        chosen.append(np.sort(rng.choice(members, per_class, replace=False)))
    return np.concatenate(chosen)


def _by_class(between: FloatArray, classes: IntArray, pairs: BoolArray) -> FloatArray:
    """Return the mean cosine of distinct images of each pair of classes."""
    members = (classes[:, None] == np.unique(classes)[None, :]).astype(np.float64)
    counts = members.T @ pairs @ members
    means: FloatArray = (members.T @ np.where(pairs, between, 0) @ members) / counts
    return means


EXPERIMENT = Experiment.of_module(
    __name__,
    id="figure10",
    calibrated=True,
    title="Embeddings of CIFAR-10 images are more alike within a class than between classes",
    paper="Figure 10",
    parameters=Parameters(),
    quick=replace(Parameters(), size=128, samples=10_000),
    seeds=3,
    data=embedded.DATA,
    extra="vision",
)

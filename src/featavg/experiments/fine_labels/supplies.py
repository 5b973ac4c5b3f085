"""Supplies of labels for images: which are fine, which are controls, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.errors import InputError

if TYPE_CHECKING:
    from featavg.vision.supplied_labels import SuppliedLabels

SHARES, CONTROLS, ADVERSARIAL = "fine labels", "controls", "adversarial training"
"""The families of supplies."""

CLASSES = 10


@dataclass(frozen=True)
class Supply:
    """A way to label the training images.

    Attributes
    ----------
    key, family, name : str
        Its name in measurements, its family, and its name in figures.
    share : float
        The percentage of the images that are treated: labelled finely, or as the control says.
    kind : {"score", "fine", "random", "weighted", "k-means"}
        One score for the side; the right classes; classes drawn from the side; the side alone with
        more weight; the clusters in the features of an early network.
    adversarial : bool
        Whether the network is trained adversarially.
    """

    key: str
    family: str
    name: str
    share: float
    kind: str = "fine"
    adversarial: bool = False

    @property
    def classes(self) -> int:
        """The number of logits; two logits decide as one score does, their difference."""
        return 2 if self.kind == "score" else CLASSES


ONE_SCORE = Supply("score", SHARES, "the side, one score", 0.0, "score")
ALL_FINE = Supply("fine100", SHARES, "all fine labels", 100.0)
DRAWN = "random"
"""The key of the control whose classes are drawn from the side."""


def share_key(share: float) -> str:
    """Return the name of a share in measurements, ``fine0_3`` for 0.3 %."""
    return f"fine{share:g}".replace(".", "_")


def named_share(share: float) -> float:
    """Return a share as its name has it: with six digits, and without a sign at 0."""
    return float(f"{share + 0.0:g}")


def parsed_shares(text: str) -> tuple[float, ...]:
    """Return percentages from a text with commas between them, in rising order."""
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if not shares or not all(0 <= share <= 100 for share in shares):
        raise InputError(
            f"shares must be percentages from 0 to 100, with commas between them; got {text!r}."
        )
    return tuple(sorted({named_share(share) for share in shares}))


def supplies(
    shares: tuple[float, ...], control: float, weight: float, *, adversarial: bool
) -> list[Supply]:
    """Return all rows of the experiment, in the order of figures."""
    names = {0.0: "the side, ten latent outputs", 100.0: ALL_FINE.name}
    treated = f"{control:g} %"
    return [
        ONE_SCORE,
        *(
            Supply(share_key(share), SHARES, names.get(share, f"fine for {share:g} %"), share)
            for share in shares
        ),
        Supply(DRAWN, CONTROLS, f"{treated} drawn from the side", control, "random"),
        Supply("weighted", CONTROLS, f"{treated} with weight {weight:g}", control, "weighted"),
        Supply("kmeans", CONTROLS, "k-means, early network", 100.0, "k-means"),
        *(
            Supply(f"robust_{key}", ADVERSARIAL, name, share, kind, adversarial=True)
            for key, name, share, kind in (
                ("score", ONE_SCORE.name, 0.0, "score"),
                ("control", f"fine for {treated}", control, "fine"),
                ("fine", ALL_FINE.name, 100.0, "fine"),
            )
            if adversarial
        ),
    ]


def treated_images(count: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Choose a share of the images at random; a larger share contains the smaller ones."""
    chosen = np.zeros(count, dtype=bool)
    chosen[rng.permutation(count)[: round(count * share / 100)]] = True
    return chosen


def within_side(labels: IntArray, positive: tuple[int, ...], rng: np.random.Generator) -> IntArray:
    """Draw a class of the own side for each image."""
    negative = [j for j in range(CLASSES) if j not in positive]
    first, second = (rng.choice(side, size=len(labels)) for side in (positive, negative))
    return np.where(np.isin(labels, positive), first, second)


def clusters_within_sides(
    features: FloatArray, labels: IntArray, positive: tuple[int, ...], rng: np.random.Generator
) -> IntArray:
    """Return the clusters of k-means within each side, as many as it has classes, as classes."""
    from sklearn.cluster import KMeans  # takes a while to import

    found = np.empty(len(labels), dtype=np.int64)
    for side in (positive, tuple(j for j in range(CLASSES) if j not in positive)):
        own = np.flatnonzero(np.isin(labels, side))
        if len(own):
            count = min(len(side), len(own))
            search = KMeans(count, n_init=3, random_state=int(rng.integers(2**31)))
            found[own] = np.array(side)[search.fit(features[own]).labels_]
    return found


def purity(found: IntArray, labels: IntArray) -> float:
    """Return the share of images whose class is the commonest of their cluster."""
    counts = np.zeros((CLASSES, CLASSES), dtype=np.int64)
    np.add.at(counts, (found, labels), 1)
    return float(counts.max(axis=1).sum() / len(labels))


def labels_for(
    supply: Supply,
    labels: IntArray,
    positive: tuple[int, ...],
    weight: float,
    rng: np.random.Generator,
) -> SuppliedLabels:
    """Return the labels of a supply, except those of k-means, which need a network."""
    from featavg.vision.supplied_labels import SuppliedLabels

    if supply.kind == "score":
        return SuppliedLabels(np.where(np.isin(labels, positive), 0, 1), classes=2, positive=1)
    choice, draw = rng.spawn(2)
    chosen = treated_images(len(labels), supply.share, choice)
    sides = list(positive)
    if supply.kind == "weighted":
        weights = np.where(chosen, weight, 1.0)
        nothing = np.zeros(len(labels), dtype=bool)
        return SuppliedLabels(labels, nothing, classes=CLASSES, positive=sides, weights=weights)
    named = within_side(labels, positive, draw) if supply.kind == "random" else labels
    return SuppliedLabels(named, chosen, classes=CLASSES, positive=sides)

"""Supplies of labels: which label, if any, each training point comes with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.data.grouping import Grouping
from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.theory.granularity import granularity_radii


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels for the points of a sample.

    Attributes
    ----------
    labels : array of shape (points,)
        The label of each point; -1 where only its side is known.
    classes, positive : int
        How many labels there are, and how many of them, the first ones, are positive.
    theory : array of shape (clusters,) or None
        The radius of the points of each cluster by the granularity law, where it says one.
    """

    labels: IntArray
    classes: int
    positive: int
    theory: FloatArray | None = None


@dataclass(frozen=True)
class Supply:
    """A way to label points: its family and name in figures, how its curve is drawn, and how."""

    family: str
    name: str
    role: str
    dash: str
    label: Callable[[Sample, np.random.Generator], Labels]


def known(train: Sample, rng: np.random.Generator, *, count: int) -> Labels:
    """Give the right labels of `count` points of each cluster."""
    k, p = _sizes(train)
    labels = np.full(len(train), -1)
    for j in range(k):
        labels[rng.permutation(np.flatnonzero(train.cluster == j))[:count]] = j
    return Labels(labels, k, p, None if count else _theory(train, Grouping.coarse(p, k - p)))


def all_right(train: Sample, _: np.random.Generator) -> Labels:
    """Give the right labels of all points."""
    k, p = _sizes(train)
    return Labels(train.cluster, k, p, _theory(train, Grouping.fine(p, k - p)))


def wrong(train: Sample, rng: np.random.Generator, *, share: float, within_side: bool) -> Labels:
    """Draw a share of the labels anew, from those of the side or from all; some stay right."""
    k, p = _sizes(train)
    redrawn = rng.random(len(train)) < share
    drawn = rng.integers(k, size=len(train))
    if within_side:
        positive, negative = (rng.integers(size, size=len(train)) for size in (p, k - p))
        drawn = np.where(train.y > 0, positive, p + negative)
    return Labels(np.where(redrawn, drawn, train.cluster), k, p)


def split(train: Sample, rng: np.random.Generator, *, parts: int) -> Labels:
    """Split each cluster at random into so many labels."""
    k, p = _sizes(train)
    labels = parts * train.cluster + rng.integers(parts, size=len(train))
    return Labels(labels, parts * k, parts * p)


def merged(train: Sample, _: np.random.Generator, *, size: int) -> Labels:
    """Give neighbours of a side, `size` at a time, the same label; the last ones may be fewer."""
    k, p = _sizes(train)
    grouping = Grouping(*(tuple(np.bincount(np.arange(q) // size)) for q in (p, k - p)))
    labels = grouping.labels(train.law.signs)[train.cluster]
    return Labels(labels, len(grouping), len(grouping.positive), _theory(train, grouping))


def found(train: Sample, rng: np.random.Generator, *, factor: int) -> Labels:
    """Give the subclasses of k-means in each side, `factor` times as many as there are clusters."""
    from sklearn.cluster import KMeans  # takes a while to import

    k, p = _sizes(train)
    labels = np.empty(len(train), dtype=np.int64)
    for sign, first, count in ((1, 0, factor * p), (-1, factor * p, factor * (k - p))):
        own = train.y == sign
        search = KMeans(count, n_init=10, random_state=int(rng.integers(2**31)))
        labels[own] = first + search.fit(train.x[own]).labels_
    theory = _theory(train, Grouping.fine(p, k - p)) if factor == 1 else None
    return Labels(labels, factor * k, factor * p, theory)


def _theory(train: Sample, grouping: Grouping) -> FloatArray:
    """Return the radius of each cluster by the granularity law."""
    law = train.law
    assert isinstance(law, MultiCluster)  # noqa: S101  the experiment draws no other
    return granularity_radii(grouping, law)[grouping.labels(law.signs)]


def _sizes(train: Sample) -> tuple[int, int]:
    """Return how many clusters there are, and how many of them are positive: the first ones."""
    return train.law.clusters, len(train.law.positive_clusters)


SOME, WRONG, OTHER = "some points have labels", "some labels are wrong", "more or fewer labels"
"""The families of supplies."""

_SOLID, _DASHED, _DOTTED = "solid", "dashed", "dotted"
_WRONG = ((10, _SOLID), (30, _DASHED), (50, _DOTTED))

SUPPLIES: dict[str, Supply] = {
    "known0": Supply(SOME, "none: sides alone", "coarse", _SOLID, partial(known, count=0)),
    "known1": Supply(SOME, "1 of each cluster", "third", _DOTTED, partial(known, count=1)),
    "known2": Supply(SOME, "2 of each cluster", "third", "dash-dot", partial(known, count=2)),
    "known5": Supply(SOME, "5 of each cluster", "third", _DASHED, partial(known, count=5)),
    "known10": Supply(SOME, "10 of each cluster", "third", _SOLID, partial(known, count=10)),
    "all": Supply(SOME, "all of them, right", "fine", _SOLID, all_right),
    **{
        f"side{percent}": Supply(
            WRONG,
            f"{percent} % redrawn within the side",
            "fine",
            dash,
            partial(wrong, share=percent / 100, within_side=True),
        )
        for percent, dash in _WRONG
    },
    **{
        f"any{percent}": Supply(
            WRONG,
            f"{percent} % redrawn from all labels",
            "quiet",
            dash,
            partial(wrong, share=percent / 100, within_side=False),
        )
        for percent, dash in _WRONG
    },
    "split2": Supply(OTHER, "split at random in 2", "third", _SOLID, partial(split, parts=2)),
    "split3": Supply(OTHER, "split at random in 3", "third", _DASHED, partial(split, parts=3)),
    "merged2": Supply(OTHER, "merged by 2", "coarse", _DASHED, partial(merged, size=2)),
    "merged3": Supply(OTHER, "merged by 3", "coarse", _DOTTED, partial(merged, size=3)),
    "kmeans1": Supply(OTHER, "k-means, as many", "fine", _SOLID, partial(found, factor=1)),
    "kmeans2": Supply(OTHER, "k-means, twice as many", "fine", _DASHED, partial(found, factor=2)),
}
"""The supplies by a short name, in the order of figures."""

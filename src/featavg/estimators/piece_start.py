"""Where the training of affine pieces starts: prototypes found by k-means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.estimators.pieces import (
    PieceHead,
    SortedPairs,
    piece_distances,
    prototype_biases,
)

# k-means only finds a start: more points or rounds would not change what is learned from it.
_POINTS, _ROUNDS = 4000, 30
UNKNOWN = -1


@dataclass(frozen=True)
class Shape:
    """The size of a classifier of pieces: pieces for each class, and features (0 for none).

    Pieces of `prototypes` have no bias of their own: the largest is that of the nearest prototype.
    """

    pieces: int
    features: int
    prototypes: bool = False


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of points that have pieces of their own: classes, or subclasses of them.

    Attributes
    ----------
    labels : array of shape (points,)
        The group of each point, or -1 where it is unknown.
    class_of : array of shape (groups,)
        The class of each group, in ascending order.
    """

    labels: IntArray
    class_of: IntArray

    def strata(self, classes: IntArray) -> IntArray:
        """Return the group of each point; those whose group is unknown are one more for a class."""
        return np.where(self.labels == UNKNOWN, len(self.class_of) + classes, self.labels)

    def some(self, which: IntArray) -> Groups:
        """Return the groups of some points."""
        return replace(self, labels=self.labels[which])


def start_head(
    x: FloatArray,
    classes: IntArray,
    groups: Groups,
    shape: Shape,
    *,
    weights: FloatArray,
    starts: int,
    rng: np.random.Generator,
) -> tuple[PieceHead, BoolArray | None]:
    r"""Return prototypes as pieces, and which own pieces may defend each point (None: all).

    The biases to start from are `prototype_biases`. The features start as a random rotation.
    """
    features = _random_rotation(x.shape[1], shape.features, rng) if shape.features else None
    inputs = x if features is None else features.apply(x)
    members = _nearest_known(inputs, classes, groups)
    in_class = np.bincount(groups.class_of)
    centers, group_of = [], []
    for group, c in enumerate(groups.class_of):
        own = members == group
        wanted = max(1, round(shape.pieces / in_class[c]))
        found = _prototypes(inputs[own], weights[own], wanted, starts, rng)
        centers.append(found)
        group_of += [group] * len(found)
    prototypes = np.concatenate(centers).astype(np.float64)
    biases = prototype_biases(prototypes)
    head = PieceHead(prototypes, biases, groups.class_of[group_of], features)
    if np.array_equal(groups.class_of, np.arange(len(in_class))):
        return head, None
    known = groups.labels != UNKNOWN
    allowed = np.array(group_of)[None, :] == groups.labels[:, None]
    return head, allowed | ~known[:, None]


def with_unit_distances(head: PieceHead) -> PieceHead:
    """Return the same classifier with pieces of opposing classes at a mean distance of 1.

    The difference of two class values is then nearly a distance.
    """
    opposing = head.class_of[:, None] != head.class_of
    size = float(piece_distances(head.weights.astype(np.float64))[opposing].mean())
    if not size > 0:
        return head
    return replace(head, weights=head.weights / size, biases=head.biases / size)


def _random_rotation(dim: int, features: int, rng: np.random.Generator) -> SortedPairs:
    """Return a matrix with orthonormal rows, or columns if it has fewer of these."""
    tall = np.linalg.qr(rng.standard_normal((max(dim, features), min(dim, features))))[0]
    return SortedPairs(tall if features > dim else tall.T, np.zeros(features))


def _nearest_known(inputs: FloatArray, classes: IntArray, groups: Groups) -> IntArray:
    """Return the group of each point; unknown ones get the group of their class with nearest mean.

    The means are those of the known points, moved once to the mean of all points that they got.
    """
    labels = groups.labels.copy()
    unknown = np.flatnonzero(labels == UNKNOWN)
    for _ in range(2 if len(unknown) else 0):
        means = np.stack([inputs[labels == g].mean(axis=0) for g in range(len(groups.class_of))])
        far = np.square(means).sum(axis=1) - 2 * inputs[unknown] @ means.T
        far = np.where(groups.class_of == classes[unknown, None], far, np.inf)
        labels[unknown] = far.argmin(axis=1)
    return labels


def _prototypes(
    own: FloatArray, weights: FloatArray, wanted: int, starts: int, rng: np.random.Generator
) -> FloatArray:
    """Return the centres of k-means, at most one for each distinct point."""
    if wanted == 1:
        return np.average(own, axis=0, weights=weights)[None]
    some = rng.permutation(len(own))[:_POINTS]
    distinct = np.unique(own[some], axis=0)
    if len(distinct) <= wanted:
        return distinct
    from sklearn.cluster import KMeans  # half a second, which other uses of pieces need not take

    means: Any = KMeans(
        wanted, n_init=starts, max_iter=_ROUNDS, random_state=int(rng.integers(2**31))
    )
    with threadpool_limits(limits=1):
        means.fit(own[some], sample_weight=weights[some])
    return np.unique(means.cluster_centers_, axis=0)

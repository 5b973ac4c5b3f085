"""Measured points in clusters, and what is changed of them to find out what breaks the law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.data.cluster_means import cluster_means
from featavg.data.grouping import Grouping
from featavg.data.law import Sample

# Variances below this share of the mean one are raised to it before points are whitened.
_LEAST_VARIANCE = 0.01


@dataclass(frozen=True, eq=False)
class RealPoints:
    """Training and test points, and the cluster of each, from 0 on."""

    train: FloatArray
    train_cluster: IntArray
    test: FloatArray
    test_cluster: IntArray

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return int(self.train_cluster.max()) + 1

    def scaled(self) -> RealPoints:
        """Return points without the mean of the training points, whose mean squared norm is d."""
        shift = self.train.mean(axis=0, dtype=np.float64)
        train, test = (some.astype(np.float64) - shift for some in (self.train, self.test))
        factor = 1 / np.sqrt(np.square(train).mean())
        return replace(self, train=factor * train, test=factor * test)

    def renamed(self, cluster_of: IntArray) -> RealPoints:
        """Return the same points with the cluster ``cluster_of[j]`` in place of each j."""
        return replace(
            self,
            train_cluster=cluster_of[self.train_cluster],
            test_cluster=cluster_of[self.test_cluster],
        )

    def samples(self, positive: int, grouping: Grouping) -> tuple[Sample, Sample]:
        """Return training and test points as samples; the first `positive` clusters are."""
        train = Sample.from_points(self.train, self.train_cluster, positive=positive)
        test = Sample.from_points(
            self.test, self.test_cluster, positive=positive, centers=train.centers
        )
        return train.grouped(grouping), test.grouped(grouping)


@dataclass(frozen=True)
class Change:
    """What is changed of measured points before a network is trained on them.

    Attributes
    ----------
    orthogonal : bool
        Whether the means are replaced by the nearest orthogonal vectors with their norms.
    isotropic : bool
        Whether the noise, which is a point minus the mean of its cluster, is replaced by Gaussian
        noise of the same variance that is the same in all directions.
    quiet : bool
        Whether the noise is scaled to the norm of the means, as in the law of the paper.
    whitened : bool
        Whether all points are transformed linearly so that the noise has the same variance in all
        directions; means and their angles change with it.
    """

    orthogonal: bool = False
    isotropic: bool = False
    quiet: bool = False
    whitened: bool = False

    def __call__(self, points: RealPoints, rng: np.random.Generator) -> RealPoints:
        """Return the changed points, scaled again."""
        if self == AS_MEASURED:
            return points
        if self.whitened:
            points = _whitened(points)
        means = cluster_means(points.train, points.train_cluster)
        noise = points.train - means[points.train_cluster]
        test_noise = points.test - means[points.test_cluster]
        size = np.sqrt(np.square(noise).mean())
        if self.isotropic:
            noise, test_noise = (
                size * rng.standard_normal(some.shape) for some in (noise, test_noise)
            )
        factor = np.sqrt(np.square(means).mean()) / size if self.quiet else 1.0
        if self.orthogonal:
            means = orthogonalised(means, rng)
        changed = replace(
            points,
            train=means[points.train_cluster] + factor * noise,
            test=means[points.test_cluster] + factor * test_noise,
        )
        return changed.scaled() if not self.orthogonal else _only_scaled(changed)


AS_MEASURED = Change()
"""No change."""


def _only_scaled(points: RealPoints) -> RealPoints:
    """Return points scaled but not centred, which would make orthogonal means dependent."""
    factor = 1 / np.sqrt(np.square(points.train).mean())
    return replace(points, train=factor * points.train, test=factor * points.test)


def _whitened(points: RealPoints) -> RealPoints:
    means = cluster_means(points.train, points.train_cluster)
    noise = points.train - means[points.train_cluster]
    variances, axes = np.linalg.eigh(noise.T @ noise / len(noise))
    variances = np.maximum(variances, _LEAST_VARIANCE * variances.mean())
    transform = axes / np.sqrt(variances)
    return replace(points, train=points.train @ transform, test=points.test @ transform)


def orthogonalised(means: FloatArray, rng: np.random.Generator) -> FloatArray:
    r"""Return the orthogonal vectors nearest to the directions of the means, with their norms.

    With the singular value decomposition :math:`U S V^\top` of the directions these are the rows of
    :math:`U V^\top`. Means of centred points are linearly dependent; where S is zero, the row of V
    is drawn at random, orthogonal to the others.
    """
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    U, S, V = np.linalg.svd(means / norms, full_matrices=False)
    null = 1e-8 * S[0] > S
    kept = V[~null]
    drawn = rng.standard_normal((int(null.sum()), means.shape[1]))
    drawn -= drawn @ kept.T @ kept
    V[null] = np.linalg.qr(drawn.T)[0].T
    return norms * (U @ V)


def ordered_groups(
    clusters: int, positive: Sequence[int], groups: int, rng: np.random.Generator
) -> tuple[IntArray, Grouping]:
    """Return a new number for each cluster, and label groups of clusters with these numbers.

    The positive clusters come first. Each side has a number of groups in proportion to its
    clusters, of sizes that differ by at most one; which clusters share a group is drawn.
    """
    is_positive = np.isin(np.arange(clusters), positive)
    sides = [np.flatnonzero(is_positive), np.flatnonzero(~is_positive)]
    order = np.concatenate([rng.permutation(side) for side in sides])
    number = np.empty(clusters, dtype=np.int64)
    number[order] = np.arange(clusters)
    first = min(max(1, round(groups * len(sides[0]) / clusters)), groups - 1)
    counts = (first, groups - first)
    sizes = [
        tuple(len(part) for part in np.array_split(side, count))
        for side, count in zip(sides, counts, strict=True)
    ]
    return number, Grouping(*sizes)

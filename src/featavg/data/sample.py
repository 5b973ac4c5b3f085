"""Points with what is known about them: clusters, sides, centres, noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray, frozen
from featavg.data.law import MultiCluster, UnknownLaw, draw
from featavg.data.span import SpanFrame, normal
from featavg.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    r"""Points drawn from a law, with what is known about them.

    Paper: the training set S of Section 3.2, with the cluster labels of Section 4.2.

    Attributes
    ----------
    law : MultiCluster
        Where the points come from.
    centers : array of shape (clusters, coordinates)
        The centres :math:`\mu_j`.
    x : array of shape (points, coordinates)
        The points, read-only.
    y : array of shape (points,)
        The coarse labels, in {-1, +1}.
    cluster : array of shape (points,)
        The cluster of each point: the fine labels.
    noise_norms : array of shape (points,)
        :math:`\|\xi_i\|`, of the noise before it is scaled by :math:`\sigma`.
    frame : SpanFrame or None
        What the coordinates stand for; None for ambient ones.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
    >>> test = train.fresh(10, rng=rng)                    # new points, the same centres
    >>> train.x.shape, test.x.shape, bool((test.centers == train.centers).all())
    ((100, 50), (10, 50), True)

    `of_points` makes one of points of your own.
    """

    law: MultiCluster
    centers: FloatArray
    x: FloatArray
    y: IntArray
    cluster: IntArray
    noise_norms: FloatArray
    frame: SpanFrame | None = None

    def __post_init__(self) -> None:
        x = checks.matrix("x", self.x)
        points, coordinates = x.shape
        centers = checks.matrix("centers", self.centers, columns=coordinates)
        clusters = self.law.clusters
        if len(centers) != clusters:
            raise InputError(
                f"centers must have one row for each of the {clusters} clusters; "
                f"got the shape {centers.shape}."
            )
        cluster = checks.indices("cluster", self.cluster, length=points, below=clusters)
        y = checks.signs("y", self.y, length=points)
        if (y != self.law.signs[cluster]).any():
            first = int(np.flatnonzero(y != self.law.signs[cluster])[0])
            raise InputError(
                "y must be the side of each point's cluster; "
                f"got y={y[first]} in cluster {cluster[first]} at point {first}."
            )
        norms = checks.vector("noise_norms", self.noise_norms, length=points)
        checked: dict[str, Any] = {
            "centers": centers,
            "x": x,
            "y": y,
            "cluster": cluster,
            "noise_norms": norms,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, frozen(value))

    @classmethod
    def of_points(
        cls,
        x: ArrayLike,
        cluster: ArrayLike,
        *,
        positive: int | Sequence[int] | None = None,
        centers: ArrayLike | None = None,
    ) -> Sample:
        r"""Make a sample of points that were measured, such as embeddings of images.

        Paper: Section 6.1, where the features of CIFAR-10 are the class means of its embeddings.

        The centres are the means of the clusters and the noise is what is left, so that
        :math:`x_i = \mu_j + \xi_i` and Lemma 5.1 holds with :math:`\alpha = \sigma = 1`. The law
        is an `UnknownLaw`, and `fresh` refuses: hold back points of your own instead.

        Parameters
        ----------
        x : array of shape (points, coordinates)
            The points. float32 stays float32.
        cluster : array of shape (points,)
            The cluster of each point, from 0 on: the fine labels.
        positive : int or sequence of int, optional
            How many clusters are positive (the first ones), or which; the first half by default.
        centers : array of shape (clusters, coordinates), optional
            The centres, where they are not to be the means of these points: points held back have
            those of the training points.

        Examples
        --------
        >>> x = [[3.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 4.0]]
        >>> train = Sample.of_points(x, [0, 0, 1, 1])
        >>> train.centers.tolist(), train.y.tolist(), train.noise_norms.tolist()
        ([[2.0, 0.0], [0.0, 3.0]], [1, 1, -1, -1], [1.0, 1.0, 1.0, 1.0])
        >>> Sample.of_points([[2.0, 1.0]], [0], centers=train.centers)
        Sample(1 points, 2 clusters, 2 coordinates, float64)
        """
        points = checks.matrix("x", x)
        labels = np.asarray(cluster)
        if centers is None:
            checks.indices("cluster", labels, length=len(points), below=len(points))
            means = _cluster_means(points, labels)
        else:
            means = checks.matrix("centers", centers, columns=points.shape[1])
        labels = checks.indices("cluster", labels, length=len(points), below=len(means))
        law = UnknownLaw(len(means), points.shape[1], positive)
        norms = np.empty(len(points), points.dtype)
        for j, mean in enumerate(means):
            norms[labels == j] = np.linalg.norm(points[labels == j] - mean, axis=1)
        return cls(law, means.astype(points.dtype), points, law.signs[labels], labels, norms)

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        points, coordinates = self.x.shape
        return (
            f"Sample({points} points, {self.law.clusters} clusters, "
            f"{coordinates} coordinates{'' if self.frame is None else ' of the span'}, "
            f"{self.x.dtype})"
        )

    @cached_property
    def gram(self) -> FloatArray:
        """The Gram matrix X Xᵀ, shape (points, points), computed once and kept."""
        checks.memory(f"the Gram matrix of {len(self)} points", len(self) ** 2 * self.x.itemsize)
        with np.errstate(over="ignore", invalid="ignore"):
            is_training = self.frame is not None and self.frame.is_training(self.x)
            gram = self.frame.gram(self.x) if is_training and self.frame else self.x @ self.x.T
        gram.flags.writeable = False
        return gram

    def fresh(self, size: int, *, rng: np.random.Generator) -> Sample:
        """Draw `size` new points around the same centres, in the same coordinates."""
        if isinstance(self.law, UnknownLaw):
            raise InputError(
                "fresh points cannot be drawn because these were measured, not drawn from a law; "
                "hold some of them back instead."
            )
        size = checks.count("size", size)
        rng = checks.generator(rng)
        return draw(self.law, self.centers, size, rng, self.frame, training=False)

    def gaussian(self, count: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw `count` vectors of N(0, I) in the coordinates of this sample.

        Whoever needs a random direction, such as initial weights, asks the sample, because only
        the sample knows what its coordinates stand for.
        """
        size = count * self.x.shape[1] * self.x.itemsize
        checks.memory(f"{count} vectors of {self.x.shape[1]} coordinates", size)
        rng = checks.generator(rng)
        if self.frame is not None:
            return self.frame.gaussian(count, rng, self.x.dtype)
        return normal((count, self.x.shape[1]), rng, self.x.dtype)


def _cluster_means(x: FloatArray, cluster: IntArray) -> FloatArray:
    """Return the mean of the points of each cluster, shape (clusters, coordinates)."""
    sizes = np.bincount(cluster)
    if not sizes.all():
        raise InputError(
            "cluster must name each number up to its largest because a centre is the mean of the "
            f"points of its cluster; got no point in cluster {int(np.argmin(sizes))}."
        )
    return np.stack([x[cluster == j].mean(axis=0, dtype=np.float64) for j in range(len(sizes))])

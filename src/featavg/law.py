"""The data law: clusters around orthogonal centres, each cluster on one of two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from featavg import _checks
from featavg._checks import FloatArray, InputError, IntArray

_DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class MultiCluster:
    r"""The multi-cluster data law.

    Paper: Definition 3.1, Assumptions 3.2 and 3.3; Appendix E.1 for `signal`, `noise`, `cosine`.

    A point is drawn as :math:`x = \alpha \mu_j + \sigma \xi` with :math:`j` uniform over the
    :math:`k` clusters, :math:`\xi \sim N(0, I_d)` and :math:`\|\mu_j\| = \sqrt d`. Its label is
    +1 if cluster :math:`j` is positive, else -1.

    Parameters
    ----------
    clusters : int
        :math:`k`, the number of clusters, at least 2.
    dim : int
        :math:`d`, the dimension of the points.
    positive : int or sequence of int, optional
        How many clusters are positive (the first ones), or which. The first half by default;
        of an odd number the larger half. Kept as a sorted tuple.
    signal : float
        :math:`\alpha`, the factor of the centres.
    noise : float
        :math:`\sigma`, the standard deviation of the noise in each coordinate.
    cosine : float
        The cosine between any two centres. 0 is the paper's orthogonal law; every value from
        -1/(k-1) (a simplex) to 1 exists.

    Examples
    --------
    >>> law = MultiCluster(clusters=5, dim=100)
    >>> law.positive_clusters, law.negative_clusters
    ((0, 1, 2), (3, 4))
    >>> MultiCluster(clusters=20, dim=10)
    Traceback (most recent call last):
        ...
    featavg._checks.InputError: clusters must be at most dim because centres are orthogonal
    (Assumption 3.2); got clusters=20, dim=10.
    """

    clusters: int
    dim: int
    positive: int | Sequence[int] | None = None
    signal: float = 1.0
    noise: float = 1.0
    cosine: float = 0.0

    def __post_init__(self) -> None:
        clusters = _checks.count("clusters", self.clusters, minimum=2)
        dim = _checks.count("dim", self.dim)
        cosine = _checks.cosine("cosine", self.cosine, clusters=clusters)
        rank = _equiangular_rank(clusters, cosine)
        if rank > dim:
            reason = (
                "centres are orthogonal (Assumption 3.2)"
                if cosine == 0
                else f"centres with a pairwise cosine of {cosine:g} are linearly independent"
                if rank == clusters
                else f"centres with a pairwise cosine of {cosine:g} span {rank} dimensions"
            )
            limit = "dim" if rank == clusters else "dim + 1"
            raise InputError(
                f"clusters must be at most {limit} because {reason}; "
                f"got clusters={clusters}, dim={dim}."
            )
        normalised = {
            "clusters": clusters,
            "dim": dim,
            "cosine": cosine,
            "positive": _checks.partition(self.positive, clusters),
            "signal": _checks.scale("signal", self.signal),
            "noise": _checks.scale("noise", self.noise, zero=True),
        }
        for name, value in normalised.items():
            object.__setattr__(self, name, value)

    @property
    def positive_clusters(self) -> tuple[int, ...]:
        """The set :math:`J_+`, sorted."""
        return _checks.partition(self.positive, self.clusters)

    @property
    def negative_clusters(self) -> tuple[int, ...]:
        """The set :math:`J_-`, sorted."""
        return tuple(sorted(set(range(self.clusters)) - set(self.positive_clusters)))

    @property
    def signs(self) -> IntArray:
        """The label of each cluster, shape (clusters,)."""
        signs = np.full(self.clusters, -1, dtype=np.int64)
        signs[list(self.positive_clusters)] = 1
        return signs

    def sample(self, size: int, *, rng: np.random.Generator, dtype: str = "float64") -> Sample:
        """Draw centres and `size` points.

        Paper: Definition 3.1. The centres are a uniformly random frame, so no coordinate axis is
        special; the paper leaves their orientation open.

        Parameters
        ----------
        size : int
            The number of points.
        rng : numpy.random.Generator
            The source of randomness.
        dtype : {"float64", "float32"}
            The precision of the points, and so of everything computed from them.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
        Sample(100 points, 4 clusters, 50 coordinates, float64)
        """
        rng = _checks.generator(rng)
        size = _checks.count("size", size)
        kind = np.dtype(_checks.choice("dtype", dtype, _DTYPES))
        _checks.memory(f"{size} points of dim={self.dim}", size * self.dim * kind.itemsize)
        _checks.memory(f"{self.clusters} centres of dim={self.dim}", self.clusters * self.dim * 8)
        rank = _equiangular_rank(self.clusters, self.cosine)
        frame, _ = np.linalg.qr(rng.standard_normal((self.dim, rank)))
        directions = frame.T if self.cosine == 0 else _equiangular_factor(self) @ frame.T
        centers = _checks.frozen((np.sqrt(self.dim) * directions).astype(kind))
        return _draw(self, centers, size, rng)


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

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
    >>> test = train.fresh(10, rng=rng)                    # new points, the same centres
    >>> train.x.shape, test.x.shape, bool((test.centers == train.centers).all())
    ((100, 50), (10, 50), True)
    """

    law: MultiCluster
    centers: FloatArray
    x: FloatArray
    y: IntArray
    cluster: IntArray
    noise_norms: FloatArray

    def __post_init__(self) -> None:
        x = _checks.matrix("x", self.x)
        points, coordinates = x.shape
        centers = _checks.matrix("centers", self.centers, columns=coordinates)
        clusters = self.law.clusters
        if len(centers) != clusters:
            raise InputError(
                f"centers must have one row for each of the {clusters} clusters; "
                f"got the shape {centers.shape}."
            )
        cluster = _checks.indices("cluster", self.cluster, length=points, below=clusters)
        y = _checks.signs("y", self.y, length=points)
        if (y != self.law.signs[cluster]).any():
            first = int(np.flatnonzero(y != self.law.signs[cluster])[0])
            raise InputError(
                "y must be the side of each point's cluster; "
                f"got y={y[first]} in cluster {cluster[first]} at point {first}."
            )
        norms = _checks.vector("noise_norms", self.noise_norms, length=points)
        checked: dict[str, Any] = {
            "centers": centers,
            "x": x,
            "y": y,
            "cluster": cluster,
            "noise_norms": norms,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, _checks.frozen(value))

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        points, coordinates = self.x.shape
        return (
            f"Sample({points} points, {self.law.clusters} clusters, "
            f"{coordinates} coordinates, {self.x.dtype})"
        )

    @cached_property
    def gram(self) -> FloatArray:
        """The Gram matrix X Xᵀ, shape (points, points), computed once and kept."""
        _checks.memory(f"the Gram matrix of {len(self)} points", len(self) ** 2 * self.x.itemsize)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = self.x @ self.x.T
        gram.flags.writeable = False
        return gram

    def fresh(self, size: int, *, rng: np.random.Generator) -> Sample:
        """Draw `size` new points around the same centres, in the same coordinates."""
        size = _checks.count("size", size)
        return _draw(self.law, self.centers, size, _checks.generator(rng))

    def gaussian(self, count: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw `count` vectors of N(0, I) in the coordinates of this sample.

        Whoever needs a random direction, such as initial weights, asks the sample, because only
        the sample knows what its coordinates stand for.
        """
        size = count * self.x.shape[1] * self.x.itemsize
        _checks.memory(f"{count} vectors of {self.x.shape[1]} coordinates", size)
        return _normal((count, self.x.shape[1]), _checks.generator(rng), self.x.dtype)


def _draw(law: MultiCluster, centers: FloatArray, size: int, rng: np.random.Generator) -> Sample:
    """Draw `size` points around given centres."""
    cluster = rng.integers(law.clusters, size=size)
    noise = _normal((size, centers.shape[1]), rng, centers.dtype)
    noise_norms = np.linalg.norm(noise, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by Sample
        noise *= law.noise
        for j in range(law.clusters):  # cluster by cluster: no second array of the size of x
            noise[cluster == j] += law.signal * centers[j]
    noise.flags.writeable = False  # handed over, not copied
    return Sample(
        law=law,
        centers=centers,
        x=noise,
        y=law.signs[cluster],
        cluster=cluster,
        noise_norms=noise_norms,
    )


def _normal(shape: tuple[int, int], rng: np.random.Generator, dtype: np.dtype[Any]) -> FloatArray:
    return rng.standard_normal(shape, dtype=np.float32 if dtype == np.float32 else np.float64)


def _equiangular_rank(clusters: int, cosine: float) -> int:
    """Return how many dimensions vectors with this pairwise cosine span."""
    if cosine >= 1:
        return 1
    is_simplex = 1 + (clusters - 1) * cosine <= 1e-12
    return clusters - 1 if is_simplex else clusters


def _equiangular_factor(law: MultiCluster) -> FloatArray:
    """Return the rows of unit vectors with this pairwise cosine, in as few columns as they span.

    The Gram matrix (1-c) I + c 11ᵀ has the eigenvalue 1 + (k-1)c on the vector of ones and 1 - c
    on everything orthogonal to it; the factor is its root, without the columns of eigenvalue zero.
    """
    k, cosine = law.clusters, law.cosine
    rank = _equiangular_rank(k, cosine)
    mean = np.full((k, k), 1 / k)
    if cosine >= 1:  # all centres are the same
        return np.ones((k, 1))
    if rank == k - 1:  # a simplex: the centres sum to zero
        return np.sqrt(1 - cosine) * np.linalg.svd(np.eye(k) - mean)[0][:, :rank]
    along, across = 1 + (k - 1) * cosine, 1 - cosine
    return np.sqrt(across) * (np.eye(k) - mean) + np.sqrt(along) * mean

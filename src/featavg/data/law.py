"""The data law: clusters around orthogonal centres, each cluster on one of two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, IntArray, frozen
from featavg.data.span import RESERVE, SpanFrame, normal
from featavg.errors import InputError

if TYPE_CHECKING:
    from featavg.data.sample import Sample

_DTYPES = ("float64", "float32")
_AMBIENT_ENTRIES = 2**27
_ROWS_AT_ONCE = 256


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
    featavg.errors.InputError: clusters must be at most dim because centres are orthogonal
    (Assumption 3.2); got clusters=20, dim=10.
    """

    clusters: int
    dim: int
    positive: int | Sequence[int] | None = None
    signal: float = 1.0
    noise: float = 1.0
    cosine: float = 0.0

    def __post_init__(self) -> None:
        clusters = checks.count("clusters", self.clusters, minimum=2)
        dim = checks.count("dim", self.dim)
        cosine = checks.cosine("cosine", self.cosine, clusters=clusters)
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
            "positive": checks.partition(self.positive, clusters),
            "signal": checks.scale("signal", self.signal),
            "noise": checks.scale("noise", self.noise, zero=True),
        }
        for name, value in normalised.items():
            object.__setattr__(self, name, value)

    @property
    def positive_clusters(self) -> tuple[int, ...]:
        """The set :math:`J_+`, sorted."""
        return checks.partition(self.positive, self.clusters)

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

    def sample(
        self,
        size: int,
        *,
        rng: np.random.Generator,
        coordinates: str = "auto",
        dtype: str = "float64",
        reserve: int = RESERVE,
    ) -> Sample:
        """Draw centres and `size` points.

        Paper: Definition 3.1. The centres are a uniformly random frame, so no coordinate axis is
        special; the paper leaves their orientation open.

        Parameters
        ----------
        size : int
            The number of points.
        rng : numpy.random.Generator
            The source of randomness.
        coordinates : {"auto", "ambient", "span"}
            "ambient" gives every point its `dim` coordinates. "span" gives the coordinates in a
            basis of the span of everything that training sees: exactly the same law for all that
            is computed from them, at a cost that does not depend on `dim`. "auto" takes the
            ambient ones up to about a gigabyte, then those of the span.
        dtype : {"float64", "float32"}
            The precision of the points, and so of everything computed from them.
        reserve : int
            In span coordinates, how many vectors such as initial weights can be drawn.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
        Sample(100 points, 4 clusters, 50 coordinates, float64)
        >>> MultiCluster(clusters=4, dim=10**12).sample(100, rng=rng)
        Sample(100 points, 4 clusters, 168 coordinates of the span, float64)
        """
        rng = checks.generator(rng)
        size = checks.count("size", size)
        kind = np.dtype(checks.choice("dtype", dtype, _DTYPES))
        frame = self._frame(size, coordinates, checks.count("reserve", reserve, minimum=0))
        columns = self.dim if frame is None else frame.coordinates
        checks.memory(f"{size} points of {columns} coordinates", size * columns * kind.itemsize)
        centers = self._draw_centers(rng, frame).astype(kind)
        return draw(self, frozen(centers), size, rng, frame, training=True)

    def _frame(self, size: int, coordinates: str, reserve: int) -> SpanFrame | None:
        """Return the frame of span coordinates, or None for ambient ones."""
        coordinates = checks.choice("coordinates", coordinates, ("auto", "ambient", "span"))
        frame = SpanFrame(self.dim, _equiangular_rank(self.clusters, self.cosine), size, reserve)
        fits = frame.coordinates < self.dim
        if coordinates == "span" and not fits:
            raise InputError(
                f"span coordinates must be fewer than dim; got {frame.coordinates} (centres, "
                f"points and a reserve of {reserve}) and dim={self.dim}."
            )
        large = size * self.dim > _AMBIENT_ENTRIES
        in_span = coordinates == "span" or (coordinates == "auto" and fits and large)
        return frame if in_span else None

    def _draw_centers(self, rng: np.random.Generator, frame: SpanFrame | None) -> FloatArray:
        rank = _equiangular_rank(self.clusters, self.cosine)
        if frame is None:
            size = self.clusters * self.dim * 8
            checks.memory(f"{self.clusters} centres of dim={self.dim}", size)
            axes = np.linalg.qr(rng.standard_normal((self.dim, rank)))[0].T
        else:  # the first coordinates are those of the centres
            axes = np.eye(rank, frame.coordinates)
        directions = axes if self.cosine == 0 else _equiangular_factor(self) @ axes
        return np.sqrt(self.dim) * directions


@dataclass(frozen=True)
class UnknownLaw(MultiCluster):
    r"""What is known of the law of points that were measured, not drawn: clusters and their sides.

    Paper: none, an extension; the CIFAR-10 embeddings of Section 6.1 are such points.

    A point is :math:`x = \mu_j + \xi` with :math:`\mu_j` the mean of its cluster and
    :math:`\xi` what is left, so `signal` and `noise` are 1 by definition. Centres have any norms
    and angles, so `cosine` is NaN: a formula that asks for it gets no number rather than a wrong
    one. There may be more clusters than dimensions. Nothing can be drawn from it.

    Examples
    --------
    >>> UnknownLaw(clusters=3, dim=2).positive_clusters
    (0, 1)
    """

    signal: float = field(default=1.0, init=False)
    noise: float = field(default=1.0, init=False)
    cosine: float = field(default=float("nan"), init=False)

    def __post_init__(self) -> None:
        clusters = checks.count("clusters", self.clusters, minimum=2)
        object.__setattr__(self, "clusters", clusters)
        object.__setattr__(self, "dim", checks.count("dim", self.dim))
        object.__setattr__(self, "positive", checks.partition(self.positive, clusters))

    def sample(self, *_: Any, **__: Any) -> Sample:
        """Refuse: nobody knows how to draw such points."""
        raise InputError("points cannot be drawn from a law that is not known; give your own.")


def draw(
    law: MultiCluster,
    centers: FloatArray,
    size: int,
    rng: np.random.Generator,
    frame: SpanFrame | None,
    *,
    training: bool,
) -> Sample:
    """Draw `size` points around given centres."""
    from featavg.data.sample import Sample  # which knows the laws

    cluster = rng.integers(law.clusters, size=size)
    if frame is None:
        noise = np.empty((size, centers.shape[1]), centers.dtype)
        noise_norms = np.empty(size, centers.dtype)
    elif training:
        noise = frame.training_noise(rng, centers.dtype)
        noise_norms = np.linalg.norm(noise, axis=1)
    else:
        noise, noise_norms = frame.fresh_noise(size, rng, centers.dtype)
    # some rows at a time, and no further than centres reach: nothing else of the size of x
    reach = centers.shape[1] if frame is None else frame.rank
    shifts = law.signal * centers[:, :reach]
    for start in range(0, size, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        if frame is None:
            noise[rows] = normal(noise[rows].shape, rng, centers.dtype)
            noise_norms[rows] = np.linalg.norm(noise[rows], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by Sample
            noise[rows] *= law.noise
            noise[rows, :reach] += shifts[cluster[rows]]
    noise.flags.writeable = False  # handed over, not copied
    norms = noise_norms.astype(centers.dtype, copy=False)
    return Sample(law, centers, noise, law.signs[cluster], cluster, norms, frame)


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

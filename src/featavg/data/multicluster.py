"""The paper's law, and its variations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Law
from featavg.data.orientation import check_orientation
from featavg.data.span import normal
from featavg.errors import InputError


@dataclass(frozen=True)
class MultiCluster(Law):
    r"""The multi-cluster data law.

    Paper: Definition 3.1, Assumptions 3.2 and 3.3; Appendix E.1 for `signal`, `noise`, `cosine`;
    `probabilities`, `norms`, `balanced` and `orientation` are extensions.

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
    probabilities : sequence of float, optional
        How likely each cluster is; all the same by default. They are divided by their sum.
    norms : sequence of float, optional
        The norm of each centre, in units of :math:`\sqrt d`; 1 by default.
    balanced : bool
        Whether the clusters of a sample have exactly their share of the points (up to rounding),
        instead of each point drawing its cluster.
    orientation : {"random", "axes", "signs"}
        How the centres lie: in a uniformly random frame (the default), along the first coordinate
        axes, or so that all of their coordinates are ±1 (times their norm), which needs a `dim`
        that is a multiple of a power of two not below `clusters`. The paper leaves it open, and
        gradient descent does not depend on it; `Adam` and `SignDescent` do. Both choices are for
        orthogonal centres, and are sampled in ambient coordinates only.

    Examples
    --------
    >>> law = MultiCluster(clusters=5, dim=100)
    >>> law.positive_clusters, law.negative_clusters
    ((0, 1, 2), (3, 4))
    >>> rare = MultiCluster(clusters=4, dim=100, probabilities=[3, 3, 3, 1], balanced=True)
    >>> np.bincount(rare.sample(50, rng=np.random.default_rng(0)).cluster)
    array([15, 15, 15,  5])
    >>> signs = MultiCluster(clusters=2, dim=4, orientation="signs")
    >>> np.abs(signs.sample(1, rng=np.random.default_rng(0)).centers)
    array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]])
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
    probabilities: Sequence[float] | None = None
    norms: Sequence[float] | None = None
    balanced: bool = False
    orientation: str = "random"

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
        checks.flag("balanced", self.balanced)
        orientation = check_orientation(self.orientation, rank=rank, dim=dim)
        if orientation != "random" and cosine != 0:
            raise InputError(
                "cosine must be 0 with a chosen orientation, because only orthogonal centres lie "
                f"along axes; got cosine={cosine:g}, orientation={orientation!r}."
            )
        normalised = {
            "clusters": clusters,
            "dim": dim,
            "cosine": cosine,
            "positive": checks.partition(self.positive, clusters),
            "signal": checks.scale("signal", self.signal),
            "noise": checks.scale("noise", self.noise, zero=True),
            "probabilities": _per_cluster("probabilities", self.probabilities, clusters),
            "norms": _per_cluster("norms", self.norms, clusters),
        }
        for name, value in normalised.items():
            object.__setattr__(self, name, value)

    @property
    def follows_definition(self) -> bool:
        """Whether it is the law of Definition 3.1, with signal, noise and cosine of Appendix E."""
        usual = self.probabilities is None and self.norms is None and not self.balanced
        return type(self) is MultiCluster and usual

    def center_directions(self) -> FloatArray:
        r"""Return the centres over :math:`\sqrt d` in as few coordinates as they span."""
        directions = _equiangular_directions(self.clusters, self.cosine)
        return directions if self.norms is None else np.array(self.norms)[:, None] * directions

    def draw_clusters(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw the cluster of each of `size` points."""
        if self.probabilities is None and not self.balanced:
            return rng.integers(self.clusters, size=size)
        shares = np.array(self.probabilities or [1.0] * self.clusters)
        shares /= shares.sum()
        if not self.balanced:
            return rng.choice(self.clusters, size=size, p=shares)
        return rng.permutation(np.repeat(np.arange(self.clusters), _apportioned(size, shares)))


@dataclass(frozen=True)
class AnisotropicClusters(MultiCluster):
    r"""Clusters whose noise has another size in each coordinate.

    Paper: none, an extension. The noise is :math:`\sigma\,(s_1 \xi_1, \dots, s_d \xi_d)` with
    :math:`\xi \sim N(0, I_d)`. It has preferred axes, so samples have ambient coordinates only.

    Parameters
    ----------
    spread : sequence of float
        :math:`s`, one factor for each of the `dim` coordinates.
    clusters, dim, positive, signal, noise, cosine, probabilities, norms, balanced, orientation
        As in `MultiCluster`.

    Examples
    --------
    >>> law = AnisotropicClusters(clusters=2, dim=3, spread=[10.0, 1.0, 0.0], signal=1e-9)
    >>> law.sample(2000, rng=np.random.default_rng(0)).x.std(axis=0).round(1)
    array([10.1,  1. ,  0. ])
    """

    spread: Sequence[float] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        spread = checks.vector("spread", self.spread, length=self.dim)
        if (spread < 0).any():
            raise InputError(f"spread must be at least 0; got {spread.min():g}.")
        object.__setattr__(self, "spread", tuple(spread.tolist()))

    def draw_noise(
        self, shape: tuple[int, int], rng: np.random.Generator, dtype: np.dtype[Any]
    ) -> FloatArray:
        """Draw N(0, diag(spread²))."""
        return normal(shape, rng, dtype) * np.array(self.spread, dtype)


@dataclass(frozen=True)
class XorClusters(Law):
    r"""Clusters at opposite ends of orthogonal directions: the XOR problem and its extensions.

    Paper: none, an extension. Direction i has one cluster at :math:`+\mu_i` and one at
    :math:`-\mu_i`, both on the same side, so no linear classifier is better than chance. The
    first half of the directions is positive. Two directions are XOR.

    Parameters
    ----------
    dim : int
        :math:`d`.
    directions : int
        How many directions there are, at least 2; there are twice as many clusters.
    signal, noise : float
        :math:`\alpha` and :math:`\sigma`.

    Examples
    --------
    >>> law = XorClusters(dim=50)
    >>> law.clusters, law.signs, law.center_directions().sum(axis=1)
    (4, array([ 1,  1, -1, -1]), array([ 1., -1.,  1., -1.]))
    """

    dim: int
    directions: int = 2
    signal: float = 1.0
    noise: float = 1.0

    def __post_init__(self) -> None:
        directions = checks.count("directions", self.directions, minimum=2)
        dim = checks.count("dim", self.dim)
        if directions > dim:
            raise InputError(
                "directions must be at most dim because they are orthogonal; "
                f"got directions={directions}, dim={dim}."
            )
        object.__setattr__(self, "signal", checks.scale("signal", self.signal))
        object.__setattr__(self, "noise", checks.scale("noise", self.noise, zero=True))

    @property
    def clusters(self) -> int:  # type: ignore[override]
        """Two for each direction."""
        return 2 * self.directions

    @property
    def signs(self) -> IntArray:
        """The side of each cluster, +1 or -1, shape (clusters,)."""
        return np.repeat(checks.signs_of_partition(None, self.directions), 2)

    def center_directions(self) -> FloatArray:
        r"""Return the centres over :math:`\sqrt d`: plus and minus each direction."""
        return np.kron(np.eye(self.directions), [[1.0], [-1.0]])


def _per_cluster(name: str, values: Any, clusters: int) -> tuple[float, ...] | None:
    """Return one positive number for each cluster, or None where nothing was given."""
    if values is None:
        return None
    array = checks.vector(name, values, length=clusters)
    if not (array > 0).all():
        raise InputError(f"{name} must be above 0; got {array.min():g}.")
    return tuple(array.tolist())


def _apportioned(size: int, shares: FloatArray) -> IntArray:
    """Return whole numbers that sum to `size`, as near to the shares as possible.

    The largest remainders are rounded up.
    """
    counts = np.floor(size * shares).astype(np.int64)
    remainders = size * shares - counts
    counts[np.argsort(-remainders, kind="stable")[: size - counts.sum()]] += 1
    return counts


def _equiangular_rank(clusters: int, cosine: float) -> int:
    """Return how many dimensions vectors with this pairwise cosine span."""
    if cosine >= 1:
        return 1
    is_simplex = 1 + (clusters - 1) * cosine <= 1e-12
    return clusters - 1 if is_simplex else clusters


def _equiangular_directions(k: int, cosine: float) -> FloatArray:
    """Return the rows of unit vectors with this pairwise cosine, in as few columns as they span.

    The Gram matrix (1-c) I + c 11ᵀ has the eigenvalue 1 + (k-1)c on the vector of ones and 1 - c
    on everything orthogonal to it; the rows are its root, without the columns of eigenvalue zero.
    """
    if cosine == 0:
        return np.eye(k)
    if cosine >= 1:  # all centres are the same
        return np.ones((k, 1))
    mean = np.full((k, k), 1 / k)
    rank = _equiangular_rank(k, cosine)
    if rank == k - 1:  # a simplex: the centres sum to zero
        return np.sqrt(1 - cosine) * np.linalg.svd(np.eye(k) - mean)[0][:, :rank]
    along, across = 1 + (k - 1) * cosine, 1 - cosine
    return np.sqrt(along) * mean + np.sqrt(across) * (np.eye(k) - mean)

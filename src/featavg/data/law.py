"""Laws and samples: a law draws samples, and a sample refers to its law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray, frozen
from featavg.data.cluster_means import cluster_means, distances_from_means
from featavg.data.clustered_law import ClusteredLaw
from featavg.data.grouping import Grouping
from featavg.data.span import RESERVE, SpanFrame, normal
from featavg.drawing.common import mutual_cosines
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import HeatMaps
from featavg.errors import InputError

_DTYPES = ("float64", "float32")


class Law(ClusteredLaw):
    r"""How points are drawn: clusters around centres, each cluster on one of two sides.

    Paper: Definition 3.1 is the case `MultiCluster`; others are extensions.

    A point is :math:`x = \alpha \mu_j + \sigma \xi` with the centre :math:`\mu_j` of its cluster
    and the noise :math:`\xi`; its label is the side of the cluster. A law of your own is a frozen
    dataclass with the first four attributes below that says where the centres are
    (`center_directions`) and, where they differ from the paper's, how clusters (`draw_clusters`)
    and noise (`draw_noise`) are drawn.

    Attributes
    ----------
    clusters, dim : int
        :math:`k` and :math:`d`.
    signal, noise : float
        :math:`\alpha` and :math:`\sigma`.
    positive : int or sequence of int, optional
        How many clusters are positive (the first ones), or which; the first half by default.
    orientation : {"random", "axes", "signs"}
        How the frame of the centres lies; see `MultiCluster`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "sample" in vars(cls):
            raise TypeError(
                f"{cls.__name__} must not override sample, because fresh points would not follow "
                "it; override draw_centers, draw_clusters, draw_noise or draw_points."
            )

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

        Paper: Definition 3.1. By default the centres are a uniformly random frame, so no coordinate
        axis is special; the paper leaves their orientation open.

        Parameters
        ----------
        size : int
            The number of points.
        rng : numpy.random.Generator
            The source of randomness.
        coordinates : {"auto", "ambient", "span"}
            "ambient" gives every point its `dim` coordinates. "span" gives the coordinates in a
            basis of the span of everything that training sees: exactly the same law for all that
            is computed from them, at a cost that does not depend on `dim`; only for laws that are
            rotation invariant. "auto" takes the ambient ones up to about a gigabyte, then those of
            the span.
        dtype : {"float64", "float32"}
            The precision of the points, and so of everything computed from them.
        reserve : int
            In span coordinates, how many vectors such as initial weights can be drawn.

        Examples
        --------
        >>> from featavg import MultiCluster
        >>> rng = np.random.default_rng(0)
        >>> MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
        Sample(100 points, 4 clusters, 50 coordinates, float64)
        >>> MultiCluster(clusters=4, dim=10**12).sample(100, rng=rng)
        Sample(100 points, 4 clusters, 168 coordinates of the span, float64)
        """
        rng = checks.generator(rng)
        size = checks.count("size", size)
        kind = np.dtype(checks.choice("dtype", dtype, _DTYPES))
        frame = self.span_frame(size, coordinates, reserve)
        columns = self.dim if frame is None else frame.coordinates
        checks.memory(f"{size} points of {columns} coordinates", size * columns * kind.itemsize)
        if frame is None:
            centers = self.draw_centers(rng)
        else:  # the first coordinates are those of the centres
            axes = np.eye(frame.rank, frame.coordinates)
            centers = np.sqrt(self.dim) * (self.checked_directions() @ axes)
        return self.draw_points(frozen(centers.astype(kind)), size, rng, frame, training=True)

    @property
    def rotation_invariant(self) -> bool:
        """Whether every rotated frame is as likely: False if a subclass draws its own points."""
        return super().rotation_invariant and type(self).draw_points is Law.draw_points

    def draw_points(
        self,
        centers: FloatArray,
        size: int,
        rng: np.random.Generator,
        frame: SpanFrame | None,
        *,
        training: bool,
    ) -> Sample:
        """Draw `size` points around given centres."""
        cluster = self.checked_clusters(size, rng)
        x, norms = self.points_around(centers, cluster, rng, frame, training=training)
        return Sample(self, centers, x, self.signs[cluster], cluster, norms, frame)


@dataclass(frozen=True)
class MeasuredLaw(Law):
    r"""The law of points that were measured, not drawn: only clusters and their sides are known.

    Paper: none, an extension; the CIFAR-10 embeddings of Section 6.1 are such points.

    A point is :math:`x = \mu_j + \xi` with :math:`\mu_j` the mean of its cluster and
    :math:`\xi` the rest, so `signal` and `noise` are 1 by definition. Centres have any norms and
    angles, and there may be more clusters than dimensions. Nothing can be drawn from it.

    Examples
    --------
    >>> MeasuredLaw(clusters=3, dim=2).positive_clusters
    (0, 1)
    """

    clusters: int
    dim: int
    positive: int | Sequence[int] | None = None

    signal = 1.0
    noise = 1.0

    def __post_init__(self) -> None:
        clusters = checks.count("clusters", self.clusters, minimum=2)
        object.__setattr__(self, "clusters", clusters)
        object.__setattr__(self, "dim", checks.count("dim", self.dim))
        object.__setattr__(self, "positive", checks.partition(self.positive, clusters))

    @property
    def rotation_invariant(self) -> bool:
        """No: measured points have the orientation that they have."""
        return False

    def center_directions(self) -> FloatArray:
        """Refuse: the centres are those of the sample."""
        raise InputError(
            "points cannot be drawn because these were measured, not drawn from a law; "
            "hold some of them back instead."
        )

    def draw_points(self, *_: Any, **__: Any) -> Sample:
        """Refuse: it is not known how such points are drawn."""
        self.center_directions()
        raise AssertionError("center_directions always refuses")


@dataclass(frozen=True, eq=False, repr=False)
class Sample(Pictured):
    r"""Points drawn from a law, with what is known about them.

    Paper: the training set S of Section 3.2, with the cluster labels of Section 4.2.

    Attributes
    ----------
    law : Law
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
        The meaning of the coordinates; None for ambient ones.
    grouping : Grouping or None
        Which clusters share a fine label; None where each has one of its own. See `grouped`.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
    >>> test = train.fresh(10, rng=rng)                    # new points, the same centres
    >>> train.x.shape, test.x.shape, bool((test.centers == train.centers).all())
    ((100, 50), (10, 50), True)

    `from_points` makes a sample of points of your own.
    """

    law: Law
    centers: FloatArray
    x: FloatArray
    y: IntArray
    cluster: IntArray
    noise_norms: FloatArray
    frame: SpanFrame | None = None
    grouping: Grouping | None = None

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
        _ = self.label_of_cluster  # refuses a grouping for other sides

    @classmethod
    def from_points(
        cls,
        x: ArrayLike,
        cluster: ArrayLike,
        *,
        positive: int | Sequence[int] | None = None,
        centers: ArrayLike | None = None,
    ) -> Sample:
        r"""Make a sample of points that were measured, such as embeddings of images.

        Paper: Section 6.1, where the features of CIFAR-10 are the class means of its embeddings.

        The centres are the means of the clusters and the noise is the rest, so that
        :math:`x_i = \mu_j + \xi_i` and Lemma 5.1 holds with :math:`\alpha = \sigma = 1`. The law
        is a `MeasuredLaw`, and `fresh` refuses: hold back points of your own instead.

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
        >>> train = Sample.from_points(x, [0, 0, 1, 1])
        >>> train.centers.tolist(), train.y.tolist(), train.noise_norms.tolist()
        ([[2.0, 0.0], [0.0, 3.0]], [1, 1, -1, -1], [1.0, 1.0, 1.0, 1.0])
        >>> Sample.from_points([[2.0, 1.0]], [0], centers=train.centers)
        Sample(1 points, 2 clusters, 2 coordinates, float64)
        """
        points = checks.matrix("x", x)
        labels = np.asarray(cluster)
        if centers is None:
            checks.indices("cluster", labels, length=len(points), below=len(points))
            means = cluster_means(points, labels)
        else:
            means = checks.matrix("centers", centers, columns=points.shape[1])
        labels = checks.indices("cluster", labels, length=len(points), below=len(means))
        law = MeasuredLaw(len(means), points.shape[1], positive)
        norms = distances_from_means(points, labels, means)
        return cls(law, means.astype(points.dtype), points, law.signs[labels], labels, norms)

    def __len__(self) -> int:
        return len(self.x)

    def view(self) -> HeatMaps:
        """Return the cosines between the centres, those of positive clusters first."""
        order = np.argsort(-self.law.signs, kind="stable")
        title = f"Cosines between the centres of {self.law.clusters} clusters"
        view = mutual_cosines(title, self.centers[order], "cluster")
        if (np.diff(order) == 1).all():
            return view
        names = tuple(str(j + 1) for j in order)
        return replace(view, row_names=names, column_names=names)

    def __repr__(self) -> str:
        points, coordinates = self.x.shape
        groups = "" if self.grouping is None else f" with the labels {self.grouping}"
        return (
            f"Sample({points} points, {self.law.clusters} clusters{groups}, "
            f"{coordinates} coordinates{'' if self.frame is None else ' of the span'}, "
            f"{self.x.dtype})"
        )

    @cached_property
    def label_of_cluster(self) -> IntArray:
        """The fine label of each cluster: its number, or that of its group."""
        if self.grouping is None:
            return np.arange(self.law.clusters)
        return self.grouping.labels(self.law.signs)

    @property
    def in_span(self) -> bool:
        """Whether coordinates are those of the span, which leave the orientation open."""
        return self.frame is not None

    @property
    def label_signs(self) -> IntArray:
        """The side of each fine label, +1 or -1, shape (labels,)."""
        return self.law.signs if self.grouping is None else self.grouping.signs

    @property
    def labels(self) -> IntArray:
        """The fine label of each point, shape (points,)."""
        return self.label_of_cluster[self.cluster]

    def grouped(self, grouping: Grouping | str | None) -> Sample:
        """Return the same points with fine labels that some clusters share.

        Paper: none, an extension. A `MultiClassNet` that is drawn for it has a class for each
        label. None gives every cluster its own label again.

        Examples
        --------
        >>> from featavg import MultiClassNet, MultiCluster
        >>> rng = np.random.default_rng(0)
        >>> train = MultiCluster(clusters=5, dim=50).sample(100, rng=rng).grouped("1,2|2")
        >>> train.label_of_cluster, train.label_signs
        (array([0, 1, 1, 2, 2]), array([ 1,  1, -1]))
        >>> MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng)
        MultiClassNet(3 classes of 1 neuron, 50 coordinates, probability readout)
        """
        parsed = None if grouping is None else Grouping.parse(grouping)
        other = replace(self, grouping=parsed)
        if "gram" in vars(self):
            vars(other)["gram"] = self.gram  # the points are the same
        return other

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
        size = checks.count("size", size)
        rng = checks.generator(rng)
        drawn = self.law.draw_points(self.centers, size, rng, self.frame, training=False)
        return drawn if self.grouping is None else drawn.grouped(self.grouping)

    def gaussian(self, count: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw `count` vectors of N(0, I) in the coordinates of this sample.

        Random directions such as initial weights are drawn here, because their law depends on the
        coordinates of the sample.
        """
        size = count * self.x.shape[1] * self.x.itemsize
        checks.memory(f"{count} vectors of {self.x.shape[1]} coordinates", size)
        rng = checks.generator(rng)
        if self.frame is not None:
            return self.frame.gaussian(count, rng, self.x.dtype)
        return normal((count, self.x.shape[1]), rng, self.x.dtype)

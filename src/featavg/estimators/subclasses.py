"""Finding subclasses of classes by clustering, and their number by prediction strength."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn import config_context
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.checks import count
from featavg.errors import InputError
from featavg.estimators.weights import PointWeights

STRENGTH = 0.8
"""The minimum prediction strength of stable clusters (Tibshirani & Walther)."""

_DIRECTIONS = 20
_STARTS = 4
_CRITERION_POINTS = 2000
_Weighted = tuple[FloatArray, FloatArray]
# The minimum number of points of a cluster, on average, in each half.
_POINTS_PER_CLUSTER = 5


def _directions(x: FloatArray, is_train: BoolArray, weights: FloatArray) -> FloatArray:
    """Return the directions of the points of a class from its mean, as unit vectors.

    They are projected on the leading principal axes (at most 20) of the training points.
    """
    own = weights[is_train].astype(x.dtype)
    center = np.average(x[is_train], axis=0, weights=own)
    spread = (x[is_train] - center) * np.sqrt(own)[:, None]
    inside = (x - center) @ _principal_axes(spread)
    norms = np.linalg.norm(inside, axis=1, keepdims=True)
    return (inside / np.where(norms > 0, norms, 1)).astype(np.float64)


def _principal_axes(spread: FloatArray) -> FloatArray:
    """Return the leading principal axes of centred points, shape (coordinates, directions)."""
    points, coordinates = spread.shape
    wanted = min(_DIRECTIONS, points - 1, coordinates)
    if wanted < 1:
        return np.zeros((coordinates, 0), spread.dtype)
    if coordinates <= points:
        values, axes = _leading(spread.T @ spread, wanted)
        return axes[:, values > 0]
    values, inside = _leading(spread @ spread.T, wanted)
    return spread.T @ (inside[:, values > 0] / np.sqrt(values[values > 0]))


def _leading(gram: FloatArray, wanted: int) -> tuple[FloatArray, FloatArray]:
    size = len(gram)
    values, vectors = eigh(gram.astype(np.float64), subset_by_index=[size - wanted, size - 1])
    noise = 1e-10 * max(float(values[-1]), 0.0)
    return np.where(values > noise, values, 0.0)[::-1], vectors[:, ::-1]


def cluster(
    inside: FloatArray,
    number: int | None,
    *,
    largest: int,
    weights: FloatArray | None = None,
    rng: np.random.Generator,
) -> tuple[FloatArray, IntArray, FloatArray]:
    r"""Find clusters of points by k-means, with a given or chosen number of clusters.

    The chosen number is the largest one whose prediction strength (Tibshirani & Walther 2005) is at
    least 0.8: both halves of the points are clustered; the prediction strength of k is, for the
    worst cluster of one half, the share of pairs of its points that the clusters of the other half
    also put together. It is 1 for k = 1. The median over three random halvings is used, so that it
    does not depend on a single one.

    Returns the means of the clusters, the cluster of each point from 0, and the prediction strength
    of 1, 2, ... clusters, which is empty if the number was given.

    Parameters
    ----------
    inside : array of shape (points, directions)
        The points.
    number : int or None
        The number of clusters, or None to choose it.
    largest : int
        The largest number that is considered.
    weights : array of shape (points,), optional
        The weights of the points in the means.
    rng : numpy.random.Generator
        Draws the halvings and the starts of k-means.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centers = np.repeat(10 * np.eye(3, 5), 50, axis=0)
    >>> x = centers + rng.standard_normal((150, 5))
    >>> means, labels, strength = cluster(x, None, largest=6, rng=rng)
    >>> len(means), np.bincount(labels)
    (3, array([50, 50, 50]))
    """
    distinct = count_distinct(inside)
    strength: FloatArray = np.zeros(0)
    if number is None:
        largest = min(largest, distinct)
        strength = prediction_strengths(inside, largest, weights=weights, rng=rng)
        number = int(np.flatnonzero(strength >= STRENGTH)[-1]) + 1
    if number > distinct:
        raise InputError(
            f"subclasses must be at most the number of distinct points of each class; got "
            f"{number} subclasses for a class of {len(inside)} points, {distinct} of them distinct."
        )
    if number == 1:
        labels = np.zeros(len(inside), dtype=np.int64)
        return np.average(inside, axis=0, weights=weights)[None], labels, strength
    means = _k_means(inside, weights, number, rng, starts=_STARTS)
    return means.cluster_centers_, means.labels_.astype(np.int64), strength


def prediction_strengths(
    x: FloatArray, largest: int, *, weights: FloatArray | None = None, rng: np.random.Generator
) -> FloatArray:
    """Return the prediction strength of 1, ..., `largest` clusters.

    It is the median over three halvings or, if two are below the minimum of stable clusters, the
    larger of the two; 0 where halves have too few points for so many clusters.
    """
    some = rng.permutation(len(x))[:_CRITERION_POINTS]
    x, w = x[some], np.ones(len(some)) if weights is None else weights[some]
    strength = np.zeros(max(largest, 1))
    strength[0] = 1.0
    half = len(x) // 2
    # for so few points, threads and checks would cost more than the work itself
    quick = config_context(assume_finite=True, skip_parameter_validation=True)
    with quick, threadpool_limits(limits=1):
        for k in range(2, min(largest, half // _POINTS_PER_CLUSTER) + 1):
            values: list[float] = []
            while len(values) < 2 or (len(values) < 3 and max(values) >= STRENGTH):
                order = rng.permutation(len(x))
                one, other = order[:half], order[half:]
                values.append(_strength((x[one], w[one]), (x[other], w[other]), k, rng))
            strength[k - 1] = sorted(values)[1]
    return strength


def _strength(one: _Weighted, other: _Weighted, k: int, rng: np.random.Generator) -> float:
    """Return the prediction strength of the clusters of one half on the other."""
    predicted = _nearest(_k_means(*one, k, rng).cluster_centers_, other[0])
    own = _k_means(*other, k, rng).labels_
    together = np.zeros((k, k))
    np.add.at(together, (own, predicted), 1)
    sizes = together.sum(axis=1)
    pairs = (together * (together - 1)).sum(axis=1)
    shares = np.where(sizes > 1, pairs / np.maximum(sizes * (sizes - 1), 1), 0.0)
    return float(shares.min())


def _nearest(centers: FloatArray, points: FloatArray) -> IntArray:
    """Return the index of the centre nearest to each point."""
    distances = np.square(centers).sum(axis=1) - 2 * points @ centers.T
    return distances.argmin(axis=1).astype(np.int64)


def count_distinct(points: FloatArray) -> int:
    """Return how many of the points are distinct, up to rounding."""
    return len(np.unique(points.round(12), axis=0)) if points.shape[1] else 1


def _k_means(
    x: FloatArray, weights: FloatArray | None, k: int, rng: np.random.Generator, starts: int = 1
) -> Any:
    """Return k-means of k clusters, or of one for each distinct point if there are fewer."""
    seed = int(rng.integers(2**31))
    means = KMeans(min(k, count_distinct(x)), n_init=starts, random_state=seed)
    return means.fit(x, sample_weight=weights)


@dataclass(frozen=True, eq=False)
class Subclasses:
    """The subclasses of each class.

    Attributes
    ----------
    counts : dict
        The number of subclasses of each class.
    labels : array of shape (points,)
        The subclass of each training point, from 0; those of the first class come first. -1 for
        points of weight 0.
    class_of : array of shape (subclasses,)
        The class of each subclass, as an index into `classes_`.
    names : tuple
        The name of each subclass: as it was given, or its number within its class.
    strength : dict
        The prediction strength of 1, 2, ... subclasses of each class whose number was chosen.
    """

    counts: dict[Any, int]
    labels: IntArray
    class_of: IntArray
    names: tuple[Any, ...]
    strength: dict[Any, FloatArray]

    def __repr__(self) -> str:
        how = "found" if self.strength else "given"
        return f"Subclasses({' + '.join(str(n) for n in self.counts.values())}, {how})"


def given_subclasses(classes: Any, codes: IntArray, subclass: Any) -> Subclasses:
    """Return given subclasses; the same name in two classes denotes two subclasses."""
    names, inverse = np.unique(subclass, return_inverse=True)
    pairs = codes * len(names) + inverse.ravel()
    kinds, labels = np.unique(pairs, return_inverse=True)
    class_of = (kinds // len(names)).astype(np.int64)
    counts = dict(zip(classes.tolist(), np.bincount(class_of).tolist(), strict=True))
    called = tuple(names[kinds % len(names)].tolist())
    return Subclasses(counts, labels.astype(np.int64), class_of, called, {})


class SubclassSearch:
    """Finds subclasses of the training points, and assigns the other points to them.

    Paper: none, an extension; the paper's subclasses are given.

    `cluster` is applied to the directions of the points from the mean of their class, projected on
    its leading principal axes (at most 20), because the noise in all other dimensions and the
    distance from the mean carry no information about the subclass.

    Parameters
    ----------
    x, codes : arrays of shape (points, coordinates) and (points,)
        Scaled points, and the class of each as an index into `classes`.
    train : array of indices
        The training points.
    classes : array
        The class labels.
    weights : PointWeights, optional
        The weight of each point.
    rng : numpy.random.Generator
        The source of randomness.
    """

    def __init__(
        self,
        x: FloatArray,
        codes: IntArray,
        train: IntArray,
        classes: Any,
        *,
        weights: PointWeights | None = None,
        rng: np.random.Generator,
    ) -> None:
        self._points, self._classes, self.rng = len(x), classes, rng
        self.smallest_class = int(np.bincount(codes[train]).min())
        self._weights = np.ones(len(x)) if weights is None else weights.values
        is_train = np.isin(np.arange(len(x)), train)
        members = (np.flatnonzero(codes == code) for code in range(len(classes)))
        self._parts = [
            (own, is_train[own], _directions(x[own], is_train[own], self._weights[own]))
            for own in members
        ]

    @property
    def most(self) -> int:
        """The largest number of subclasses that can be found in each class: its distinct points."""
        return min(count_distinct(inside[is_train]) for _, is_train, inside in self._parts)

    def find(self, number: Any = "auto", *, largest: int = 10) -> Subclasses:
        """Find subclasses.

        Parameters
        ----------
        number : "auto", int or mapping
            The number of subclasses of each class; "auto" chooses it, see `cluster`.
        largest : int
            The largest number that "auto" considers.
        """
        labels = np.zeros(self._points, dtype=np.int64)
        counts: dict[Any, int] = {}
        strength: dict[Any, FloatArray] = {}
        names: list[int] = []
        for name, (own, is_train, inside) in zip(self._classes.tolist(), self._parts, strict=True):
            wanted = _number(number, name, self._classes)
            weights = self._weights[own[is_train]]
            means, own_labels, strengths = cluster(
                inside[is_train], wanted, largest=largest, weights=weights, rng=self.rng
            )
            labels[own] = len(names) + _nearest(means, inside)
            labels[own[is_train]] = len(names) + own_labels
            counts[name] = len(means)
            if len(strengths):
                strength[name] = strengths
            names += range(len(means))
        class_of = np.repeat(np.arange(len(self._classes)), list(counts.values()))
        return Subclasses(counts, labels, class_of, tuple(names), strength)


def _number(number: Any, name: Any, classes: Any) -> int | None:
    """Return the number of subclasses of a class, or None to choose it."""
    if isinstance(number, Mapping):
        unknown = [key for key in number if key not in classes.tolist()]
        if unknown:
            raise InputError(
                f"subclasses must name classes of y, {classes.tolist()}; got {unknown[0]!r}."
            )
        number = number.get(name, "auto")
    if isinstance(number, str) and number == "auto":
        return None
    if isinstance(number, str):
        raise InputError(
            f"subclasses must be 'auto', a whole number or a mapping of classes; got {number!r}."
        )
    return count("subclasses", number)

"""Finding subclasses inside classes, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans

from featavg._checks import FloatArray, InputError, IntArray, count

STRENGTH = 0.8
"""Prediction strength from which on clusters count as found (Tibshirani & Walther)."""

_DIRECTIONS = 20
_SPLITS = 3
_STARTS = 2
_CRITERION_POINTS = 2000
# Each half has to have several points for each cluster, else its clusters are accidents.
_POINTS_A_CLUSTER = 5


@dataclass(frozen=True, eq=False)
class ClassView:
    """The directions in which the points of one class differ most.

    Attributes
    ----------
    center : array of shape (coordinates,)
        The mean of the class.
    axes : array of shape (coordinates, directions)
        Its leading principal axes, at most 20.
    """

    center: FloatArray
    axes: FloatArray

    @classmethod
    def of(cls, x: FloatArray) -> ClassView:
        """Return the view of the points of one class."""
        center: FloatArray = x.mean(axis=0)
        spread = x - center
        points, coordinates = x.shape
        wanted = min(_DIRECTIONS, points - 1, coordinates)
        if wanted < 1:
            return cls(center, np.zeros((coordinates, 0), x.dtype))
        if coordinates <= points:
            values, axes = _leading(spread.T @ spread, wanted)
            return cls(center, axes[:, values > 0])
        values, inside = _leading(spread @ spread.T, wanted)
        inside = inside[:, values > 0] / np.sqrt(values[values > 0])
        return cls(center, spread.T @ inside)

    def directions(self, x: FloatArray) -> FloatArray:
        """Return unit vectors: where points lie from the mean of the class, without how far."""
        inside = (x - self.center) @ self.axes
        norms = np.linalg.norm(inside, axis=1, keepdims=True)
        return (inside / np.where(norms > 0, norms, 1)).astype(np.float64)


def _leading(gram: FloatArray, wanted: int) -> tuple[FloatArray, FloatArray]:
    size = len(gram)
    values, vectors = eigh(gram.astype(np.float64), subset_by_index=[size - wanted, size - 1])
    noise = 1e-10 * max(float(values[-1]), 0.0)
    return np.where(values > noise, values, 0.0)[::-1], vectors[:, ::-1]


@dataclass(frozen=True, eq=False)
class ClassClusters:
    """The subclasses of one class.

    Attributes
    ----------
    labels : array of shape (points,)
        The subclass of each point, from 0 on.
    strength : array of shape (candidates,)
        The prediction strength of 1, 2, ... subclasses; empty where the number was given.
    """

    view: ClassView
    centers: FloatArray
    labels: IntArray
    strength: FloatArray

    def assign(self, x: FloatArray) -> IntArray:
        """Return the subclass of other points of the class: that of the nearest centre."""
        inside = self.view.directions(x)
        distances = np.square(self.centers).sum(axis=1) - 2 * inside @ self.centers.T
        return distances.argmin(axis=1).astype(np.int64)


def cluster_class(
    x: FloatArray, number: int | None, *, largest: int, rng: np.random.Generator
) -> ClassClusters:
    r"""Find the subclasses of the points of one class.

    Paper: none, an extension; the paper's subclasses are given.

    Points are looked at from the mean of their class, along its leading principal axes (at most
    20) and by direction alone: noise in all other dimensions, and how far out a point is, say
    nothing about which subclass it is in. There k-means finds `number` clusters. Without a number,
    it is the largest one whose prediction strength (Tibshirani & Walther 2005) reaches 0.8: cluster
    both halves of the points; the prediction strength of k is, for the worst cluster of one half,
    the share of pairs of its points that the clusters of the other half also put together. It is 1
    for k = 1, and its mean over several halvings plus a standard error is what has to reach 0.8.

    Parameters
    ----------
    x : array of shape (points, coordinates)
        The points.
    number : int or None
        How many subclasses, or None to choose.
    largest : int
        The most that are considered.
    rng : numpy.random.Generator
        The source of halvings and starts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centers = np.repeat(10 * np.eye(3, 30), 50, axis=0)
    >>> found = cluster_class(centers + rng.standard_normal((150, 30)), None, largest=6, rng=rng)
    >>> len(found.centers), np.bincount(found.labels)
    (3, array([50, 50, 50]))
    """
    view = ClassView.of(x)
    inside = view.directions(x)
    distinct = len(np.unique(inside.round(12), axis=0)) if inside.shape[1] else 1
    strength: FloatArray = np.zeros(0)
    if number is None:
        largest = min(largest, distinct)
        strength = prediction_strengths(inside, largest, rng=rng)
        number = int(np.flatnonzero(strength >= STRENGTH)[-1]) + 1
    if number > distinct:
        raise InputError(
            f"subclasses must be at most the number of distinct points of each class; got "
            f"{number} subclasses for a class of {len(x)} points, {distinct} of them distinct."
        )
    if number == 1:
        labels = np.zeros(len(x), dtype=np.int64)
        return ClassClusters(view, inside.mean(axis=0, keepdims=True), labels, strength)
    means = _k_means(inside, number, rng, starts=2 * _STARTS)
    return ClassClusters(view, means.cluster_centers_, means.labels_.astype(np.int64), strength)


def prediction_strengths(
    x: FloatArray, largest: int, *, rng: np.random.Generator, splits: int = _SPLITS
) -> FloatArray:
    """Return the prediction strength of 1, ..., `largest` clusters, each plus a standard error.

    The mean over `splits` halvings; 0 where the halves have too few points for so many clusters.
    """
    x = x[rng.permutation(len(x))[:_CRITERION_POINTS]]
    strength = np.zeros(max(largest, 1))
    strength[0] = 1.0
    half = len(x) // 2
    for k in range(2, min(largest, half // _POINTS_A_CLUSTER) + 1):
        values = []
        for _ in range(splits):
            order = rng.permutation(len(x))
            values.append(_strength(x[order[:half]], x[order[half:]], k, rng))
        strength[k - 1] = np.mean(values) + np.std(values, ddof=1) / np.sqrt(splits)
    return strength


def _strength(one: FloatArray, other: FloatArray, k: int, rng: np.random.Generator) -> float:
    """Return the prediction strength of clusters of one half for the other."""
    predicted = _k_means(one, k, rng).predict(other)
    own = _k_means(other, k, rng).labels_
    together = np.zeros((k, k))
    np.add.at(together, (own, predicted), 1)
    sizes = together.sum(axis=1)
    pairs = (together * (together - 1)).sum(axis=1)
    shares = np.where(sizes > 1, pairs / np.maximum(sizes * (sizes - 1), 1), 0.0)
    return float(shares.min())


def _k_means(x: FloatArray, k: int, rng: np.random.Generator, starts: int = _STARTS) -> Any:
    seed = int(rng.integers(2**31))
    return KMeans(k, n_init=starts, random_state=seed).fit(x)


@dataclass(frozen=True, eq=False)
class Subclasses:
    """What the subclasses of each class are.

    Attributes
    ----------
    counts : dict
        The number of subclasses of each class.
    labels : array of shape (points,)
        The subclass of each training point, from 0 on; those of the first class come first.
    class_of : array of shape (subclasses,)
        The position in `classes_` of the class of each.
    names : tuple
        What each is called: as it was given, or its number within its class.
    strength : dict
        For classes whose number was chosen: the prediction strength of 1, 2, ... subclasses.
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
    """Return subclasses as they were given; the same name in two classes is two subclasses."""
    names, inverse = np.unique(subclass, return_inverse=True)
    pairs = codes * len(names) + inverse.ravel()
    kinds, labels = np.unique(pairs, return_inverse=True)
    class_of = (kinds // len(names)).astype(np.int64)
    counts = dict(zip(classes.tolist(), np.bincount(class_of).tolist(), strict=True))
    called = tuple(names[kinds % len(names)].tolist())
    return Subclasses(counts, labels.astype(np.int64), class_of, called, {})


def find_subclasses(
    x: FloatArray,
    codes: IntArray,
    train: IntArray,
    classes: Any,
    *,
    number: Any = "auto",
    largest: int = 10,
    rng: np.random.Generator,
) -> Subclasses:
    """Find subclasses in the training part of the points, and assign the others to them.

    Parameters
    ----------
    x, codes : arrays of shape (points, coordinates) and (points,)
        Scaled points, and the position of each one's class in `classes`.
    train : array of indices
        The points to look for subclasses in.
    classes : array
        The class labels.
    number : "auto", int or mapping
        How many subclasses each class has; "auto" chooses, see `cluster_class`.
    largest : int
        The most that "auto" considers.
    rng : numpy.random.Generator
        The source of randomness.
    """
    labels = np.zeros(len(x), dtype=np.int64)
    counts: dict[Any, int] = {}
    strength: dict[Any, FloatArray] = {}
    names: list[int] = []
    for code, name in enumerate(classes.tolist()):
        own = np.flatnonzero(codes == code)
        inner = own[np.isin(own, train)]
        found = cluster_class(x[inner], _number(number, name, classes), largest=largest, rng=rng)
        labels[own] = len(names) + found.assign(x[own])
        labels[inner] = len(names) + found.labels
        counts[name] = len(found.centers)
        if len(found.strength):
            strength[name] = found.strength
        names += range(len(found.centers))
    class_of = np.repeat(np.arange(len(classes)), list(counts.values()))
    return Subclasses(counts, labels, class_of, tuple(names), strength)


def _number(number: Any, name: Any, classes: Any) -> int | None:
    """Return how many subclasses a class has to have, or None to choose."""
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

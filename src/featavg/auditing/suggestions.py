"""Which points to label finely, so that few labels are worth most."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import column_or_1d

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError
from featavg.estimators import DecoupledClassifier
from featavg.estimators._base import CertifiedClassifier
from featavg.estimators.subclasses import SubclassSearch, cluster, count_distinct

_COORDINATES = 20


def suggest_labels(
    model: CertifiedClassifier,
    X: ArrayLike,
    y: ArrayLike,
    budget: int,
    *,
    random_state: Any = None,
) -> IntArray:
    """Return which points to label finely so that a small budget is worth most.

    Paper: none, an extension. On the paper's law one or two fine labels for each cluster are nearly
    as good as all of them (experiment ``label-supply``), if each cluster has one; a random choice
    misses some clusters and labels others many times.

    So every subclass that was found gets one label, the weakest subclass first; then each gets a
    second one, and so on. A subclass that gets several labels is divided into as many clusters, in
    case it is several subclasses in truth, and each cluster has its most typical point labelled:
    the one nearest to its centre. If there are more subclasses than labels, similar ones of a class
    are merged first. Weak is a subclass whose points have a small median certified radius, which is
    0 for a point that is misclassified.

    Parameters
    ----------
    model : AveragingClassifier, DecoupledClassifier or RadiusClassifier
        A fitted classifier, whose radii count. The subclasses are those of a `DecoupledClassifier`,
        and with other classifiers they are looked for in X, in the same way.
    X : array of shape (points, features)
        The points to choose from.
    y : array of shape (points,)
        Their classes.
    budget : int
        The number of points to choose.
    random_state : int, RandomState or None
        Controls the clustering.

    Returns
    -------
    array of shape (budget,)
        The indices of the chosen points, the most important one first; fewer than `budget` if X
        has fewer points.

    Examples
    --------
    >>> from featavg import DecoupledClassifier, MultiCluster
    >>> data = MultiCluster(clusters=6, dim=200).sample(300, rng=np.random.default_rng(0))
    >>> model = DecoupledClassifier(random_state=0).fit(data.x, data.y)
    >>> chosen = suggest_labels(model, data.x, data.y, 6, random_state=0)
    >>> sorted(data.cluster[chosen].tolist())                     # one of each hidden cluster
    [0, 1, 2, 3, 4, 5]
    """
    if not isinstance(model, CertifiedClassifier):
        raise InputError(
            "model must be an AveragingClassifier, a DecoupledClassifier or a RadiusClassifier; "
            f"got {type(model).__name__}."
        )
    wanted = checks.count("budget", budget)
    radii = model.predict_radius(X, exact=False)
    labels = _known(y, len(radii), model.classes_)
    radii = np.where(model.predict(X) == labels, radii, 0.0)
    scaled = model.scaling_.apply(check_array(X, dtype=np.float64))
    rng = np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
    found = subclasses_of(model, scaled, labels, rng)
    classes = np.searchsorted(model.classes_, labels)
    return _in_turns(scaled, _merged(scaled, found, classes, wanted), radii, wanted, rng)


def _known(y: ArrayLike, points: int, classes: Any) -> Any:
    """Return the classes of points; refuse those that are unknown."""
    labels = column_or_1d(checks.unmasked("y", y))
    if len(labels) != points:
        raise InputError(
            f"y must have one class for each of the {points} points; got {len(labels)}."
        )
    unknown = labels[~checks.contained(labels, classes)]
    if len(unknown):
        raise InputError(
            f"y must have classes that the model was fitted to; got {unknown.tolist()[0]!r}."
        )
    return labels


def subclasses_of(
    model: CertifiedClassifier, scaled: FloatArray, labels: Any, rng: np.random.Generator
) -> IntArray:
    """Return the subclass of each scaled point, one of its own class.

    That of the largest output for a `DecoupledClassifier`; with other classifiers subclasses are
    looked for.
    """
    present, own = np.unique(labels, return_inverse=True)
    if not isinstance(model, DecoupledClassifier):
        search = SubclassSearch(scaled, own, np.arange(len(scaled)), present, rng=rng)
        return search.find().labels
    class_of = model.subclasses_.class_of
    is_own = class_of[:, None] == np.searchsorted(model.classes_, present)[own][None, :]
    outputs = model.head_.net.outputs(scaled)
    return np.where(is_own, outputs, -np.inf).argmax(axis=0)


def _in_turns(
    x: FloatArray, groups: IntArray, radii: FloatArray, budget: int, rng: np.random.Generator
) -> IntArray:
    """Return typical points of all groups in turns, the weakest group first."""
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    members.sort(key=lambda own: float(np.median(radii[own])))
    distinct = [_distinct(x[own]) for own in members]
    shares = np.array(_shares(distinct, budget))
    repeated = [len(own) - d for own, d in zip(members, distinct, strict=True)]
    shares += _shares(repeated, budget - shares.sum())
    queues = [
        own[_typical(x[own], radii[own], share, rng)]
        for own, share in zip(members, shares.tolist(), strict=True)
    ]
    firsts = [queue[:d] for queue, d in zip(queues, distinct, strict=True)]
    repeats = [queue[d:] for queue, d in zip(queues, distinct, strict=True)]
    return np.array([*_taking_turns(firsts), *_taking_turns(repeats)])


def _taking_turns(queues: list[IntArray]) -> list[int]:
    turns = range(max(len(queue) for queue in queues))
    return [int(queue[turn]) for turn in turns for queue in queues if turn < len(queue)]


def _merged(x: FloatArray, groups: IntArray, classes: IntArray, number: int) -> IntArray:
    """Merge the most similar groups of a class until there are so many, or one of each class.

    Similar are groups whose union has the least additional variance (Ward).
    """
    names, groups = np.unique(groups, return_inverse=True)
    means = np.stack([x[groups == g].mean(axis=0) for g in range(len(names))])
    sizes = np.bincount(groups).astype(np.float64)
    class_of = np.array([classes[groups == g][0] for g in range(len(names))])
    left = list(range(len(names)))
    while len(left) > number:
        pairs = [(a, b) for a, b in combinations(left, 2) if class_of[a] == class_of[b]]
        if not pairs:
            break
        costs = [
            sizes[a] * sizes[b] / (sizes[a] + sizes[b]) * np.square(means[a] - means[b]).sum()
            for a, b in pairs
        ]
        a, b = pairs[int(np.argmin(costs))]
        means[a] = np.average(means[[a, b]], axis=0, weights=sizes[[a, b]])
        sizes[a] += sizes[b]
        groups = np.where(groups == b, a, groups)
        left.remove(b)
    return groups


def _shares(sizes: list[int], budget: int) -> list[int]:
    """Return how many points of each group are chosen if they take turns.

    Examples
    --------
    >>> _shares([2, 9, 9], 8)
    [2, 3, 3]
    """
    shares = [0] * len(sizes)
    while sum(shares) < min(budget, sum(sizes)):
        waiting = [i for i, size in enumerate(sizes) if shares[i] < size]
        for i in waiting[: budget - sum(shares)]:
            shares[i] += 1
    return shares


def _typical(x: FloatArray, radii: FloatArray, number: int, rng: np.random.Generator) -> IntArray:
    """Return so many points: one of each of as many clusters, the weakest cluster first."""
    if not number:
        return np.zeros(0, dtype=np.int64)
    inside = _leading_coordinates(x)
    # equal points may differ by rounding there, and different points may coincide
    distinct = min(_distinct(x), count_distinct(inside))
    centers, labels, _ = cluster(inside, min(number, distinct), largest=number, rng=rng)
    distances = np.linalg.norm(inside - centers[labels], axis=1)
    parts = [np.flatnonzero(labels == k) for k in np.unique(labels)]
    parts.sort(key=lambda part: float(np.median(radii[part])))
    chosen = [int(part[distances[part].argmin()]) for part in parts]
    order = np.argsort(distances, kind="stable")
    others = order[~np.isin(order, chosen)]  # where points are equal
    return np.array([*chosen, *others])[:number]


def _distinct(x: FloatArray) -> int:
    """Return the number of distinct points."""
    return len({point.tobytes() for point in x + 0.0})  # -0.0 is 0.0


def _leading_coordinates(x: FloatArray) -> FloatArray:
    """Return points in their leading principal axes: others have noise only."""
    centred = x - x.mean(axis=0)
    most = min(_COORDINATES, *x.shape)
    if most == x.shape[1]:
        return centred
    gram = centred @ centred.T if len(x) < x.shape[1] else centred.T @ centred
    size = len(gram)
    values, vectors = eigh(gram, subset_by_index=[size - most, size - 1])
    if len(x) < x.shape[1]:
        rounding = size * np.finfo(np.float64).eps * values[-1]
        return vectors * np.sqrt(np.where(values > rounding, values, 0.0))
    inside: FloatArray = centred @ vectors
    return inside

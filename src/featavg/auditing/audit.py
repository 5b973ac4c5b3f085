"""The audit of a feature matrix: networks trained on coarse labels and on subclasses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_consistent_length, check_X_y, column_or_1d

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.auditing.classifiers import Classifiers
from featavg.auditing.geometry import Geometry
from featavg.auditing.heldout import HeldOut
from featavg.auditing.labels import check_labels
from featavg.auditing.verdict import Audit
from featavg.errors import FeatureScaleWarning, InputError
from featavg.estimators.scaling import Scaling, leading_features
from featavg.estimators.subclasses import STRENGTH, given_subclasses

_RESAMPLES = 2000
_LEVEL = 0.95


def audit(
    X: Any,
    y: Any,
    subclass: Any = None,
    *,
    test_size: float = 0.25,
    points: int = 500,
    standardize: bool = False,
    direct: bool = True,
    budget: int | None = None,
    random_state: int = 0,
    progress: bool = False,
) -> Audit:
    """Measure whether coarse labels make a network average features, and what that costs.

    Paper: none, an extension: Figures 2, 3 and 10 for the user's own data. A share of the points is
    held out first; subclasses, means and networks are computed from the other points, and accuracy
    and robustness are measured on the held-out ones.

    Parameters
    ----------
    X : array or frame of shape (points, features)
        Embeddings, or any features.
    y : array of shape (points,)
        The coarse labels.
    subclass : array of shape (points,), optional
        Finer labels; found by `DecoupledClassifier` if not given.
    test_size : float
        The share of the points that is held out.
    points : int
        The maximum number of held-out points whose radius is computed.
    standardize : bool
        Whether each feature is centred and divided by its standard deviation on the training points
        first, for features in different units; radii are then in standard deviations.
    direct : bool
        Whether to measure a `RadiusClassifier` as well, whose training takes most of the time.
    budget : int, optional
        The number of points to suggest for finer labels, see `featavg.suggest_labels`; by default
        two for each subclass that was found.
    random_state : int
        The seed of the split and of all other randomness.
    progress : bool
        Whether to report progress on standard error.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> data = MultiCluster(clusters=6, dim=600).sample(400, rng=np.random.default_rng(0))
    >>> found = audit(data.x, data.y, direct=False)
    >>> found.subclasses, found.coarse.averaging_index > 0.7, found.fine.averaging_index < 0.1
    ({-1: 3, 1: 3}, True, True)
    >>> 1.4 < found.ratio < 1.8                                    # the paper: √3 = 1.73
    True
    >>> len(found.suggested)                                       # what to label next
    12
    """
    for name, values in (("X", X), ("y", y), ("subclass", subclass)):
        checks.unmasked(name, values)
    check_labels("y", column_or_1d(y))
    x, labels = check_X_y(X, y, dtype=[np.float64, np.float32])
    finer = None if subclass is None else column_or_1d(subclass)
    if finer is not None:
        check_labels("subclass", finer)
    check_consistent_length(x, labels, finer)
    checks.count("points", points)
    checks.seed("random_state", random_state)
    checks.count("budget", 1 if budget is None else budget)
    if not 0 < checks.scale("test_size", test_size) < 1:
        raise InputError(f"test_size must be between 0 and 1; got {test_size!r}.")
    train, test = _split(labels, finer, test_size, random_state)
    _check_spread(x[train])
    if checks.flag("standardize", standardize):
        x = _standardized(x, train)
    trained = Classifiers(checks.flag("direct", direct), random_state, progress)
    with trained.reporter, warnings.catch_warnings():
        warnings.simplefilter("ignore", FeatureScaleWarning)  # the audit has a hint of its own
        trained.fit(x[train], labels[train], None if finer is None else finer[train])
        found = trained.fine.subclasses_
        scaled = trained.fine.scaling_.apply(x[train])
        geometry = Geometry.of(scaled, found.labels, found.class_of)
        codes = np.searchsorted(trained.coarse.classes_, labels[test])
        chosen = np.random.default_rng(random_state).permutation(len(test))[:points]
        held = HeldOut(x[test].astype(np.float64), codes, chosen)
        coarse, fine, by_radius = trained.measure(held, geometry)
    accuracy, suggested = np.nan, np.zeros(0, dtype=np.int64)
    if finer is None:
        suggested = trained.suggested(x, labels, train, budget)
    else:
        wanted = _codes(found.names, found.class_of, finer[test], codes)
        accuracy = float((trained.fine.predict_subclass(x[test]) == wanted).mean())
    return Audit(
        classes=tuple(trained.coarse.classes_.tolist()),
        subclasses=found.counts,
        clear={name: _clear(strength) for name, strength in found.strength.items()},
        names=found.names,
        given=finer is not None,
        trained=len(train),
        held_out=len(test),
        measured=len(chosen),
        largest=_largest(labels[train], labels[test]),
        norm=float(np.sqrt(x.shape[1]) / trained.coarse.scaling_.factor),
        leading=leading_features(scaled),
        geometry=geometry,
        coarse=coarse,
        fine=fine,
        direct=by_radius,
        gain=_gain(coarse.radii, fine.radii, random_state),
        subclass_accuracy=accuracy,
        points=trained.points(x, labels, finer, test[chosen]),
        suggested=trained.points(x, labels, finer, suggested),
        standardized=standardize,
        random_state=random_state,
    )


def _standardized(x: FloatArray, train: IntArray) -> FloatArray:
    """Return features with mean 0 and variance 1 on the training points; constant ones are 0."""
    scaled = Scaling.of(x[train], "standard").apply(x)
    return scaled / scaled[train].std(axis=0).max()


def _split(
    labels: Any, finer: Any, test_size: float, random_state: int
) -> tuple[IntArray, IntArray]:
    """Return the indices of the training points and of the held-out points, stratified."""
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    kinds = codes if finer is None else given_subclasses(classes, codes, finer).labels
    if len(counts) < 2:
        raise InputError("y must have at least two classes; got one.")
    if len(counts) > len(labels) / 2 and all(map(_is_number, classes.tolist())):
        raise InputError(
            f"y must have classes; got {len(counts)} different numbers for {len(labels)} points, "
            f"such as {classes[0]}, which look like measurements or ids."
        )
    if counts.min() < 4:
        raise InputError(
            f"y must have at least 4 points of each class, because some are held out; got "
            f"{counts.min()} of {str(classes[counts.argmin()])!r}."
        )
    _, sizes = np.unique(kinds, return_counts=True)
    try:
        train, test = train_test_split(
            np.arange(len(labels)),
            test_size=test_size,
            random_state=random_state,
            stratify=kinds if sizes.min() > 1 else labels,
        )
    except ValueError:
        raise InputError(
            f"test_size must leave points of each class and subclass on both sides of the split; "
            f"got {test_size!r} for {len(labels)} points."
        ) from None
    return np.sort(train), np.sort(test)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _check_spread(x: FloatArray) -> None:
    """Refuse points that are equal up to rounding."""
    low, high = x.min(axis=0), x.max(axis=0)
    largest = np.abs(x).max()
    if not (high / 2 - low / 2 > 1e-12 * largest).any():  # halves, to avoid an overflow
        raise InputError(
            f"X must have points that differ; got {len(x)} training points that are all the same."
        )


def _largest(train: Any, test: Any) -> tuple[Any, float]:
    """Return the largest class of the training points, and its share of the held-out points."""
    classes, counts = np.unique(train, return_counts=True)
    largest = classes[counts.argmax()]
    return classes.tolist()[counts.argmax()], float((test == largest).mean())


def _clear(strength: FloatArray) -> int:
    """Return the largest number of subclasses that are stable."""
    return int(np.flatnonzero(strength >= STRENGTH)[-1]) + 1


def _codes(names: tuple[Any, ...], class_of: IntArray, finer: Any, classes: IntArray) -> IntArray:
    """Return the index of the subclass of each point; -1 for those not in the training points."""
    numbers = {pair: j for j, pair in enumerate(zip(names, class_of.tolist(), strict=True))}
    pairs = zip(np.asarray(finer).tolist(), classes.tolist(), strict=True)
    return np.array([numbers.get(pair, -1) for pair in pairs])


def _gain(coarse: FloatArray, fine: FloatArray, random_state: int) -> tuple[float, float, float]:
    """Return the difference of medians and its bootstrap interval over points."""
    rng = np.random.default_rng([random_state, 1])
    drawn = rng.integers(len(coarse), size=(_RESAMPLES, len(coarse)))
    differences = np.median(fine[drawn], axis=1) - np.median(coarse[drawn], axis=1)
    low, high = np.quantile(differences, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(np.median(fine) - np.median(coarse)), float(low), float(high)

"""The base class of the estimators."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from featavg import checks
from featavg.array_files import write_arrays
from featavg.arrays import FloatArray, IntArray
from featavg.errors import FeatureScaleWarning, InputError
from featavg.estimators.certified import warn_of_bounds
from featavg.estimators.frontier import Frontier
from featavg.estimators.heads import MAX_NODES, CertifiedHead
from featavg.estimators.plain_data import describe
from featavg.estimators.scaling import Scaling, different_scales, leading_features
from featavg.estimators.weights import PointWeights
from featavg.networks.shallow import ShallowNet
from featavg.robustness.radii import Radii

# With at most so many numbers, training in double precision takes little time.
_SMALL = 1_000_000


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What `fit` was given, checked.

    Attributes
    ----------
    x : array of shape (points, features)
        Scaled points. Points of weight 0 are left out.
    codes : array of shape (points,)
        The class of each point, as an index into `classes_`.
    weights : PointWeights
        The weight of each point.
    kept : array of shape (points,)
        The index of each point among those that were given.
    rng : numpy.random.Generator
        Seeded by the parameter `random_state`.
    """

    x: FloatArray
    codes: IntArray
    weights: PointWeights
    kept: IntArray
    rng: np.random.Generator


class CertifiedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier whose predictions have a certified radius.

    A subclass has an `__init__`, and a `fit` that sets `head_` and `frontier_`; what else is set is
    set by `_checked`. The head classifies points scaled by `scaling_`.
    """

    classes_: NDArray[Any]
    head_: CertifiedHead
    scaling_: Scaling
    frontier_: Frontier
    n_features_in_: int
    # parameters, which a subclass may have in its __init__
    scale: str | None = "norm"
    class_weight: Any = None
    validation_fraction: float = 0.2
    random_state: Any = None

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Fit the classifier."""

    def _checked(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Return checked and scaled training data; set `classes_` and `scaling_`."""
        for name, values in (("X", X), ("y", y), ("sample_weight", sample_weight)):
            checks.unmasked(name, values)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        given = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
        )
        kept = np.flatnonzero(given)
        if len(kept) < len(X):
            X, codes, given = X[kept], codes[kept], given[kept]
        weights = PointWeights.of(codes, self.classes_, self.class_weight, given)
        self.scaling_ = Scaling.of(X, self.scale, None if sample_weight is None else given)
        self._warn_of_scales(X)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(int(seed))
        points = self.scaling_.apply(X, np.float64 if X.size <= _SMALL else np.float32)
        return TrainingData(points, codes.astype(np.int64), weights, kept, rng)

    def _warn_of_scales(self, X: FloatArray) -> None:
        """Warn where features have very different scales and are not scaled one by one."""
        if self.scale == "standard":
            return
        if differ := different_scales(*leading_features(X)):
            warnings.warn(
                f'{differ}, and the largest decide; scale="standard" gives each the same variance '
                "(radii stay in the units of X).",
                FeatureScaleWarning,
                stacklevel=4,
            )

    def _held_out_share(self) -> float:
        """Return the checked parameter `validation_fraction`."""
        fraction = checks.scale("validation_fraction", self.validation_fraction)
        if not fraction < 1:
            raise InputError(f"validation_fraction must be below 1; got {fraction!r}.")
        return fraction

    def _validated(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        checks.unmasked("X", X)
        points: FloatArray = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return points

    def _scaled(self, X: ArrayLike) -> FloatArray:
        points = self._validated(X)
        return self.scaling_.apply(points)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the decision function.

        With two classes it is one number for each point, positive for the second class; with more
        classes it is one number for each point and class, and the largest decides.
        """
        scaled = self._scaled(X)
        return self.head_.decision(scaled)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each point."""
        scaled = self._scaled(X)
        return self.classes_[self.head_.predict(scaled)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of each class, shape (points, classes)."""
        scaled = self._scaled(X)
        return self.head_.probabilities(scaled)

    def predict_radius(
        self,
        X: ArrayLike,
        *,
        exact: bool = True,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Return a certified L2 radius of each prediction, in the units of X.

        No perturbation of a smaller norm changes the prediction. Where the search ends before its
        limits, which is the rule for the readout "argmax", there are perturbations that change it
        at this norm, to a millionth; otherwise the radius is a lower bound, and where it is more
        than 0.1 % below the upper one a `featavg.CertificationWarning` says so. `certify` returns
        both bounds.

        Parameters
        ----------
        X : array of shape (points, features)
            The points.
        exact : bool
            Whether to search for the exact radius. Otherwise the result is a certified lower bound
            that takes little time, without a warning.
        time_limit : float, optional
            Seconds for each point.
        n_jobs : int, optional
            The number of processes, -1 for one on each core; by default one on each core if there
            is enough work.
        """
        if not checks.flag("exact", exact):
            points = self._validated(X).astype(np.float64, copy=False)
            codes = self.head_.predict(self.scaling_.apply(points))
            return self.head_.after(self.scaling_).lower_radii(points, codes)
        radii = self._radii(X, None, time_limit=time_limit, n_jobs=n_jobs, certificates=False)
        warn_of_bounds(radii, stacklevel=2)
        return radii.lower

    def certify(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        time_limit: float | None = None,
        max_nodes: int = MAX_NODES,
        n_jobs: int | None = None,
    ) -> Radii:
        """Return bounds of the L2 radius of each point, in the units of X, and which are exact.

        With the readout "probability" they are the ends of a bracket; with others they agree
        unless a search reaches a limit.

        Parameters
        ----------
        X : array of shape (points, features)
            The points.
        y : array of shape (points,), optional
            Their classes; a point that is misclassified has the radius 0. Without them, the radius
            within which the prediction stays.
        time_limit : float, optional
            Seconds for each point, after which its bounds may differ.
        max_nodes : int
            The number of nodes of the search for each point, after which its bounds may differ.
        n_jobs : int, optional
            As in `predict_radius`.

        Returns
        -------
        Radii
            With `lower`, `upper`, `exact` and `perturbations`; for "argmax" also with proofs, which
            ``radii.verify(model, X)`` checks.
        """
        return self._radii(
            X, y, time_limit=time_limit, max_nodes=max_nodes, n_jobs=n_jobs, certificates=True
        )

    def _radii(
        self, X: ArrayLike, y: ArrayLike | None, *, n_jobs: int | None, **search: Any
    ) -> Radii:
        points = self._validated(X).astype(np.float64, copy=False)
        predicted = self.head_.predict(self.scaling_.apply(points))
        codes = predicted if y is None else self._codes(y, len(points))
        jobs = None if n_jobs is None else effective_n_jobs(n_jobs)
        # of points that are not scaled, so that radii are in the units of X
        head = self.head_.after(self.scaling_)
        return head.radii(points, codes, **({"max_nodes": MAX_NODES} | search), jobs=jobs)

    def _codes(self, y: ArrayLike, points: int) -> IntArray:
        """Return classes of points as integers; refuse those that are unknown."""
        labels = column_or_1d(checks.unmasked("y", y))
        if len(labels) != points:
            raise InputError(
                f"y must hold one class for each of the {points} points; got {len(labels)}."
            )
        equal = labels[:, None] == self.classes_
        known = equal.any(axis=1)
        if not known.all():
            choices = ", ".join(repr(name) for name in self.classes_.tolist())
            raise InputError(
                f"y must hold classes that the model was fitted to ({choices}); got "
                f"{labels[~known].tolist()[0]!r}."
            )
        return equal.argmax(axis=1)

    def to_shallow(self) -> ShallowNet:
        """Return the classifier as a `featavg.ShallowNet` that takes points as `predict` does.

        The scaling is folded in, and the labels are those of `classes_`, so that
        ``featavg.exact_radii(model, X, y)`` takes the model itself. Not for the readout
        "probability".
        """
        check_is_fitted(self)
        return self.head_.after(self.scaling_).to_shallow(self.classes_)

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file that `featavg.estimators.load` reads.

        Not saved are a `random_state` that is not a number, and Python types of labels beyond
        numbers and strings.
        """
        check_is_fitted(self)
        about, arrays = describe(self)
        try:
            write_arrays(Path(path), arrays, about)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"parameters must be numbers or strings to be saved; {error}."
            ) from None

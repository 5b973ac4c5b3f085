"""The base class of the estimators."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from featavg import checks
from featavg.array_files import write_arrays
from featavg.arrays import FloatArray, IntArray
from featavg.errors import CertificationWarning, InputError
from featavg.estimators.fitting import Plan, Task, fit_head
from featavg.estimators.frontier import Frontier
from featavg.estimators.heads import MAX_NODES, Head
from featavg.estimators.plain_data import describe
from featavg.estimators.scaling import Scaling
from featavg.networks.shallow import ShallowNet
from featavg.robustness.certify import exact_radii
from featavg.robustness.radii import Radii

# A lower bound of a radius that is nearer than this to the upper one needs no warning.
_CLOSE_ENOUGH = 1e-3


class HeadClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A two-layer network as a scikit-learn classifier, with a certified radius."""

    classes_: NDArray[Any]
    head_: Head
    scaling_: Scaling
    frontier_: Frontier
    n_iter_: int
    learning_rate_: float
    n_features_in_: int

    def __init__(
        self,
        width: int = 5,
        *,
        robustness: float = 1.0,
        learning_rate: float | str = "auto",
        max_iter: int = 300,
        validation_fraction: float = 0.2,
        init_scale: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.robustness = robustness
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.init_scale = init_scale
        self.random_state = random_state

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Fit the classifier."""

    def _checked(self, X: Any, y: Any) -> tuple[FloatArray, IntArray, np.random.Generator]:
        """Return scaled points, their classes as integers, and a random generator."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        self.scaling_ = Scaling.of(X)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        points = self.scaling_.apply(X, np.float32)
        return points, codes.astype(np.int64), np.random.default_rng(int(seed))

    def _plan(self, readout: str | None = None) -> tuple[Plan, float]:
        """Return the checked parameters of training, and the fraction of held-out points."""
        rate = self.learning_rate
        if isinstance(rate, str):
            checks.choice("learning_rate", rate, ("auto",))
        fraction = checks.scale("validation_fraction", self.validation_fraction)
        if not fraction < 1:
            raise InputError(f"validation_fraction must be below 1; got {fraction!r}.")
        plan = Plan(
            width=checks.count("width", self.width),
            init_scale=checks.scale("init_scale", self.init_scale),
            readout=readout,
            learning_rate=None if isinstance(rate, str) else checks.scale("learning_rate", rate),
            max_iter=checks.count("max_iter", self.max_iter),
            robustness=checks.scale("robustness", self.robustness, zero=True),
        )
        return plan, fraction

    def _train(self, task: Task, plan: Plan, rng: np.random.Generator) -> None:
        self.head_, self.frontier_, self.learning_rate_ = fit_head(task, plan, rng=rng)
        self.n_iter_ = int(self.frontier_.steps[self.frontier_.chosen])

    def _validated(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
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
        self, X: ArrayLike, *, time_limit: float | None = None, n_jobs: int | None = None
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
        time_limit : float, optional
            Seconds for each point.
        n_jobs : int, optional
            The number of processes, -1 for one on each core; by default one on each core if there
            is enough work.
        """
        radii = self.certify(X, time_limit=time_limit, n_jobs=n_jobs)
        bounds = radii.gap > _CLOSE_ENOUGH
        if bounds.any():
            warnings.warn(
                f"{bounds.sum()} of {len(radii)} radii are lower bounds only, up to "
                f"{100 * radii.gap.max():.2g} % below the shortest known perturbation that changes "
                "the prediction; certify returns both bounds of each.",
                CertificationWarning,
                stacklevel=2,
            )
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

        With the readout "probability" they are the ends of a bracket; with "argmax" they agree
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
        points = self._validated(X)
        scaled = self.scaling_.apply(points)
        codes = self.head_.predict(scaled) if y is None else self._codes(y, len(points))
        options: Any = {
            "time_limit": time_limit,
            "max_nodes": max_nodes,
            "jobs": None if n_jobs is None else effective_n_jobs(n_jobs),
        }
        if self.head_.readout == "argmax":
            return exact_radii(self.to_shallow(), points, self.classes_[codes], **options)
        found = self.head_.radii(scaled, codes, **options)
        factor = self.scaling_.factor
        return replace(
            found,
            lower=found.lower / factor,
            upper=found.upper / factor,
            perturbations=found.perturbations / factor,
        )

    def _codes(self, y: ArrayLike, points: int) -> IntArray:
        """Return classes of points as integers; refuse those that are unknown."""
        labels = column_or_1d(y)
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
        ``featavg.exact_radii(model, X, y)`` takes the model itself. Only for the readout "argmax".
        """
        check_is_fitted(self)
        shift, factor = self.scaling_.shift, self.scaling_.factor
        scaled = self.head_.to_shallow(self.classes_)
        return scaled.after_affine(np.full(len(shift), factor), -factor * shift)

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

"""The base class of the estimators."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from featavg import checks
from featavg.array_files import write_arrays
from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError
from featavg.estimators.fitting import Plan, Task, fit_head
from featavg.estimators.frontier import Frontier
from featavg.estimators.heads import Head
from featavg.estimators.plain_data import describe
from featavg.estimators.scaling import Scaling


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

    def _scaled(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        points = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self.scaling_.apply(points)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the decision function.

        With two classes it is one number for each point, positive for the second class; with more
        classes it is one number for each point and class, and the largest decides.
        """
        return self.head_.decision(self._scaled(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each point."""
        return self.classes_[self.head_.predict(self._scaled(X))]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of each class, shape (points, classes)."""
        return self.head_.probabilities(self._scaled(X))

    def predict_radius(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Return the certified L2 radius of each prediction, in the units of X.

        No perturbation of a smaller norm changes the prediction. The radius is exact (there are
        perturbations of any larger norm that do change it), except for the readout "probability",
        where it is a lower bound.

        Parameters
        ----------
        X : array of shape (points, features)
            The points.
        n_jobs : int, optional
            The number of processes, -1 for one on each core; by default one on each core if there
            is enough work.
        """
        points = self._scaled(X)
        predicted = self.head_.predict(points)
        jobs = None if n_jobs is None else effective_n_jobs(n_jobs)
        return self.head_.radii(points, predicted, jobs=jobs) / self.scaling_.factor

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

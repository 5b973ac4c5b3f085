"""The classifiers of `benchmarks/estimators.py`, each with certified L2 radii and one knob.

A classifier is made from a value of its knob and a seed. `fit` and `predict` are scikit-learn's;
`radii` returns, for each point, a radius within which the prediction stays and whether it is exact.
Knobs are relative to s, the root mean squared distance of the training points from their mean, so
that the same values suit every data set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

import featavg as fa
from peer_networks import (
    SECONDS_A_POINT,
    AdversarialNetwork,
    LipschitzNetwork,
    SmoothedNetwork,
)
from peer_prototypes import (
    GLVQ,
    Array,
    Certificates,
    KMeansPrototypes,
    NearestNeighbour,
    squared_distances,
)

# its offset is penalised too; a large constant feature makes that negligible
SVM = partial(LinearSVC, intercept_scaling=30)
ROBUSTNESS = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)


class Certified(Protocol):
    """A classifier with certified radii."""

    def fit(self, x: Array, y: Array) -> Any:
        """Train on points and labels 0 and 1."""

    def predict(self, x: Array) -> Array:
        """Return the label of each point."""

    def radii(self, x: Array) -> Certificates:
        """Return a radius within which each prediction stays, and whether it is exact."""


class Linear:
    """A linear classifier of scikit-learn; the knob is C times s² times the number of points."""

    def __init__(self, model: Callable[..., Any], knob: float, seed: int) -> None:
        self.model, self.knob, self.seed = model, knob, seed

    def fit(self, x: Array, y: Array) -> Linear:
        self.mean = x.mean(axis=0)
        self.unit = float(np.sqrt(np.square(x - self.mean).mean()))
        strength = self.knob / x.size
        self.fitted = self.model(C=strength, random_state=self.seed, max_iter=2000)
        self.fitted.fit((x - self.mean) / self.unit, y)
        return self

    def _scores(self, x: Array) -> Array:
        return self.fitted.decision_function((x - self.mean) / self.unit)

    def predict(self, x: Array) -> Array:
        return (self._scores(x) > 0).astype(np.int64)

    def radii(self, x: Array) -> Certificates:
        radii = np.abs(self._scores(x)) * self.unit / np.linalg.norm(self.fitted.coef_)
        return radii, np.ones(len(x), dtype=bool)


class KernelMachine:
    """A support vector machine with the kernel ``exp(-γ ||x - x'||²)``; the knob is (γ s², C).

    Its score minus its offset has a norm F in the kernel's space, where two points at the distance
    r are ``sqrt(2 - 2 exp(-γ r²))`` apart. So the sign of a score v stays up to the r at which F
    times this is |v|, which is at least the radius |v| / (F sqrt(2 γ)) of a Lipschitz bound.
    """

    def __init__(self, knob: tuple[float, float], seed: int) -> None:
        self.knob, self.seed = knob, seed

    def fit(self, x: Array, y: Array) -> KernelMachine:
        self.gamma = self.knob[0] / float(np.square(x - x.mean(axis=0)).sum(axis=1).mean())
        kernel = np.exp(-self.gamma * squared_distances(x, x))
        machine = SVC(C=self.knob[1], kernel="precomputed", cache_size=500).fit(kernel, y)
        self.points, self.weights = x[machine.support_], machine.dual_coef_[0]
        self.offset = float(machine.intercept_[0])
        inside = kernel[np.ix_(machine.support_, machine.support_)]
        self.norm = float(np.sqrt(self.weights @ inside @ self.weights))
        return self

    def _scores(self, x: Array) -> Array:
        return np.exp(-self.gamma * squared_distances(x, self.points)) @ self.weights + self.offset

    def predict(self, x: Array) -> Array:
        return (self._scores(x) > 0).astype(np.int64)

    def radii(self, x: Array) -> Certificates:
        share = np.square(self._scores(x) / self.norm) / 2
        with np.errstate(divide="ignore"):  # from 1 on, nothing changes the sign
            radii = np.sqrt(-np.log1p(-np.minimum(share, 1)) / self.gamma)
        return radii, np.zeros(len(x), dtype=bool)


class Ours:
    """An estimator of featavg; the knob is `robustness`."""

    def __init__(self, estimator: Callable[..., Any], knob: float, seed: int) -> None:
        self.model = estimator(robustness=knob, random_state=seed)

    def fit(self, x: Array, y: Array) -> Ours:
        self.model.fit(x, y)
        return self

    def predict(self, x: Array) -> Array:
        return self.model.predict(x)

    def radii(self, x: Array) -> Certificates:
        if isinstance(self.model, fa.RadiusClassifier):  # in closed form, for all points
            return self.model.predict_radius(x, exact=False), np.zeros(len(x), dtype=bool)
        found = self.model.certify(x, time_limit=SECONDS_A_POINT, n_jobs=1)
        return found.lower, found.exact


@dataclass(frozen=True)
class Model:
    """A row of the tables: a classifier and the values of its knob.

    Attributes
    ----------
    label : str
        What tables and the picture call it.
    make : callable
        Takes a value of the knob and a seed.
    knobs : tuple
        The values, of which held-out points choose one.
    knob : str
        What the knob is.
    searched : bool
        Whether a search takes so long that only some test points get a radius.
    family : str
        For our estimators, the name that their operating points share; empty for a peer.
    needs : str
        A module that may be missing.
    """

    label: str
    make: Callable[[Any, int], Certified]
    knobs: tuple[Any, ...]
    knob: str
    searched: bool = False
    family: str = ""
    needs: str = "torch"

    @property
    def is_available(self) -> bool:
        """Whether the module that it needs is installed."""
        return find_spec(self.needs) is not None


NUMBERS = (1, 2, 3, 5, 8, 12, 20, 40, 80)
STRENGTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
TEMPERATURES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)
KERNELS = tuple((gamma, C) for gamma in (0.06, 0.25, 1.0) for C in (0.1, 1.0, 10.0, 100.0))
SIGMAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
EPSILONS = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)

MODELS: dict[str, Model] = {
    "k-means": Model("k-means prototypes", KMeansPrototypes, NUMBERS, "prototypes a class"),
    "logistic": Model(
        "logistic regression", partial(Linear, LogisticRegression), STRENGTHS, "C s² points"
    ),
    "linear-svm": Model("linear SVM", partial(Linear, SVM), STRENGTHS, "C s² points"),
    "glvq": Model("GLVQ", GLVQ, NUMBERS, "prototypes a class"),
    "1-nn": Model("1-NN", NearestNeighbour, (None,), ""),
    "rbf-svm": Model("RBF SVM", KernelMachine, KERNELS, "γ s², C"),
    "lipschitz": Model(
        "1-Lipschitz network, 64", LipschitzNetwork, TEMPERATURES, "temperature / s", needs="deel"
    ),
    "lipschitz-2": Model(
        "1-Lipschitz network, 64-64",
        partial(LipschitzNetwork, hidden=(64, 64)),
        TEMPERATURES,
        "temperature / s",
        needs="deel",
    ),
    "smoothing": Model("randomised smoothing", SmoothedNetwork, SIGMAS, "σ / s"),
    "adversarial": Model(
        "adversarial training", AdversarialNetwork, EPSILONS, "ε / s", searched=True
    ),
}
"""The peers, k-means first because its radius is the unit of certified accuracies."""


POINTS = (0, 2)
"""Further operating points of the peers: standard errors of accuracy that their knobs may cost."""


def model_of(row: str) -> Model:
    """Return the model of a row, such as "glvq", or "glvq@2" for another operating point."""
    return MODELS[row.partition("@")[0]]


def label_of(row: str) -> str:
    """Return what tables call a row."""
    point = row.partition("@")[2]
    return model_of(row).label + (f", at {point} s.e." if point else "")


def add_ours(key: str, estimator: Callable[..., Any], name: str, *, searched: bool = True) -> None:
    """Add a row for each operating point of an estimator of ours."""
    for value in ROBUSTNESS:
        MODELS[f"{key}-{value:g}"] = Model(
            f"{name}, {value:g}",
            partial(Ours, estimator),
            (value,),
            "robustness",
            searched=searched,
            family=name,
        )


# ------------------------------------------------------------------------------------------------
# Our estimators; with `searched=False` radii take so little time that all points get one.
add_ours("radius", fa.RadiusClassifier, "RadiusClassifier", searched=False)
add_ours("averaging", fa.AveragingClassifier, "AveragingClassifier")
add_ours("decoupled", fa.DecoupledClassifier, "DecoupledClassifier")
# ------------------------------------------------------------------------------------------------

"""The network trained on fine labels as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from featavg import checks
from featavg.arrays import IntArray
from featavg.errors import InputError
from featavg.estimators.choice import choose_subclasses
from featavg.estimators.fitting import Split, Task, inner_split, measure_frontier
from featavg.estimators.paper_networks import HeadClassifier
from featavg.estimators.subclasses import Subclasses, SubclassSearch, given_subclasses
from featavg.networks.multiclass import READOUTS


class DecoupledClassifier(HeadClassifier):
    r"""The paper's fine-label network as a scikit-learn classifier of coarse labels.

    Paper: Section 4.2; finding subclasses, more than two classes, and when to stop are extensions.

    It is trained to distinguish subclasses and predicts classes. So it learns features one by one
    and is more robust than `AveragingClassifier`, by a factor of :math:`\sqrt p` for two classes of
    p subclasses each with orthogonal means (:math:`\sqrt{k/2}` in the paper, with k = 2p). It is a
    learner of the paper, to study this effect; the classifier for use is `RadiusClassifier`.

    Parameters
    ----------
    subclasses : "auto", int or mapping
        The number of subclasses to find in each class, or in each class by its label, if `fit` gets
        no subclasses. "auto" uses the largest number that is stable under halving the points, or a
        larger one if that is more robust on held-out points, see
        `featavg.estimators.choice.choose_subclasses`.
    readout : {"argmax", "probability", "logit-sum"}
        Whether the subclass with the largest output decides (radii are exact), or the sum of the
        probabilities of the subclasses of each class (radii have certified bounds), or the sum of
        their outputs (radii are exact, and much smaller: for comparison).
    width : int
        h, the number of neurons for each subclass.
    max_subclasses : int
        The maximum number of subclasses of a class that "auto" considers.
    scale, class_weight, robustness, learning_rate, max_iter, validation_fraction, init_scale
        As in `AveragingClassifier`.
    random_state : int, RandomState or None
        As in `AveragingClassifier`.

    Attributes
    ----------
    subclasses_ : Subclasses
        The number of subclasses, the subclass of each training point, and the prediction strengths.
    classes_, frontier_, head_, scaling_, n_iter_, learning_rate_, n_features_in_, feature_names_in_
        As in `AveragingClassifier`.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=6, dim=600).sample(300, rng=rng)
    >>> test = train.fresh(100, rng=rng)
    >>> model = DecoupledClassifier(random_state=0).fit(train.x, train.y)
    >>> model.subclasses_                                       # found without fine labels
    Subclasses(3 + 3, found)
    >>> model.score(test.x, test.y), bool(np.median(model.predict_radius(test.x)) > 15)
    (1.0, True)
    """

    subclasses_: Subclasses

    def __init__(
        self,
        subclasses: str | int | Mapping[Any, Any] = "auto",
        *,
        readout: str = "argmax",
        width: int = 1,
        max_subclasses: int = 12,
        scale: str | None = "norm",
        class_weight: Any = None,
        robustness: float = 1.0,
        learning_rate: float | str = "auto",
        max_iter: int = 300,
        validation_fraction: float = 0.2,
        init_scale: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            width,
            scale=scale,
            class_weight=class_weight,
            robustness=robustness,
            learning_rate=learning_rate,
            max_iter=max_iter,
            validation_fraction=validation_fraction,
            init_scale=init_scale,
            random_state=random_state,
        )
        self.subclasses = subclasses
        self.readout = readout
        self.max_subclasses = max_subclasses

    def fit(
        self, X: Any, y: Any, subclass: Any = None, sample_weight: Any = None
    ) -> DecoupledClassifier:
        """Train on points, their classes, and their subclasses if they are known.

        Parameters
        ----------
        X : array or frame of shape (points, features)
            The points; sparse matrices are refused.
        y : array of shape (points,)
            Their classes.
        subclass : array of shape (points,), optional
            Their subclasses; found if not given. The same name in two classes denotes two
            subclasses.
        sample_weight : array of shape (points,), optional
            Their weights, as in `AveragingClassifier`.
        """
        plan, fraction = self._plan(checks.choice("readout", self.readout, READOUTS))
        data = self._checked(X, y, sample_weight)
        weights, halves, searching = data.rng.spawn(3)

        def task(found: Subclasses, split: Split) -> Task:
            return Task(
                data.x,
                found.labels,
                found.class_of,
                data.weights,
                split,
                self.scaling_,
                weights,
            )

        if subclass is not None:
            self.subclasses_ = given_subclasses(
                self.classes_, data.codes, _names(subclass, X)[data.kept]
            )
            split = inner_split(self.subclasses_.labels, fraction, halves)
        else:
            split = inner_split(data.codes, fraction, halves)
            search: Any = {"weights": data.weights, "rng": searching}
            self.subclasses_ = choose_subclasses(
                SubclassSearch(data.x, data.codes, split.train, self.classes_, **search),
                split,
                lambda found, part, short: measure_frontier(task(found, part), short, rng=halves),
                plan,
                wanted=self.subclasses,
                largest=checks.count("max_subclasses", self.max_subclasses),
            )
        self._train(task(self.subclasses_, split), plan, halves)
        labels = np.full(len(column_or_1d(y)), -1)
        labels[data.kept] = self.subclasses_.labels
        self.subclasses_ = replace(self.subclasses_, labels=labels)
        return self

    def predict_subclass(self, X: ArrayLike) -> IntArray:
        """Return the subclass of each point, as numbered in `subclasses_.labels`."""
        scaled = self._scaled(X)
        return self.head_.net.outputs(scaled).argmax(axis=0)


def _names(subclass: Any, X: Any) -> Any:
    """Return the name of the subclass of each point, none of them missing."""
    names = column_or_1d(checks.unmasked("subclass", subclass))
    check_consistent_length(X, names)
    given = np.asarray(subclass, dtype=object).ravel().tolist()  # in text NaN would be "nan"
    infinite = names.dtype.kind == "f" and not np.isfinite(names).all()
    if infinite or any(checks.is_missing(name) for name in given):
        raise InputError("subclass must not have missing values; got NaN, infinity or None.")
    return names

"""The coarse-label network as an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from featavg import checks
from featavg.estimators._base import HeadClassifier
from featavg.estimators.fitting import Task, fit_head, inner_split
from featavg.estimators.heads import coarse_head


class AveragingClassifier(HeadClassifier):
    r"""The paper's coarse-label network as a scikit-learn classifier.

    Paper: Section 3.2; more than two classes, and when to stop, are extensions.

    Trained by full-batch gradient descent from tiny weights, it learns averages of the features of
    each class, which costs robustness: the baseline that `DecoupledClassifier` is better than.

    Parameters
    ----------
    width : int
        m, neurons for each class.
    robustness : float
        Where to stop. Training longer raises accuracy a little and lowers the radius a lot; `fit`
        records both on held-out points and stops at the largest median radius whose accuracy is
        within this many standard errors of the best. 0 is the most accurate.
    learning_rate : float or "auto"
        "auto" takes 1/L, L being the largest curvature, from the Gram matrix; see
        `featavg.stable_learning_rate`.
    max_iter : int
        The most gradient steps.
    validation_fraction : float
        The share of each class that is held out while looking for where to stop. Then the network
        is trained on everything up to there.
    init_scale : float
        The standard deviation of initial weights and biases.
    random_state : int, RandomState or None
        The source of randomness.

    Attributes
    ----------
    classes_ : array
        The class labels.
    frontier_ : Frontier
        Steps, accuracy and median radius along training.
    head_ : Head
        The network and its readout, for points scaled by `scaling_`.
    scaling_ : Scaling
        The mean that is subtracted and the one factor; the network's weights belong to such points.
    n_iter_, learning_rate_ : int, float
        The gradient steps taken, and their learning rate.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=6, dim=600).sample(300, rng=rng)
    >>> test = train.fresh(100, rng=rng)
    >>> model = AveragingClassifier(random_state=0).fit(train.x, train.y)
    >>> model.score(test.x, test.y), bool(np.median(model.predict_radius(test.x)) < 13)
    (1.0, True)
    """

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

    def fit(self, X: Any, y: Any) -> AveragingClassifier:
        """Train on points and their classes.

        Parameters
        ----------
        X : array or frame of shape (points, features)
            The points.
        y : array of shape (points,)
            Their classes.
        """
        width = checks.count("width", self.width)
        scale = checks.scale("init_scale", self.init_scale)
        plan, fraction = self._plan(), self._fraction()
        points, codes, rng = self._checked(X, y)
        weights, halves = rng.spawn(2)
        task = Task(
            points,
            codes,
            np.arange(len(self.classes_)),
            lambda sample: coarse_head(sample, width=width, scale=scale, rng=weights),
            inner_split(codes, fraction, halves),
            self.scaling_,
        )
        self._keep(fit_head(task, plan, rng=halves))
        return self

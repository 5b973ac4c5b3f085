"""The network trained on coarse labels as an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from featavg.estimators.fitting import Task, inner_split
from featavg.estimators.paper_networks import HeadClassifier


class AveragingClassifier(HeadClassifier):
    r"""The paper's coarse-label network as a scikit-learn classifier.

    Paper: Section 3.2; more than two classes, and when to stop, are extensions.

    Trained by full-batch gradient descent from tiny weights, it learns averages of the features of
    each class, which costs robustness. It is a learner of the paper, to study this effect, and the
    baseline for `DecoupledClassifier`; the classifier for use is `RadiusClassifier`.

    Parameters
    ----------
    width : int
        m, the number of neurons for each class.
    scale : {"norm", "standard"} or None
        How points are scaled before they enter the network. "norm": shifted by their mean, and
        multiplied by one factor. "standard": each feature is divided by its standard deviation, for
        features in different units. None: not at all. Radii are always in the units of X.
    class_weight : "balanced", mapping or None
        The weight of each class, by its label; 1 where none is given. "balanced" gives all classes
        the same weight in total. Weights count in training and in the accuracy by which training is
        stopped.
    robustness : float
        Controls early stopping. Longer training raises the accuracy a little and lowers the radius
        a lot; `fit` measures both on held-out points and stops at the largest median radius whose
        accuracy is within this many standard errors of the best. 0 is the most accurate.
    learning_rate : float or "auto"
        "auto" uses 1/L, where L is the largest curvature, see `featavg.stable_learning_rate`.
    max_iter : int
        The maximum number of gradient steps.
    validation_fraction : float
        The share of each class that is held out to choose the number of steps. Then the network is
        trained on all points for this number of steps.
    init_scale : float
        The standard deviation of the initial weights and biases.
    random_state : int, RandomState or None
        Controls the initial weights, the held-out points and the search for subclasses.

    Attributes
    ----------
    classes_ : array
        The class labels.
    frontier_ : Frontier
        Steps, accuracy and median radius during training.
    head_ : Head
        The network and its readout, for points scaled by `scaling_`.
    scaling_ : Scaling
        The shift, and the factor or factors, by which points are scaled before they enter the
        network.
    n_iter_, learning_rate_ : int, float
        The number of gradient steps, and their learning rate.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AveragingClassifier:
        """Train on points and their classes.

        Parameters
        ----------
        X : array or frame of shape (points, features)
            The points; sparse matrices are refused.
        y : array of shape (points,)
            Their classes.
        sample_weight : array of shape (points,), optional
            Their weights, at least 0, to be multiplied by those of their classes. A whole weight
            counts repetitions of a point (as far as the random choice of held-out points allows,
            since repeated points may be on both sides of it); points of weight 0 do not count.
        """
        plan, fraction = self._plan()
        data = self._checked(X, y, sample_weight)
        weights, halves = data.rng.spawn(2)
        split = inner_split(data.codes, fraction, halves)
        classes = np.arange(len(self.classes_))
        task = Task(data.x, data.codes, classes, data.weights, split, self.scaling_, weights)
        self._train(task, plan, halves)
        return self

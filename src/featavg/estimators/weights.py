"""The weights of points: those of their classes times those that `fit` was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.errors import InputError
from featavg.networks.loss import Loss
from featavg.networks.weighted_loss import Weighted


@dataclass(frozen=True, eq=False)
class PointWeights:
    """Positive weights of points, in scikit-learn's meaning: a weight of 2 is a repeated point.

    Attributes
    ----------
    values : array of shape (points,)
        The weight of each point; their mean is 1.
    repeats : array of shape (points,)
        How many equal points each one stands for.
    """

    values: FloatArray
    repeats: FloatArray

    @classmethod
    def of(
        cls, codes: IntArray, classes: NDArray[Any], class_weight: Any, sample_weight: FloatArray
    ) -> PointWeights:
        """Return the weights of points of positive weight.

        Whole weights count repetitions. Others say how much a point matters, and it is still one
        point: more weight is no more evidence.

        Parameters
        ----------
        codes : array of shape (points,)
            The class of each point, as an index into `classes`.
        classes : array
            The class labels.
        class_weight : "balanced", mapping or None
            The parameter of the estimator.
        sample_weight : array of shape (points,)
            The weight of each point, above 0.
        """
        of_class = _class_weights(codes, classes, class_weight, sample_weight)
        values = sample_weight * of_class[codes]
        whole = (sample_weight == np.round(sample_weight)).all()
        repeats = sample_weight if whole else np.ones(len(values))
        return cls(values / values.mean(), repeats)

    @property
    def are_equal(self) -> bool:
        """Whether all points have the same weight."""
        return bool((self.values == self.values[0]).all())

    @property
    def effective_points(self) -> float:
        r"""The number of equally weighted points whose mean has the same standard error.

        It is :math:`(\sum w)^2 / \sum w^2`, over points and their repetitions (Kish 1965).
        """
        return float(self.values.sum() ** 2 / (np.square(self.values) / self.repeats).sum())

    def some(self, points: IntArray) -> PointWeights:
        """Return the weights of some points, again with the mean 1."""
        values = self.values[points]
        return PointWeights(values / values.mean(), self.repeats[points])

    def loss(self, loss: Loss) -> Loss:
        """Return a loss with these weights."""
        return loss if self.are_equal else Weighted(loss, self.values)

    def share(self, is_so: BoolArray) -> float:
        """Return the share of the weight of which something is so; exactly 1 if it always is."""
        return 1 - float(self.values @ ~is_so / self.values.sum())

    def standard_error(self, values: FloatArray) -> float:
        """Return the standard error of the weighted mean of values.

        Examples
        --------
        >>> weights = PointWeights(np.array([0.5, 1.5]), np.array([1.0, 3.0]))
        >>> weights.standard_error(np.array([0.0, 2.0]))      # the same as of 0, 2, 2, 2
        0.4330127018922193
        """
        mean = np.average(values, weights=self.values)
        variance = np.average(np.square(values - mean), weights=self.values)
        return float(np.sqrt(variance / self.effective_points))

    def median(self, values: FloatArray) -> float:
        """Return the weighted median: half of the weight is on either side.

        If that holds between two values it is halfway between them, as for repeated points.

        Examples
        --------
        >>> weights = PointWeights(np.array([0.4, 0.8, 1.8]), np.ones(3))
        >>> weights.median(np.array([1.0, 2.0, 5.0]))
        5.0
        """
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self.values[order])
        share = below / below[-1]
        first = np.searchsorted(share, 0.5 - 1e-12)
        last = min(int(np.searchsorted(share, 0.5 + 1e-12)), len(order) - 1)
        return float((values[order[first]] + values[order[last]]) / 2)


def _class_weights(
    codes: IntArray, classes: NDArray[Any], class_weight: Any, sample_weight: FloatArray
) -> FloatArray:
    """Return the weight of each class; refuse classes that are left without weight."""
    is_balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (class_weight is None or is_balanced or isinstance(class_weight, Mapping)):
        raise InputError(
            "class_weight must be 'balanced', a mapping from classes to weights, or None; got "
            f"{class_weight!r}."
        )
    sizes = np.bincount(codes, weights=sample_weight, minlength=len(classes))
    if class_weight is None or not sizes.all():
        weights = np.ones(len(classes))
    elif isinstance(class_weight, Mapping):
        weights = compute_class_weight(dict(class_weight), classes=classes, y=classes[codes])
    else:
        weights = sizes.sum() / (len(sizes) * sizes)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(f"class_weight must be at least 0 and finite; got {class_weight!r}.")
    left = sizes * weights
    if not left.all():
        name = classes.tolist()[int(left.argmin())]
        raise InputError(
            "each class must have points of positive weight (class_weight times sample_weight); "
            f"got none of {name!r}."
        )
    return weights

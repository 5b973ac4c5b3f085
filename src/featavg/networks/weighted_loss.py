"""A loss in which points have weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray, frozen
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.loss import Loss


class Weighted(Loss):
    r"""Another loss, times a weight :math:`w_i` for each point of the sample.

    Paper: none, an extension. Training minimises :math:`\frac1n \sum_i w_i \ell_i`. So whole
    weights with the mean w stand for repeated points, at w times the learning rate; with a mean of
    1 the learning rate means what it means without weights. Points of weight 0 are not trained on.

    Parameters
    ----------
    loss : Loss
        :math:`\ell`.
    weights : array of shape (points,)
        Numbers of at least 0, one for each point of the sample that it is used with.

    Examples
    --------
    >>> from featavg import Logistic, MultiCluster
    >>> loss = Weighted(Logistic(), [1.0, 3.0])
    >>> loss
    Weighted(Logistic(smoothing=0.0), 2 points)
    >>> train = MultiCluster(clusters=4, dim=50).sample(2, rng=np.random.default_rng(0))
    >>> loss.losses(np.zeros((1, 2)), loss.targets(1, train)).round(3)
    array([0.693, 2.079])
    """

    def __init__(self, loss: Loss, weights: ArrayLike) -> None:
        if not isinstance(loss, Loss):
            raise InputError(f"loss must be a Loss; got {loss!r}.")
        w = checks.vector("weights", weights).astype(np.float64)
        if not len(w) or w.min() < 0 or not w.max() > 0:
            raise InputError("weights must be at least 0, and one of them above 0.")
        self.loss, self.weights = loss, frozen(w)

    def __repr__(self) -> str:
        return f"Weighted({self.loss!r}, {len(self.weights)} points)"

    @property
    def log_lipschitz(self) -> bool:  # type: ignore[override]
        """That of the loss: a weight changes no ratio of residuals."""
        return self.loss.log_lipschitz

    @property
    def curvature(self) -> float | None:  # type: ignore[override]
        """That of the loss, times the largest weight."""
        inner = self.loss.curvature
        return None if inner is None else inner * float(self.weights.max())

    def curvatures(self, points: int) -> FloatArray | None:
        """Return those of the loss, times the weights."""
        self._check(points)
        inner = self.loss.curvatures(points)
        return None if inner is None else inner * self.weights

    def _check(self, points: int) -> None:
        if len(self.weights) != points:
            raise InputError(
                f"weights must hold one number for each of the {points} points of the sample; got "
                f"{len(self.weights)}."
            )

    def output_signs(self, outputs: int, sample: Sample) -> IntArray | None:
        """Return those of the loss that is weighted."""
        return self.loss.output_signs(outputs, sample)

    def targets(self, outputs: int, sample: Sample) -> WeightedTargets:
        """Return the targets of the loss, together with the weights."""
        self._check(len(sample))
        return WeightedTargets(self.loss.targets(outputs, sample), self.weights)

    def losses(self, outputs: FloatArray, targets: WeightedTargets) -> FloatArray:
        """Return the weighted loss of each point, shape (points,)."""
        return targets.weights * self.loss.losses(outputs, targets.inner)

    def residuals(self, outputs: FloatArray, targets: WeightedTargets) -> FloatArray:
        """Return minus the derivative of each point's weighted loss by each output."""
        residuals = self.loss.residuals(outputs, targets.inner)
        return targets.weights.astype(residuals.dtype) * residuals

    def log_losses(self, outputs: FloatArray, targets: WeightedTargets) -> FloatArray:
        """Return the logarithm of each weighted loss."""
        return targets.log_weights + self.loss.log_losses(outputs, targets.inner)

    def log_pulls(self, outputs: FloatArray, targets: WeightedTargets) -> FloatArray:
        """Return the logarithm of the weighted pull of each point."""
        return targets.log_weights + self.loss.log_pulls(outputs, targets.inner)

    def directions(self, outputs: FloatArray, targets: WeightedTargets) -> FloatArray:
        """Return the residuals divided by the pull of their point, which weights do not change."""
        return self.loss.directions(outputs, targets.inner)

    def margins(self, outputs: FloatArray, targets: WeightedTargets) -> FloatArray:
        """Return by how much each point is right, which weights do not change."""
        return self.loss.margins(outputs, targets.inner)


@dataclass(frozen=True, eq=False)
class WeightedTargets:
    """Targets of a loss, and the weights of their points, so that both are batched together."""

    inner: Any
    weights: FloatArray

    @property
    def log_weights(self) -> FloatArray:
        """The logarithm of each weight."""
        with np.errstate(divide="ignore"):  # a weight of 0
            return np.log(self.weights)

    def __getitem__(self, index: tuple[Any, ...]) -> WeightedTargets:
        """Return those of some points: the points are on the last axis."""
        return WeightedTargets(self.inner[index], self.weights[index])

"""Losses: the functions of outputs and labels that training minimises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError


class Loss(ABC):
    r"""The loss of each point, as a function of its outputs and its target.

    Paper: Sections 3.2 and 4.2 for `Logistic` and `CrossEntropy`; others are extensions. A loss of
    your own is a subclass with `losses` and `residuals`. Outputs have the shape (outputs, points);
    targets are what `targets` makes of the labels of a sample, with the points on the last axis.

    Attributes
    ----------
    log_lipschitz : bool
        Whether moving every output by at most :math:`\delta` changes each residual by at most a
        factor of about :math:`e^{2\delta}`, so that `fast_forward` can tell how long the gradient
        stays as it is.
    curvature : float or None
        The largest second derivative of a point's loss along outputs; None where there is none.
    """

    log_lipschitz = False
    curvature: float | None = None

    def curvatures(self, points: int) -> FloatArray | None:
        """Return the largest second derivative of each point's loss; None where there is none."""
        return None if self.curvature is None else np.full(points, self.curvature)

    def targets(self, outputs: int, sample: Sample) -> Any:
        """Return the labels of a network with so many outputs: sides of one, else fine labels."""
        return sample.y if outputs == 1 else fine_labels(outputs, sample)

    def output_signs(self, outputs: int, sample: Sample) -> IntArray | None:
        """Return the side that each output is trained to speak for; None for a single output."""
        return None if outputs == 1 else sample.label_signs

    @abstractmethod
    def losses(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the loss of each point, shape (points,)."""

    @abstractmethod
    def residuals(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return minus the derivative of each point's loss by each output."""

    def log_losses(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the logarithm of each loss."""
        with np.errstate(divide="ignore"):  # a loss of 0
            return np.log(self.losses(outputs, targets))

    def log_pulls(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the logarithm of the pull of each point, its largest absolute residual."""
        with np.errstate(divide="ignore"):
            return np.log(np.abs(self.residuals(outputs, targets)).max(axis=0))

    def directions(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the residuals divided by the pull of their point."""
        residuals = self.residuals(outputs, targets)
        largest = np.abs(residuals).max(axis=0)
        return residuals / np.where(largest > 0, largest, 1)

    def margins(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return by how much each point is right: y f, or the own output minus the largest other.

        Lyu and Li (2020) call it q.
        """
        if len(outputs) == 1:
            return outputs[0] * targets.astype(outputs.dtype)
        return _pick(outputs, targets) - _others(outputs, targets).max(axis=0)

    def margin_of(self, log_loss: FloatArray) -> FloatArray:
        """Return the margin whose loss has this logarithm."""
        raise InputError(
            f"the smoothed margin needs a loss that falls with the margin alone; got {self!r}."
        )


class SoftMarginLoss(Loss):
    r"""A function :math:`\ell(q)` of the soft margin.

    q is y f of one output, and :math:`-\log \sum_{j \ne c} e^{f_j - f_c}` of many, c being the
    target. The residuals are :math:`-\ell'(q)` times `directions`.
    """

    log_lipschitz = True

    def soft_margins(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return q of each point, shape (points,)."""
        if len(outputs) == 1:
            return self.margins(outputs, targets)
        return -log_sum_exp(_others(outputs - _pick(outputs, targets), targets))

    def directions(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the residuals divided by the pull of their point."""
        return self.margin_gradient(outputs, targets)

    def margin_gradient(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the derivative of q by the outputs: it does not vanish with the loss.

        y of one output; of many, 1 for the target and minus the softmax of the others.
        """
        if len(outputs) == 1:
            return targets.astype(outputs.dtype)[None, :]
        direction = -softmax(_others(outputs, targets))
        direction[targets, np.arange(len(targets))] = 1
        return direction


class LogisticMarginLoss(SoftMarginLoss):
    r"""The loss :math:`\log(1 + e^{-q})`, of which smoothing leaves a part for other labels."""

    smoothing: float

    def __post_init__(self) -> None:
        if not 0 <= checks.scale("smoothing", self.smoothing, zero=True) < 1:
            raise InputError(f"smoothing must be from 0 to below 1; got {self.smoothing!r}.")

    @property
    def log_lipschitz(self) -> bool:  # type: ignore[override]
        """Whether labels are not smoothed: smoothed ones let residuals change their sign."""
        return self.smoothing == 0

    def _spread(self, outputs: FloatArray, targets: Any) -> tuple[FloatArray, FloatArray]:
        """Return what smoothing adds to each loss and residual, per unit of smoothing."""
        raise NotImplementedError

    def losses(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the loss of each point, shape (points,)."""
        losses: FloatArray = np.logaddexp(0, -self.soft_margins(outputs, targets))
        if self.smoothing:
            losses = losses + self.smoothing * self._spread(outputs, targets)[0]
        return losses

    def residuals(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return minus the derivative of each point's loss by each output."""
        q = self.soft_margins(outputs, targets)
        residuals: FloatArray = expit(-q) * self.margin_gradient(outputs, targets)
        if self.smoothing:
            residuals = residuals + self.smoothing * self._spread(outputs, targets)[1]
        return residuals

    def log_losses(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the logarithm of each loss, also where the loss is too small for a float."""
        if self.smoothing:
            return super().log_losses(outputs, targets)
        q = self.soft_margins(outputs, targets)
        return np.where(q > 40, -q, np.log(np.logaddexp(0, -np.minimum(q, 40))))

    def log_pulls(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the logarithm of the residual of each point's target, shape (points,)."""
        if self.smoothing:
            return super().log_pulls(outputs, targets)
        return -np.logaddexp(0, self.soft_margins(outputs, targets))

    def directions(self, outputs: FloatArray, targets: Any) -> FloatArray:
        """Return the residuals divided by the pull of their point."""
        if self.smoothing:
            return Loss.directions(self, outputs, targets)
        return super().directions(outputs, targets)

    def margin_of(self, log_loss: FloatArray) -> FloatArray:
        """Return the q whose loss has this logarithm: q = -log(exp(exp(log_loss)) - 1)."""
        if self.smoothing:
            return super().margin_of(log_loss)
        s = np.asarray(log_loss, dtype=np.float64)
        u = np.exp(np.clip(s, -40, None))
        # e^u - 1 is u for small u, and e^u for large u: neither under- nor overflows
        middle = -np.log(np.expm1(np.clip(u, None, 40)))
        return np.where(s < -40, -s, np.where(u > 40, -u, middle))


@dataclass(frozen=True)
class Logistic(LogisticMarginLoss):
    r"""The logistic loss :math:`\log(1 + e^{-y f(x)})` of one output.

    Paper: Section 3.2. With label smoothing :math:`\varepsilon` (an extension) the label is right
    with probability :math:`1 - \varepsilon/2`.

    Examples
    --------
    >>> Logistic().losses(np.array([[0.0, 2.0]]), np.array([1, -1])).round(3)
    array([0.693, 2.127])
    """

    smoothing: float = 0.0
    curvature = 0.25

    def targets(self, outputs: int, sample: Sample) -> IntArray:
        """Return the coarse labels y."""
        if outputs != 1:
            raise InputError(f"Logistic needs a network of one output; got {outputs} outputs.")
        return sample.y

    def _spread(self, outputs: FloatArray, targets: IntArray) -> tuple[FloatArray, FloatArray]:
        # (l(-q) - l(q)) / 2 = q / 2
        half = targets.astype(outputs.dtype)[None, :] / 2
        return outputs[0] * half[0], -half


@dataclass(frozen=True)
class CrossEntropy(LogisticMarginLoss):
    r"""The cross-entropy :math:`-\log p_c` of the softmax p of many outputs, c being the cluster.

    Paper: Section 4.2. With label smoothing :math:`\varepsilon` (an extension) a share
    :math:`\varepsilon` of the label is spread evenly over all classes.

    Examples
    --------
    >>> CrossEntropy().losses(np.zeros((4, 1)), np.array([2])).round(3)     # log 4
    array([1.386])
    """

    smoothing: float = 0.0
    curvature = 0.5

    def targets(self, outputs: int, sample: Sample) -> IntArray:
        """Return the fine labels: the cluster of each point, or its group."""
        return fine_labels(outputs, sample)

    def _spread(self, outputs: FloatArray, targets: IntArray) -> tuple[FloatArray, FloatArray]:
        # mean_j(-log p_j) - (-log p_c) = f_c - mean_j f_j
        change = np.full_like(outputs, 1 / len(outputs))
        change[targets, np.arange(len(targets))] -= 1
        return _pick(outputs, targets) - outputs.mean(axis=0), change


@dataclass(frozen=True)
class Exponential(SoftMarginLoss):
    r"""The exponential loss :math:`e^{-q}`, q being the soft margin: y f of one output.

    Paper: none, an extension. Of many outputs it is :math:`\sum_{j \ne c} e^{f_j - f_c}`.

    Examples
    --------
    >>> Exponential().losses(np.array([[0.0, 2.0]]), np.array([1, -1])).round(3)
    array([1.   , 7.389])
    """

    def losses(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return exp(-q)."""
        return np.exp(-self.soft_margins(outputs, targets))

    def residuals(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return exp(-q) times the derivative of q."""
        return self.losses(outputs, targets) * self.margin_gradient(outputs, targets)

    def log_losses(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return -q."""
        return -self.soft_margins(outputs, targets)

    def log_pulls(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return -q."""
        return self.log_losses(outputs, targets)

    def margin_of(self, log_loss: FloatArray) -> FloatArray:
        """Return minus the logarithm."""
        return -np.asarray(log_loss, dtype=np.float64)


@dataclass(frozen=True)
class Square(Loss):
    r"""Half the squared distance of the outputs from their targets.

    Paper: none, an extension. The target of one output is y; of many it is 1 for the cluster of the
    point and 0 for the others.

    Examples
    --------
    >>> Square().losses(np.array([[0.0, 2.0]]), np.array([1, -1]))
    array([0.5, 4.5])
    """

    curvature = 1.0

    def losses(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return half the squared residuals, summed over outputs."""
        return np.square(self.residuals(outputs, targets)).sum(axis=0) / 2

    def residuals(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return the target minus the output."""
        if len(outputs) == 1:
            return targets.astype(outputs.dtype)[None, :] - outputs
        residuals = -outputs
        residuals[targets, np.arange(len(targets))] += 1
        return residuals


@dataclass(frozen=True)
class Hinge(Loss):
    r"""The hinge loss :math:`\max(0, 1 - q)`, q being the margin: y f of one output.

    Paper: none, an extension. Of many outputs q is the own output minus the largest other
    (Crammer and Singer).

    Examples
    --------
    >>> Hinge().losses(np.array([[0.0, 2.0]]), np.array([1, -1]))
    array([1., 3.])
    """

    def losses(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return max(0, 1 - q)."""
        return np.maximum(0, 1 - self.margins(outputs, targets))

    def residuals(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return the derivative of q where it is below 1, else 0."""
        short = (self.margins(outputs, targets) < 1).astype(outputs.dtype)
        if len(outputs) == 1:
            return short * targets.astype(outputs.dtype)[None, :]
        residuals = np.zeros_like(outputs)
        points = np.arange(len(targets))
        residuals[targets, points] = short
        residuals[_others(outputs, targets).argmax(axis=0), points] = -short
        return residuals


def softmax(outputs: FloatArray) -> FloatArray:
    """Return the softmax over the first axis."""
    exponentials: FloatArray = np.exp(outputs - outputs.max(axis=0))
    exponentials /= exponentials.sum(axis=0)
    return exponentials


def log_sum_exp(outputs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials over the first axis."""
    largest = outputs.max(axis=0)
    return largest + np.log(np.exp(outputs - largest).sum(axis=0))


def fine_labels(outputs: int, sample: Sample) -> IntArray:
    """Return the cluster of each point, or its label group, for a network of as many outputs."""
    labels = len(sample.label_signs)
    if labels != outputs or outputs == 1:
        what = "cluster" if sample.grouping is None else "label group"
        raise InputError(
            f"this loss needs a network with an output for each {what} of the sample; got "
            f"{outputs} and {labels}."
        )
    return sample.labels


def _pick(outputs: FloatArray, targets: IntArray) -> FloatArray:
    """Return the output of each point's target class, shape (points,)."""
    return outputs[targets, np.arange(len(targets))]


def _others(outputs: FloatArray, targets: IntArray) -> FloatArray:
    """Return the outputs with that of each point's target class set to minus infinity."""
    others = outputs.copy()
    others[targets, np.arange(len(targets))] = -np.inf
    return others

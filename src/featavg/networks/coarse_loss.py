"""The loss of coarse labels on the outputs of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg.arrays import BoolArray, FloatArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.loss import LogisticMarginLoss, fine_labels, log_sum_exp, softmax


class CoarseCrossEntropy(LogisticMarginLoss):
    r"""Coarse labels on the outputs of clusters: minus the log of the own side's probability.

    Paper: none, an extension. With the softmax p of the outputs, one for each cluster, a point of
    the side s has the loss :math:`-\log \sum_{j \in J_s} p_j`: which cluster of its side it is in
    is left to the network. Points whose fine label is known have the cross-entropy instead.

    Parameters
    ----------
    fine : array of indices or of bool, optional
        The training points whose fine label is known; none by default.

    Examples
    --------
    >>> own = np.array([[True], [True], [False], [False]])         # a point of the first side
    >>> CoarseCrossEntropy().losses(np.zeros((4, 1)), own).round(3)           # log 2
    array([0.693])
    """

    smoothing = 0.0
    curvature = 0.5

    def __init__(self, fine: ArrayLike | Sequence[int] | None = None) -> None:
        self._fine = None if fine is None else np.asarray(fine)

    def __repr__(self) -> str:
        if self._fine is None:
            return "CoarseCrossEntropy()"
        count = int(self._fine.sum()) if self._fine.dtype == bool else len(self._fine)
        return f"CoarseCrossEntropy({count} fine labels)"

    def targets(self, outputs: int, sample: Sample) -> BoolArray:
        """Return which outputs count as right for each point, shape (outputs, points)."""
        labels = fine_labels(outputs, sample)
        right = sample.label_signs[:, None] == sample.y[None, :]
        if self._fine is not None:
            known = self._known(len(sample))
            right[:, known] = np.arange(len(right))[:, None] == labels[known]
        return right

    def _known(self, points: int) -> Any:
        fine = self._fine
        assert fine is not None  # noqa: S101  asked for only then
        if fine.dtype == bool and fine.shape == (points,):
            return np.flatnonzero(fine)
        is_list = fine.ndim == 1 and (np.issubdtype(fine.dtype, np.integer) or not fine.size)
        if not is_list or (fine.size and not 0 <= fine.min() <= fine.max() < points):
            raise InputError(
                f"fine must name some of the {points} training points, by their numbers or by a "
                f"boolean for each; got {fine.dtype} of the shape {fine.shape}."
            )
        return fine.astype(np.int64)

    def soft_margins(self, outputs: FloatArray, targets: BoolArray) -> FloatArray:
        """Return the log-odds of the right outputs."""
        right, wrong = _parted(outputs, targets)
        return log_sum_exp(right) - log_sum_exp(wrong)

    def margin_gradient(self, outputs: FloatArray, targets: BoolArray) -> FloatArray:
        """Return the softmax within the right outputs, and minus that within the wrong ones."""
        right, wrong = _parted(outputs, targets)
        return softmax(right) - softmax(wrong)

    def margins(self, outputs: FloatArray, targets: BoolArray) -> FloatArray:
        """Return the largest right output minus the largest wrong one."""
        right, wrong = _parted(outputs, targets)
        return right.max(axis=0) - wrong.max(axis=0)


def _parted(outputs: FloatArray, targets: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the right and the wrong outputs, the others set to minus infinity."""
    return np.where(targets, outputs, -np.inf), np.where(targets, -np.inf, outputs)

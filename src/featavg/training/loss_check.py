"""Checks of what a loss promises, before it is trained with."""

from __future__ import annotations

from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss

_STEP = 1e-6
# Errors of a difference quotient at outputs of about 1, and of what only rounds differently.
_QUOTIENT, _ROUNDED = 1e-4, 1e-6


def check_loss(loss: Any, net: TwoLayerNet, sample: Sample) -> Loss:
    """Return a loss whose promises hold at random outputs; refuse another.

    The residuals must be minus the derivatives of the losses, and what is computed by logarithms
    the same as without: a subclass of `Logistic` that changes `residuals` alone would otherwise be
    trained as a `Logistic` by `fast_forward`.
    """
    if not isinstance(loss, Loss):
        raise InputError(f"loss must be a Loss, such as Logistic(); got {loss!r}.")
    targets = loss.targets(net.output_count, sample)
    signs = loss.output_signs(net.output_count, sample)
    if signs is not None and not np.array_equal(signs, net.output_signs):
        raise InputError(
            f"outputs of net must be on the sides that {loss!r} trains them for, {signs.tolist()}; "
            f"got {net.output_signs.tolist()}, and with_positive changes them."
        )
    shape = (net.output_count, len(sample))
    with np.errstate(all="ignore"):
        broken = _broken_promise(loss, targets, shape)
    if broken:
        raise InputError(f"{broken}; got {loss!r}.")
    return loss


def _broken_promise(loss: Loss, targets: Any, shape: tuple[int, int]) -> str | None:
    """Return the rule that a loss breaks at random outputs of this shape."""
    rng = np.random.default_rng(0)
    outputs, along = rng.standard_normal(shape), rng.standard_normal(shape)
    losses, residuals = loss.losses(outputs, targets), loss.residuals(outputs, targets)
    if np.shape(losses) != shape[1:] or np.shape(residuals) != shape:
        return "losses must return a number for each point, and residuals one for each output"
    before, after = (loss.losses(outputs + step * along, targets) for step in (-_STEP, _STEP))
    slope = -(residuals * along).sum(axis=0)
    if not _is_between(slope, (losses - before) / _STEP, (after - losses) / _STEP):
        return "residuals must be minus the derivatives of losses"
    if not np.allclose(np.exp(loss.log_losses(outputs, targets)), losses, _ROUNDED, _ROUNDED):
        return "log_losses must be the logarithms of losses"
    pulled = loss.directions(outputs, targets) * np.exp(loss.log_pulls(outputs, targets))
    if not np.allclose(pulled, residuals, _ROUNDED, _ROUNDED):
        return "directions times the pulls of log_pulls must be residuals"
    return None


def _is_between(slope: FloatArray, left: FloatArray, right: FloatArray) -> bool:
    """Return whether slopes are those of quotients from the left and the right, or between them."""
    allowed = _QUOTIENT * (1 + np.abs(slope))
    low, high = np.minimum(left, right) - allowed, np.maximum(left, right) + allowed
    return bool(((low <= slope) & (slope <= high)).all())

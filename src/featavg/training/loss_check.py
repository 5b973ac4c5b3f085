"""Checks of what a loss promises, before it is trained with or measured by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from featavg.arrays import BoolArray, FloatArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss, SoftMarginLoss
from featavg.training.state import ALL_POINTS, Batch

# Of outputs, at which promises are checked. They are close together because a loss that changes at
# a margin of 50 differs from its parent only above it, and by nothing that a float can hold soon
# after.
_SIZES = (1e-6, 1e-3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e6)
# So many points are enough for all sizes but the first, and cost less than the training of many.
_POINTS = 2000
# Of differences, relative to outputs of at least 1 for losses, and to outputs for residuals.
_STEP, _RESIDUAL_STEP = 1e-6, 1e-2
# Relative errors of a difference quotient, and of what only rounds differently.
_QUOTIENT, _ROUNDED = 1e-4, 1e-6
_EPSILON = 8 * float(np.finfo(np.float64).eps)
# What may be lost to rounding where only floats are used, such as in 1 - p, and where logarithms
# are: there only what no float can hold.
_LOST, _LOST_IN_LOGARITHMS = 1e-12, 1e-290
# Two outputs that are so much larger than the others have all of the softmax.
_LIFT = 40.0


def check_loss(loss: Any, net: TwoLayerNet, sample: Sample, *, by_logarithms: bool = False) -> Loss:
    """Return a loss whose promises hold at random outputs of many sizes; refuse another.

    The residuals must be minus the derivatives of the losses, and what is computed by logarithms
    the same as without: a subclass of `Logistic` that changes `residuals` alone would otherwise be
    trained as a `Logistic` by `fast_forward`. Training `by_logarithms` reaches pulls far below
    rounding errors, so there they must agree too.
    """
    targets = _targets(loss, net, sample)
    signs = loss.output_signs(net.output_count, sample)
    if signs is not None and not np.array_equal(signs, net.output_signs):
        raise InputError(
            f"outputs of net must be on the sides that {loss!r} trains them for, {signs.tolist()}; "
            f"got {net.output_signs.tolist()}, and with_positive changes them."
        )
    shape = (net.output_count, len(sample))
    _check_values(loss, targets, shape, _LOST_IN_LOGARITHMS if by_logarithms else _LOST)
    return loss


def check_curvature(loss: Any, net: TwoLayerNet, sample: Sample) -> None:
    """Refuse a loss whose second derivatives along outputs exceed its `curvature`.

    A subclass that scales losses and residuals would otherwise keep the curvature of its parent.
    """
    targets = _targets(loss, net, sample)
    bounds = loss.curvatures(len(sample))
    if bounds is None:
        return
    shape = (net.output_count, len(sample))
    _check_values(loss, targets, shape, _LOST)
    with np.errstate(all="ignore"):
        found = _largest_curvatures(loss, targets, shape)
    above = found > bounds * (1 + _QUOTIENT)
    if above.any():
        point = int(above.argmax())
        raise InputError(
            "curvature must be at least the largest second derivative of losses along outputs, and "
            f"one of {found[point]:.3g} is above {bounds[point]:.3g}; got {loss!r}."
        )


def check_margin_of(loss: Any, net: TwoLayerNet, sample: Sample) -> None:
    """Refuse a loss whose `margin_of` does not return the margins that its losses belong to."""
    targets = _targets(loss, net, sample)
    shape = (net.output_count, len(sample))
    _check_values(loss, targets, shape, _LOST_IN_LOGARITHMS)
    of_outputs = loss.soft_margins if isinstance(loss, SoftMarginLoss) else loss.margins
    with np.errstate(all="ignore"):
        for drawn in _draws(loss, targets, shape):
            margins = of_outputs(drawn.outputs, drawn.targets)
            log_losses = loss.log_losses(drawn.outputs, drawn.targets)
            error = np.abs(loss.margin_of(log_losses) - margins)
            # a loss of 0 or infinity belongs to no margin
            if not _all_hold(error <= _ROUNDED * (1 + np.abs(margins)), log_losses, skip=True):
                raise InputError(
                    "margin_of must return the margin whose loss has the given logarithm; got "
                    f"{loss!r}."
                )


def _targets(loss: Any, net: TwoLayerNet, sample: Sample) -> Any:
    if not isinstance(loss, Loss):
        raise InputError(f"loss must be a Loss, such as Logistic(); got {loss!r}.")
    return loss.targets(net.output_count, sample)


def _check_values(loss: Loss, targets: Any, shape: tuple[int, int], lost: float) -> None:
    """Refuse a loss that breaks a rule at random outputs of this shape."""
    with np.errstate(all="ignore"):
        for drawn in _draws(loss, targets, shape):
            broken = _broken_promise(loss, drawn, lost)
            if broken:
                raise InputError(f"{broken}; got {loss!r}.")


class _Draw(NamedTuple):
    """Random outputs of one size, for some of the points, and the targets of these."""

    size: float
    points: Batch
    targets: Any
    outputs: FloatArray


def _draws(loss: Loss, targets: Any, shape: tuple[int, int]) -> Iterator[_Draw]:
    """Yield random outputs, first of size 1 for all points.

    Of many random outputs the one of the target is rarely the largest, so about half of the points
    are moved to where their loss is small, as training moves them.
    """
    rng = np.random.default_rng(0)
    first = rng.standard_normal(shape)
    yield _Draw(1.0, ALL_POINTS, targets, first)
    downhill = np.sign(loss.residuals(first, targets))
    for size in _SIZES:
        points: Batch = ALL_POINTS
        if shape[1] > _POINTS:
            points = rng.choice(shape[1], _POINTS, replace=False)
        toward = downhill[:, points]
        moved = 2 * rng.integers(0, 2, toward.shape[1])
        outputs = size * (rng.standard_normal(toward.shape) + moved * toward)
        yield _Draw(size, points, targets[..., points], outputs)


def _broken_promise(loss: Loss, drawn: _Draw, lost: float) -> str | None:
    """Return the rule that a loss breaks at these outputs."""
    size, _, targets, outputs = drawn
    losses, residuals = loss.losses(outputs, targets), loss.residuals(outputs, targets)
    if np.shape(losses) != outputs.shape[1:] or np.shape(residuals) != outputs.shape:
        return "losses must return a number for each point, and residuals one for each output"
    along = np.random.default_rng(1).standard_normal(outputs.shape)
    step = _STEP * max(size, 1)
    before, after = (loss.losses(outputs + s * along, targets) for s in (-step, step))
    left, right = (losses - before) / step, (after - losses) / step
    slope = -(residuals * along).sum(axis=0)
    allowed = _QUOTIENT * (1 + np.abs(residuals * along).sum(axis=0))
    allowed += _EPSILON * np.abs(losses) / step
    # a kink may lie between
    is_between = (np.minimum(left, right) - allowed <= slope) & (
        slope <= np.maximum(left, right) + allowed
    )
    may_overflow = size > 1
    if not _all_hold(is_between, left, right, slope, skip=may_overflow):
        return "residuals must be minus the derivatives of losses"
    by_log = np.exp(loss.log_losses(outputs, targets))
    is_log = np.abs(by_log - losses) <= _ROUNDED * np.abs(losses) + lost
    if not _all_hold(is_log, by_log, losses, skip=may_overflow):
        return "log_losses must be the logarithms of losses"
    pulls = np.exp(loss.log_pulls(outputs, targets))
    pulled = loss.directions(outputs, targets) * pulls
    is_pulled = np.abs(pulled - residuals) <= _ROUNDED * pulls + lost
    if not _all_hold(is_pulled, pulled, residuals, skip=may_overflow):
        return "directions times the pulls of log_pulls must be residuals"
    return None


def _all_hold(holds: BoolArray, *values: FloatArray, skip: bool) -> bool:
    """Return whether all of this holds, or all but where a value is not finite."""
    if skip:
        for value in values:
            holds = holds | ~np.isfinite(value)
    return bool(holds.all())


def _largest_curvatures(loss: Loss, targets: Any, shape: tuple[int, int]) -> FloatArray:
    """Return the largest second derivative of each point's loss that differences show.

    The mean over a short line is never above the largest. Of many outputs, few random ones show
    much of it: the softmax curves most between two outputs that have all of it.
    """
    rng = np.random.default_rng(2)
    largest = np.zeros(shape[1])
    for size, points, wanted, outputs in _draws(loss, targets, shape):
        lines: list[tuple[FloatArray, FloatArray]]
        lines = [(outputs, rng.standard_normal(outputs.shape))]
        if len(outputs) > 1:
            pair = _random_pairs(outputs.shape, rng)
            lines.append((outputs + _LIFT * np.abs(pair), pair))
        for middle, along in lines:
            step = _RESIDUAL_STEP * size * along / np.linalg.norm(along, axis=0)
            before, after = middle - step, middle + step
            pulls = [loss.residuals(end, wanted) for end in (before, after)]
            moved = after - before
            length = np.linalg.norm(moved, axis=0)
            change = ((pulls[0] - pulls[1]) * moved).sum(axis=0)
            rounding = _EPSILON * length * np.linalg.norm(pulls[0], axis=0)
            curvature = (change - rounding) / np.square(length)
            curvature[~np.isfinite(curvature)] = 0  # only large outputs overflow
            largest[points] = np.maximum(largest[points], curvature)
    return largest


def _random_pairs(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return a column for each point with 1 at one output, -1 at another and 0 at the others."""
    outputs, points = shape
    one = rng.integers(0, outputs, points)
    other = (one + rng.integers(1, outputs, points)) % outputs
    pairs = np.zeros(shape)
    pairs[one, np.arange(points)] = 1
    pairs[other, np.arange(points)] = -1
    return pairs

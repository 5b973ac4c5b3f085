"""The dynamics of gradient descent over astronomically many steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Real

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import refuse_smooth
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss
from featavg.progress import ProgressReporter
from featavg.training.descent import cheaper_method
from featavg.training.loss_check import check_loss
from featavg.training.rule import GradientDescent
from featavg.training.state import CoefficientState, TrainingState, check_pair, new_state
from featavg.training.trajectory import Recorder, Trajectory

_USUAL_STEPS = 1000  # what a run takes, to choose the cheaper method
_PROGRESS_PARTS = 1000
# Which neurons turn on first is decided while all are small, and amplified; there a crossing
# that is noticed too late costs far more than a step that is a little too long.
_OVERSHOOT = 0.1
# Larger numbers of steps are not whole, as far as a float can tell.
_WHOLE = 2**52
# Two lengths of time that are the same up to this share have only been rounded differently.
_ROUNDED = 1e-6


def fast_forward(
    net: TwoLayerNet,
    sample: Sample,
    *,
    learning_rate: float,
    steps: float,
    loss: Loss | None = None,
    tolerance: float = 0.02,
    record: int | Sequence[float] = 50,
    progress: bool = False,
) -> Trajectory:
    r"""Train by gradient descent as `descend` does, over as many steps as you like.

    Paper: equation (1), at the learning rates and horizons of Theorems 4.5 and 4.7.

    With a small learning rate, gradient descent follows the time :math:`\tau = \eta t`, and many
    steps can be taken as one: as many as move no pre-activation by more than `tolerance`, nor
    past 0 by more than a tenth of that (times the largest pre-activation while that is below
    1), but never less than one step of :math:`\eta`. It is Euler's method with a step that grows
    as the loss falls, so the error is proportional to `tolerance`; where one step of :math:`\eta`
    is the limit, it is gradient descent itself. A step may end early at a time that is
    recorded, but not when that makes it shorter than :math:`\eta`: such a time is recorded on the
    way, so how often one records changes nothing where one step is the limit.

    The pull of each point is kept relative to the strongest one and time as a logarithm, so
    nothing underflows: losses of :math:`10^{-881}` are as good as any.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The initial network, with a piecewise linear activation and a fixed second layer.
    sample : Sample
        The training points.
    learning_rate : float
        :math:`\eta`.
    steps : float or int
        :math:`T`; whole numbers of any size, to which others are rounded.
    loss : Loss, optional
        The loss to minimise; the network's own by default. Of the others `Exponential` and
        `CoarseCrossEntropy` can be fast-forwarded.
    tolerance : float
        How far a pre-activation may move in one go; halving it halves the error.
    record : int or sequence of float
        The steps to record, or how many, spaced evenly in log-time and rounded to whole numbers,
        so that a short run has fewer. The first (0) and the last are always among them.
    progress : bool
        Whether to report progress on standard error.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=2, dim=10**6).sample(40, rng=rng, coordinates="span")
    >>> net = BinaryNet.init(train, width=2, weight_scale=1e-8, bias_scale=1e-8, rng=rng)
    >>> fast_forward(net, train, learning_rate=1e-12, steps=1e14)
    Trajectory(1e+14 steps of 1e-12, 50 recorded, loss 0.6931 -> 3.769e-08)
    """
    learning_rate = checks.scale("learning_rate", learning_rate)
    tolerance = checks.scale("tolerance", tolerance)
    goals = math.log(learning_rate) + _log_steps(record, steps)
    check_pair(net, sample)
    loss = net.default_loss if loss is None else loss
    loss = check_loss(loss, net, sample, by_logarithms=True)
    check_leaps(net, loss)
    method = cheaper_method(net, sample, _USUAL_STEPS)
    recorder = Recorder(net, sample, learning_rate, loss, GradientDescent())
    state = new_state(method, net, sample)
    leaps = fast_forward_steps(
        state, learning_rate=learning_rate, goals=goals, tolerance=tolerance, loss=loss
    )
    with ProgressReporter("fast forward", _PROGRESS_PARTS, enabled=progress) as reporter:
        for log_time, outputs in leaps:
            if log_time >= goals[len(recorder)]:
                recorder.add(log_time, outputs, state)
            _show(reporter, log_time, goals)
    return recorder.finish(f"fast-forward, {method}")


def check_leaps(net: TwoLayerNet, loss: Loss) -> None:
    """Refuse a network or a loss for which many steps are not nearly one long one."""
    refuse_smooth(net.activation, "fast_forward")
    if net.trains_second_layer:
        raise InputError(
            "fast_forward needs a fixed second layer, because only then many steps of gradient "
            f"descent are nearly one long one; use descend; got {net!r}."
        )
    if not loss.log_lipschitz:
        raise InputError(
            "fast_forward needs a loss whose residuals change by a factor where outputs change by "
            f"a number; use descend; got {loss!r}."
        )


def fast_forward_steps(
    state: TrainingState,
    *,
    learning_rate: float,
    goals: FloatArray,
    tolerance: float,
    loss: Loss | None = None,
) -> Iterator[tuple[float, FloatArray]]:
    r"""Yield the logarithm of :math:`\eta t` and the outputs after every long step.

    Paper: equation (1). `state` is updated in place and can be read between two steps. It stops at
    every goal, also on the way of a step.

    Parameters
    ----------
    state : TrainingState
        Where the first of the goals has been reached already.
    learning_rate, tolerance, loss
        As for `fast_forward`.
    goals : array of shape (times,)
        Increasing logarithms of :math:`\eta t`, each of which is met exactly; the last is the end.
    """
    if not isinstance(state, CoefficientState):
        raise InputError("fast_forward needs a state on coefficients, as linear rules have it.")
    net, sample = state.net, state.sample
    loss = net.default_loss if loss is None else loss
    check_leaps(net, loss)
    targets = loss.targets(net.output_count, sample)
    log_rate, log_time, reached = math.log(learning_rate), float(goals[0]), 0
    while True:
        outputs = _finite_outputs(state, learning_rate)
        yield log_time, outputs
        reached += log_time >= goals[reached]
        if reached == len(goals):
            return
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            # every point's pull, relative to the strongest, exp(strongest)
            log_pull = loss.log_pulls(outputs, targets).astype(np.float64)
            strongest = float(log_pull.max())
            pull = np.exp(log_pull - strongest).astype(outputs.dtype)
            direction = state.A.T @ (loss.directions(outputs, targets) * pull)
            direction *= net.activation.slope(state.Z)
            direction /= len(sample)
            velocity = state.change(direction)
            # in units of time in which the strongest pull is 1
            shortest = log_rate + strongest
            log_go = max(_longest_step(state.Z, velocity, tolerance), shortest)
        stops = _stops(log_time, log_go, shortest, strongest, goals[reached:])
        gone = 0.0
        for index, (log_length, stop) in enumerate(stops):
            if index:  # at a goal on the way, and the step goes on
                yield log_time, _finite_outputs(state, learning_rate)
                reached += 1
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                length = math.exp(log_length)
                state.flow((length - gone) * direction, (length - gone) * velocity)
            gone, log_time = length, stop


def _finite_outputs(state: TrainingState, learning_rate: float) -> FloatArray:
    """Return the outputs at the training points, and refuse infinite ones."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        outputs = state.outputs()
    if not np.isfinite(outputs).all():
        raise InputError(
            "the outputs became infinite or NaN because learning_rate is too large for points and "
            f"weights of this size; got learning_rate={learning_rate!r}."
        )
    return outputs


def _stops(
    log_time: float, log_go: float, shortest: float, strongest: float, goals: FloatArray
) -> list[tuple[float, float]]:
    """Return where a step stops: its length up to there, and the time; all as logarithms.

    It ends at the first goal that is not nearer than the shortest step. At nearer ones it only
    stops, because gradient descent does not take a new gradient there. Lengths are in units of time
    in which the strongest pull is 1.
    """
    stops = []
    for goal in goals:
        left = _log_difference(goal, log_time) + strongest
        if left > log_go + _ROUNDED:
            break
        stops.append((log_go if left > log_go - _ROUNDED else left, float(goal)))
        if left > shortest - _ROUNDED or goal == goals[-1]:
            return stops
    stops.append((log_go, float(np.logaddexp(log_time, log_go - strongest))))
    return stops


def _longest_step(Z: FloatArray, velocity: FloatArray, tolerance: float) -> float:
    """Return the logarithm of the longest time for which the gradient is nearly constant.

    The pulls change with the pre-activations, which may therefore move by `tolerance`; and where
    one crosses 0 the gradient jumps, so it may go only little beyond.
    """
    size, speed = np.abs(Z), np.abs(velocity)
    overshoot = _OVERSHOOT * tolerance * min(1.0, float(size.max()))
    toward_zero = np.signbit(Z) != np.signbit(velocity)
    reach = np.where(toward_zero, np.minimum(size + overshoot, tolerance), tolerance)
    moving = speed > 0
    return float(np.log(reach[moving] / speed[moving]).min()) if moving.any() else math.inf


def _log_steps(record: int | Sequence[float], steps: float) -> FloatArray:
    """Return the logarithms of the steps to record, sorted; the first is that of 0."""
    last = _log_step("steps", steps)
    if isinstance(record, (int, np.integer)):
        wanted = checks.count("record", record, minimum=2)
        spread = np.linspace(0, max(last, 0), wanted - 1)[1 if wanted == 2 else 0 : -1]
        chosen = np.array([_whole_log(log_step) for log_step in spread])
    else:
        chosen = np.array([_log_step("record", t) for t in record])
        if (chosen > last).any():
            raise InputError(f"record must name steps of at most steps={steps!r}.")
    return np.unique(np.concatenate([[-np.inf], chosen[chosen <= last], [last]]))


def _log_step(name: str, step: float) -> float:
    """Return the logarithm of a number of steps, which may be a whole number of any size."""
    if isinstance(step, bool) or not isinstance(step, Real) or not step >= 0 or step == math.inf:
        raise InputError(f"{name} must be a number of at least 0; got {step!r}.")
    whole = round(step) if step < _WHOLE else step
    return math.log(whole) if whole > 0 else -math.inf


def _whole_log(log_step: float) -> float:
    """Return the logarithm of the nearest whole number of steps, as far as a float can tell."""
    return math.log(round(math.exp(log_step))) if log_step < math.log(_WHOLE) else float(log_step)


def _log_difference(larger: float, smaller: float) -> float:
    """Return log(exp(larger) - exp(smaller))."""
    if np.isneginf(smaller):
        return float(larger)
    return float(larger + math.log(-math.expm1(smaller - larger)))


def _show(reporter: ProgressReporter, log_time: float, goals: FloatArray) -> None:
    """Report eta·t against the goal; the share of the work is about that of log-time."""
    if np.isinf(log_time) or not goals[-1] > goals[1]:
        return
    share = (log_time - goals[1]) / (goals[-1] - goals[1])
    text = f"eta·t = 1e{log_time / math.log(10):.1f} of 1e{goals[-1] / math.log(10):.1f}"
    reporter.show(int(_PROGRESS_PARTS * share), text)

"""Training step by step, with the weight decomposition of Lemma 5.1 where it is exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss
from featavg.progress import counted
from featavg.training.loss_check import check_loss
from featavg.training.rule import GradientDescent, Parameters, Rule, TrainingStep
from featavg.training.rule_check import check_rule
from featavg.training.state import ALL_POINTS, Batch, TrainingState, check_pair, new_state
from featavg.training.trajectory import Recorder, Trajectory, recorded_steps

METHODS = ("auto", "dual", "primal")

# A thin product (few neurons) waits for memory, the one large product of the Gram matrix does
# not: measured, an entry of the thin product costs about this many times as much.
_THIN_PRODUCT_PENALTY = 4


def descend(
    net: TwoLayerNet,
    sample: Sample,
    *,
    learning_rate: float,
    steps: int,
    rule: Rule | None = None,
    loss: Loss | None = None,
    rng: np.random.Generator | None = None,
    record: int | Sequence[int] = 50,
    method: str = "auto",
    progress: bool = False,
) -> Trajectory:
    r"""Train a network: by full-batch gradient descent, or by another rule or loss.

    Paper: equation (1); the coefficient updates are Lemma 5.2.

    With :math:`Z = W X^\top + b` and :math:`R` minus the derivative of the losses by the outputs,
    a step of gradient descent is

    .. math:: G = \tfrac1n (A^\top R) \odot 1[Z \ge 0], \qquad
              C \leftarrow C + \eta G, \qquad Z \leftarrow Z + \eta\, G K

    with the Gram matrix :math:`K = X X^\top` (+1 where biases are trained). This "dual" step costs
    neurons·n²; the "primal" one, W ← W + η G X, costs 2·neurons·n·d. Both give the same numbers.
    All linear rules are computed so, and their coefficients are exact. Other rules, such as `Adam`,
    train the weights themselves.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The initial network.
    sample : Sample
        The training points.
    learning_rate : float
        :math:`\eta`.
    steps : int
        :math:`T`.
    rule : Rule, optional
        The rule that turns gradients into updates; `GradientDescent` by default.
    loss : Loss, optional
        The loss to minimise; by default `Logistic` on the labels y for one output, `CrossEntropy`
        on the clusters for many.
    rng : numpy.random.Generator, optional
        For rules with mini-batches, and for `Dropout`.
    record : int or sequence of int
        The steps to record, or how many, spaced evenly in log-time. The first (0) and the last
        are always among them.
    method : {"auto", "dual", "primal"}
        How linear rules are computed; "auto" takes the cheaper one.
    progress : bool
        Whether to report progress on standard error.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        If an input is out of range, or the outputs become infinite or NaN on the way.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=4, dim=400).sample(100, rng=rng)
    >>> net = BinaryNet.init(train, width=2, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    >>> run = descend(net, train, learning_rate=0.01, steps=200)
    >>> run
    Trajectory(200 steps of 0.01, 38 recorded, loss 0.6931 -> 0.01037)
    >>> run.feature_coefficients[-1].round(1)      # positive neurons learn positive centres
    array([[ 5. ,  4.5, -0.4, -0.4],
           [ 5. ,  4.4, -0.4, -0.4],
           [-0.5, -0.5,  4.3,  4.6],
           [-0.5, -0.5,  4.1,  4.4]])
    """
    learning_rate = checks.scale("learning_rate", learning_rate)
    steps = checks.count("steps", steps, minimum=0)
    recorded = recorded_steps(record, steps)
    check_pair(net, sample)
    rule = check_rule(rule or GradientDescent(), in_span=sample.in_span)
    loss = check_loss(net.default_loss if loss is None else loss, net, sample)
    method = _method(checks.choice("method", method, METHODS), net, sample, rule, steps)
    recorder = Recorder(net, sample, learning_rate, loss, rule)
    state = new_state(method, net, sample)
    taken = descent_steps(
        state, learning_rate=learning_rate, steps=steps, rule=rule, loss=loss, rng=rng
    )
    for step in counted(steps + 1, "gradient descent", enabled=progress):
        outputs = next(taken)
        if step == recorded[len(recorder)]:
            log_time = np.log(learning_rate * step) if step else -np.inf
            recorder.add(log_time, outputs, state)
    return recorder.finish(method)


def descent_steps(
    state: TrainingState,
    *,
    learning_rate: float,
    steps: int,
    rule: Rule | None = None,
    loss: Loss | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[FloatArray]:
    """Yield the outputs after 0, 1, ..., `steps` steps; a step is taken when it is asked for.

    Paper: equation (1). `state` is updated in place and can be read between two steps.
    """
    rule = rule or GradientDescent()
    loss = state.net.default_loss if loss is None else loss
    targets = loss.targets(state.net.output_count, state.sample)
    batches = _batches(rule.batch, len(state.sample), rng)
    rule_state = rule.init(state.parameters)
    for step in range(steps + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # found below, with a better message
            outputs = state.outputs()
        if not np.isfinite(outputs).all():
            raise InputError(
                f"the loss became infinite or NaN at step {step} of {steps} because "
                f"learning_rate is too large for points and weights of this size; "
                f"got learning_rate={learning_rate!r}."
            )
        yield outputs
        if step == steps:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            gradients = _gradients(state, rule, loss, targets, outputs, next(batches), step, rng)
            updates, rule_state = rule.update(
                gradients, rule_state, state.parameters, learning_rate
            )
            state.apply(updates)


def _gradients(
    state: TrainingState,
    rule: Rule,
    loss: Loss,
    targets: Any,
    outputs: FloatArray,
    batch: Batch,
    step: int,
    rng: np.random.Generator | None,
) -> Parameters:
    """Return the gradients of a batch, at the points and the weights that the rule asks for."""
    wanted, seen = targets[..., batch], outputs[:, batch]
    if rule.moves_points:
        net, sample = state.snapshot().rebuild(state.net, state.sample), state.sample
        x, y, Z = sample.x[batch], sample.y[batch], state.Z[:, batch]
        points = rule.perturbed_points(TrainingStep(step, net, x, Z, y, loss, wanted))
        state, batch = state.at_points(points.astype(x.dtype, copy=False)), ALL_POINTS
        seen = state.outputs()
    factors = rule.neuron_factors(state.Z.shape, rng)
    if factors is not None:
        state = state.with_factors(factors)
        seen = state.outputs()[:, batch]
    gradients = state.gradients(loss.residuals(seen, wanted), batch)
    ahead = rule.lookahead(gradients)
    if ahead is not None:
        there = state.moved(ahead)
        residuals = loss.residuals(there.outputs()[:, batch], wanted)
        gradients = there.gradients(residuals, batch)
    return gradients


def _batches(size: int | None, points: int, rng: Any) -> Iterator[Batch]:
    """Yield the points of each step; all of them, or epochs of random batches."""
    if size is None or size >= points:
        while True:
            yield ALL_POINTS
    generator = checks.generator(rng)  # batches are random
    while True:
        order: IntArray = generator.permutation(points)
        for start in range(0, points - size + 1, size):
            yield order[start : start + size]


def _method(method: str, net: TwoLayerNet, sample: Sample, rule: Rule, steps: int) -> str:
    if not rule.linear:
        if method != "auto":
            raise InputError(
                f"method {method!r} needs a linear rule, because it computes coefficients; "
                f"got {rule!r}."
            )
        return "weights"
    return cheaper_method(net, sample, steps) if method == "auto" else method


def cheaper_method(net: TwoLayerNet, sample: Sample, steps: float) -> str:
    """Compare the multiplications of the two methods; the dual one begins with the Gram matrix."""
    n, d = sample.x.shape
    thin = _THIN_PRODUCT_PENALTY * len(net.weights) * steps
    return "dual" if n * n * d + thin * n * n <= thin * 2 * n * d else "primal"

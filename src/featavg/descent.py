"""Full-batch gradient descent, with the weight decomposition of Lemma 5.1 as its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from featavg import _checks
from featavg._checks import FloatArray, InputError
from featavg.law import Sample
from featavg.networks.base import TwoLayerNet
from featavg.progress import counted
from featavg.trajectory import Recorder, Trajectory, check_pair, recorded_steps

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
    record: int | Sequence[int] = 50,
    method: str = "auto",
    progress: bool = False,
) -> Trajectory:
    r"""Train a network by full-batch gradient descent.

    Paper: equation (1); the coefficient updates are Lemma 5.2.

    With :math:`Z = W X^\top + b` and :math:`R` minus the derivative of the losses by the outputs,
    a step is

    .. math:: G = \tfrac1n (A^\top R) \odot 1[Z \ge 0], \qquad
              C \leftarrow C + \eta G, \qquad Z \leftarrow Z + \eta\, G K

    with the Gram matrix :math:`K = X X^\top` (+1 where biases are trained). This "dual" step costs
    neurons·n²; the "primal" one, W ← W + η G X, costs 2·neurons·n·d. Both give the same numbers.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        Where to start. A binary network learns the labels y, a multi-class one the clusters.
    sample : Sample
        The training points.
    learning_rate : float
        :math:`\eta`.
    steps : int
        :math:`T`.
    record : int or sequence of int
        The steps to record, or how many, spaced evenly in log-time. The first (0) and the last
        are always among them.
    method : {"auto", "dual", "primal"}
        "auto" takes the cheaper one.
    progress : bool
        Whether to report progress on standard error.

    Returns
    -------
    Trajectory

    Raises
    ------
    ValueError
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
    learning_rate = _checks.scale("learning_rate", learning_rate)
    steps = _checks.count("steps", steps, minimum=0)
    recorded = recorded_steps(record, steps)
    check_pair(net, sample)
    method = _checks.choice("method", method, METHODS)
    if method == "auto":
        method = cheaper_method(net, sample, steps)
    recorder = Recorder(net, sample, learning_rate)
    targets = net.targets(sample)
    A = net.second_layer.astype(sample.x.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # found below, with a better message
        state = new_state(method, net, sample)
        for step in counted(steps + 1, "gradient descent", enabled=progress):
            outputs = A @ np.maximum(state.Z, 0)
            if not np.isfinite(outputs).all():
                raise InputError(
                    f"the loss became infinite or NaN at step {step} of {steps} because "
                    f"learning_rate is too large for points and weights of this size; "
                    f"got learning_rate={learning_rate!r}."
                )
            active = state.Z >= 0
            if step == recorded[len(recorder)]:
                log_time = np.log(learning_rate * step) if step else -np.inf
                recorder.add(log_time, outputs, active, state.C)
            if step < steps:
                update = A.T @ net.residuals(outputs, targets)
                update *= active
                update *= learning_rate / len(sample)
                state.add(update, state.change(update))
    return recorder.finish(method)


class TrainingState(ABC):
    """The coefficients C and the pre-activations Z of training, both (neurons, points)."""

    def __init__(self, net: TwoLayerNet, sample: Sample) -> None:
        self.Z: FloatArray = net.preactivations(sample.x).astype(sample.x.dtype)
        self.C: FloatArray = np.zeros_like(self.Z)
        self._sample, self._has_biases = sample, net.has_biases

    def change(self, update: FloatArray) -> FloatArray:
        """Return what adding `update` to C adds to Z."""
        change = self._product(update)
        if self._has_biases:  # the same as a Gram matrix with 1 added to each entry
            change += update.sum(axis=1, keepdims=True)
        return change

    def add(self, update: FloatArray, change: FloatArray) -> None:
        """Add to C, and to Z what follows."""
        self.C += update
        self.Z += change

    @abstractmethod
    def _product(self, update: FloatArray) -> FloatArray:
        """Return update X Xᵀ."""


class _DualState(TrainingState):
    def _product(self, update: FloatArray) -> FloatArray:
        return update @ self._sample.gram


class _PrimalState(TrainingState):
    def _product(self, update: FloatArray) -> FloatArray:
        x = self._sample.x
        return (x @ (update @ x).T).T  # the tall matrix first: BLAS is faster that way


def new_state(method: str, net: TwoLayerNet, sample: Sample) -> TrainingState:
    """Return the state at the start of training."""
    return (_DualState if method == "dual" else _PrimalState)(net, sample)


def cheaper_method(net: TwoLayerNet, sample: Sample, steps: float) -> str:
    """Compare the multiplications of the two methods; the dual one begins with the Gram matrix."""
    n, d = sample.x.shape
    thin = _THIN_PRODUCT_PENALTY * len(net.weights) * steps
    return "dual" if n * n * d + thin * n * n <= thin * 2 * n * d else "primal"

"""Full-batch gradient descent, with the weight decomposition of Lemma 5.1 as its state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.data.sample import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.progress import counted
from featavg.training.state import TrainingState, new_state
from featavg.training.trajectory import Recorder, Trajectory, check_pair, recorded_steps

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
    A `PolynomialNet` also moves its second layer and shrinks its weights along themselves, see
    `featavg.training.state.PolynomialState`; that is exact in the dual, too.

    Parameters
    ----------
    net : BinaryNet, MultiClassNet or PolynomialNet
        Where to start. A multi-class network learns the clusters, the others the labels y.
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
    learning_rate = checks.scale("learning_rate", learning_rate)
    steps = checks.count("steps", steps, minimum=0)
    recorded = recorded_steps(record, steps)
    check_pair(net, sample)
    method = checks.choice("method", method, METHODS)
    if method == "auto":
        method = cheaper_method(net, sample, steps)
    recorder = Recorder(net, sample, learning_rate)
    with np.errstate(over="ignore", invalid="ignore"):  # found on the way, with a better message
        state = new_state(method, net, sample)
    walk = walk_down(net, sample, state, learning_rate=learning_rate, steps=steps)
    for step in counted(steps + 1, "gradient descent", enabled=progress):
        outputs = next(walk)
        if step == recorded[len(recorder)]:
            log_time = np.log(learning_rate * step) if step else -np.inf
            recorder.add(log_time, outputs, state)
    return recorder.finish(method)


def walk_down(
    net: TwoLayerNet, sample: Sample, state: TrainingState, *, learning_rate: float, steps: int
) -> Iterator[FloatArray]:
    """Yield the outputs after 0, 1, ..., `steps` steps; a step is taken when it is asked for.

    Paper: equation (1). `state` is what moves: look at it between two steps, or stop anywhere.
    """
    targets = net.targets(sample)
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
        if step < steps:
            with np.errstate(over="ignore", invalid="ignore"):
                state.step(net.residuals(outputs, targets), learning_rate / len(sample))


def cheaper_method(net: TwoLayerNet, sample: Sample, steps: float) -> str:
    """Compare the multiplications of the two methods; the dual one begins with the Gram matrix."""
    n, d = sample.x.shape
    thin = _THIN_PRODUCT_PENALTY * len(net.weights) * steps
    return "dual" if n * n * d + thin * n * n <= thin * 2 * n * d else "primal"

"""Full-batch gradient descent, with the weight decomposition of Lemma 5.1 as its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg import _checks
from featavg._checks import BoolArray, FloatArray, InputError, IntArray
from featavg.law import Sample
from featavg.networks.base import TwoLayerNet
from featavg.progress import counted

METHODS = ("auto", "dual", "primal")

# A thin product (few neurons) waits for memory, the one large product of the Gram matrix does
# not: measured, an entry of the thin product costs about this many times as much.
_THIN_PRODUCT_PENALTY = 4


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    r"""What training recorded.

    Paper: :math:`\theta^{(t)}` and the coefficients of Lemmas 5.1 and 5.2.

    The state of training is the matrix C with
    :math:`w_r^{(t)} = w_r^{(0)} + \sum_i C^{(t)}_{r,i} x_i`, from which the coefficients of the
    paper follow exactly.

    Attributes
    ----------
    net : BinaryNet or MultiClassNet
        The network at the end.
    initial_net : BinaryNet or MultiClassNet
        The network at the start.
    sample : Sample
        What it was trained on.
    learning_rate : float
        :math:`\eta`.
    steps : array of shape (times,)
        The recorded steps :math:`t`.
    loss : array of shape (times,)
        The mean loss.
    margins : array of shape (times, points)
        y f(x), or for a multi-class network f of the own class minus the largest other.
    active : bool array of shape (times, neurons, points)
        The activation sets: where a pre-activation is >= 0.
    dual : array of shape (times, neurons, points)
        C.
    method : {"dual", "primal"}
        How the steps were computed.
    """

    net: TwoLayerNet
    initial_net: TwoLayerNet
    sample: Sample
    learning_rate: float
    steps: IntArray
    loss: FloatArray
    margins: FloatArray
    active: BoolArray
    dual: FloatArray
    method: str

    def __repr__(self) -> str:
        return (
            f"Trajectory({self.steps[-1]} steps of {self.learning_rate:g}, "
            f"{len(self.steps)} recorded, loss {self.loss[0]:.4g} -> {self.loss[-1]:.4g})"
        )

    @property
    def times(self) -> FloatArray:
        r"""The recorded times :math:`\eta t`."""
        return self.learning_rate * self.steps

    @property
    def feature_coefficients(self) -> FloatArray:
        r"""The coefficients :math:`\lambda_{r,j}` of Lemma 5.1, shape (times, neurons, clusters).

        :math:`\lambda_{r,j} = \alpha \|\mu_j\|^2 \sum_{i \in I_j} C_{r,i}`.
        """
        law = self.sample.law
        members = np.eye(law.clusters, dtype=self.dual.dtype)[self.sample.cluster]
        squared_norms = np.square(self.sample.centers).sum(axis=1)
        return (self.dual @ members) * (law.signal * squared_norms)

    @property
    def noise_coefficients(self) -> FloatArray:
        r"""The coefficients :math:`\sigma_{r,i}` of Lemma 5.1, shape (times, neurons, points).

        :math:`\sigma_{r,i} = \sigma \|\xi_i\|^2 C_{r,i}`.
        """
        return self.dual * (self.sample.law.noise * np.square(self.sample.noise_norms))

    def net_at(self, index: int) -> TwoLayerNet:
        """Return the network at the recorded time with this index."""
        return _network(self.initial_net, self.sample, self.dual[index])


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
    if net.dim != sample.x.shape[1]:
        raise InputError(
            f"net and sample must have the same coordinates; got {net.dim} and {sample.x.shape[1]}."
        )
    targets = net.targets(sample)
    chosen = (
        _cheaper(net, sample, steps)
        if _checks.choice("method", method, METHODS) == "auto"
        else method
    )
    A = net.second_layer.astype(sample.x.dtype)

    frames: list[_Frame] = []
    with np.errstate(over="ignore", invalid="ignore"):  # found below, with a better message
        state = (_DualState if chosen == "dual" else _PrimalState)(net, sample)
        for step in counted(steps + 1, "gradient descent", enabled=progress):
            outputs = A @ np.maximum(state.Z, 0)
            if not np.isfinite(outputs).all():
                raise InputError(
                    f"the loss became infinite or NaN at step {step} of {steps} because "
                    f"learning_rate is too large for points and weights of this size; "
                    f"got learning_rate={learning_rate!r}."
                )
            active = state.Z >= 0
            if step == recorded[len(frames)]:
                frames.append(_Frame.of(net, outputs, targets, active, state.C))
            if step < steps:
                update = A.T @ net.residuals(outputs, targets)
                update *= active
                update *= learning_rate / len(sample)
                state.add(update)

    return Trajectory(
        net=_network(net, sample, state.C),
        initial_net=net,
        sample=sample,
        learning_rate=learning_rate,
        steps=recorded,
        loss=np.array([frame.loss for frame in frames]),
        margins=np.stack([frame.margins for frame in frames]),
        active=np.stack([frame.active for frame in frames]),
        dual=np.stack([frame.C for frame in frames]),
        method=chosen,
    )


def recorded_steps(record: int | Sequence[int], steps: int) -> IntArray:
    """Return the steps to record, sorted, with 0 and `steps` among them.

    Examples
    --------
    >>> recorded_steps(5, 1000)
    array([   0,    1,   10,  100, 1000])
    >>> recorded_steps([20, 10], 1000)
    array([   0,   10,   20, 1000])
    """
    if isinstance(record, (int, np.integer)):
        wanted = _checks.count("record", record, minimum=2)
        spread = np.geomspace(1, max(steps, 1), wanted - 1)[1 if wanted == 2 else 0 :]
        chosen = spread.round().astype(np.int64)
    elif isinstance(record, (str, bytes)) or not isinstance(record, Iterable):
        raise InputError(f"record must be a number of steps or a list of them; got {record!r}.")
    else:
        chosen = np.array([_checks.count("record", t, minimum=0) for t in record], dtype=np.int64)
        if (chosen > steps).any():
            raise InputError(
                f"record must name steps of at most steps={steps}; got {int(chosen.max())}."
            )
    return np.unique(np.concatenate([[0], chosen[chosen <= steps], [steps]]))


@dataclass(frozen=True)
class _Frame:
    """One recorded time."""

    loss: float
    margins: FloatArray
    active: BoolArray
    C: FloatArray

    @classmethod
    def of(
        cls,
        net: TwoLayerNet,
        outputs: FloatArray,
        targets: IntArray,
        active: BoolArray,
        C: FloatArray,
    ) -> _Frame:
        loss = float(net.losses(outputs, targets).mean(dtype=np.float64))
        return cls(loss, net.margins(outputs, targets), active, C.copy())


class _State:
    """The coefficients C and the pre-activations Z of training, both (neurons, points)."""

    def __init__(self, net: TwoLayerNet, sample: Sample) -> None:
        self.Z: FloatArray = net.preactivations(sample.x).astype(sample.x.dtype)
        self.C: FloatArray = np.zeros_like(self.Z)
        self._has_biases = net.has_biases

    def add(self, update: FloatArray) -> None:
        """Add eta·G to C and what follows to Z."""
        raise NotImplementedError


class _DualState(_State):
    def __init__(self, net: TwoLayerNet, sample: Sample) -> None:
        super().__init__(net, sample)
        self._gram = sample.gram

    def add(self, update: FloatArray) -> None:
        self.C += update
        self.Z += update @ self._gram
        if self._has_biases:  # the same as a Gram matrix with 1 added to each entry
            self.Z += update.sum(axis=1, keepdims=True)


class _PrimalState(_State):
    def __init__(self, net: TwoLayerNet, sample: Sample) -> None:
        super().__init__(net, sample)
        self._x = sample.x
        self._W: FloatArray = net.weights.astype(sample.x.dtype)
        self._b: FloatArray = net.biases.astype(sample.x.dtype)

    def add(self, update: FloatArray) -> None:
        self.C += update
        self._W += update @ self._x
        if self._has_biases:
            self._b += update.sum(axis=1)
        self.Z = self._W @ self._x.T + self._b[:, None]


def _cheaper(net: TwoLayerNet, sample: Sample, steps: int) -> str:
    """Compare the multiplications of the two methods; the dual one begins with the Gram matrix."""
    n, d = sample.x.shape
    thin = _THIN_PRODUCT_PENALTY * len(net.weights) * steps
    return "dual" if n * n * d + thin * n * n <= thin * 2 * n * d else "primal"


def _network(initial: TwoLayerNet, sample: Sample, C: FloatArray) -> Any:
    """Return the network with w = w(0) + Σ C x and, where there are biases, b = b(0) + Σ C."""
    weights = initial.weights + C @ sample.x
    biases = initial.biases + C.sum(axis=1) if initial.has_biases else initial.biases
    return initial.with_parameters(weights, biases)

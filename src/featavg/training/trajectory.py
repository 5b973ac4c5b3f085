"""What training records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.data.sample import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.polynomial import PolynomialNet
from featavg.training.state import TrainingState


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    r"""What training recorded.

    Paper: :math:`\theta^{(t)}` and the coefficients of Lemmas 5.1 and 5.2.

    The state of training is the matrix C with
    :math:`w_r^{(t)} = s_r^{(t)} w_r^{(0)} + \sum_i C^{(t)}_{r,i} x_i`, from which the coefficients
    of the paper follow exactly; :math:`s = 1` for the paper's learners.

    Attributes
    ----------
    net : BinaryNet, MultiClassNet or PolynomialNet
        The network at the end.
    initial_net : BinaryNet, MultiClassNet or PolynomialNet
        The network at the start.
    sample : Sample
        What it was trained on.
    learning_rate : float
        :math:`\eta`.
    log_times : array of shape (times,)
        The natural logarithms of the recorded times :math:`\eta t`; minus infinity at the start.
    log_loss : array of shape (times,)
        The natural logarithm of the mean loss, which may be far below what a float can hold.
    margins : array of shape (times, points)
        y f(x), or for a multi-class network f of the own class minus the largest other.
    active : bool array of shape (times, neurons, points)
        The activation sets: where a pre-activation is >= 0.
    dual : array of shape (times, neurons, points)
        C.
    kept : array of shape (times, neurons)
        s, how much is left of the initial weights: 1 but for a `PolynomialNet`.
    outer : array of shape (times, neurons)
        The entry of each neuron in the second layer, which only a `PolynomialNet` can train.
    method : str
        How the steps were computed.
    """

    net: TwoLayerNet
    initial_net: TwoLayerNet
    sample: Sample
    learning_rate: float
    log_times: FloatArray
    log_loss: FloatArray
    margins: FloatArray
    active: BoolArray
    dual: FloatArray
    kept: FloatArray
    outer: FloatArray
    method: str

    def __repr__(self) -> str:
        return (
            f"Trajectory({_number(self.log_steps[-1])} steps of {self.learning_rate:g}, "
            f"{len(self.log_times)} recorded, loss {_number(self.log_loss[0])} -> "
            f"{_number(self.log_loss[-1])})"
        )

    @property
    def times(self) -> FloatArray:
        r"""The recorded times :math:`\eta t`; infinity where a float cannot hold them."""
        return _exp(self.log_times)

    @property
    def log_steps(self) -> FloatArray:
        """The natural logarithms of the recorded steps t."""
        return self.log_times - np.log(self.learning_rate)

    @property
    def steps(self) -> FloatArray:
        """The recorded steps t, whole numbers as far as a float can tell."""
        steps = _exp(self.log_steps)
        return np.where(steps < 2**52, np.round(steps), steps)

    @property
    def loss(self) -> FloatArray:
        """The recorded mean loss; 0 where a float cannot hold it, see `log_loss`."""
        return _exp(self.log_loss)

    @property
    def feature_coefficients(self) -> FloatArray:
        r"""The coefficients :math:`\lambda_{r,j}` of Lemma 5.1, shape (times, neurons, clusters).

        :math:`\lambda_{r,j} = \alpha \|\mu_j\|^2 \sum_{i \in I_j} C_{r,i}`.
        """
        return self._summed_by_cluster(self.dual)

    def feature_coefficients_at(self, index: int) -> FloatArray:
        """Return the feature coefficients at one recorded time, shape (neurons, clusters)."""
        return self._summed_by_cluster(self.dual[index])

    def _summed_by_cluster(self, dual: FloatArray) -> FloatArray:
        law = self.sample.law
        members = np.eye(law.clusters, dtype=dual.dtype)[self.sample.cluster]
        squared_norms = np.square(self.sample.centers).sum(axis=1)
        return (dual @ members) * (law.signal * squared_norms)

    @property
    def noise_coefficients(self) -> FloatArray:
        r"""The coefficients :math:`\sigma_{r,i}` of Lemma 5.1, shape (times, neurons, points).

        :math:`\sigma_{r,i} = \sigma \|\xi_i\|^2 C_{r,i}`.
        """
        return self.dual * (self.sample.law.noise * np.square(self.sample.noise_norms))

    def net_at(self, index: int) -> TwoLayerNet:
        """Return the network at the recorded time with this index."""
        state = self.dual[index], self.kept[index], self.outer[index]
        return network_of(self.initial_net, self.sample, *state)


class Recorder:
    """Collects what is recorded on the way, and makes a `Trajectory` of it."""

    def __init__(self, net: TwoLayerNet, sample: Sample, learning_rate: float) -> None:
        self._net, self._sample, self._learning_rate = net, sample, learning_rate
        self._targets = net.targets(sample)
        self._log_times: list[float] = []
        self._log_loss: list[float] = []
        self._arrays: list[tuple[FloatArray, BoolArray, FloatArray, FloatArray, FloatArray]] = []

    def __len__(self) -> int:
        return len(self._log_times)

    def add(self, log_time: float, outputs: FloatArray, state: TrainingState) -> None:
        """Record one time."""
        log_losses = self._net.log_losses(outputs, self._targets).astype(np.float64)
        largest = log_losses.max()
        self._log_times.append(log_time)
        self._log_loss.append(float(largest + np.log(np.exp(log_losses - largest).mean())))
        margins, active = self._net.margins(outputs, self._targets), state.Z >= 0
        self._arrays.append((margins, active, state.C.copy(), state.kept.copy(), state.outer))

    def finish(self, method: str) -> Trajectory:
        """Return all that was recorded; the last time is the end."""
        margins, active, dual, kept, outer = (
            np.stack(arrays) for arrays in zip(*self._arrays, strict=True)
        )
        return Trajectory(
            net=network_of(self._net, self._sample, dual[-1], kept[-1], outer[-1]),
            initial_net=self._net,
            sample=self._sample,
            learning_rate=self._learning_rate,
            log_times=np.array(self._log_times),
            log_loss=np.array(self._log_loss),
            margins=margins,
            active=active,
            dual=dual,
            kept=kept,
            outer=outer,
            method=method,
        )


def network_of(
    initial: TwoLayerNet,
    sample: Sample,
    C: FloatArray,
    kept: FloatArray | None = None,
    outer: FloatArray | None = None,
) -> TwoLayerNet:
    """Return the network with w = s w(0) + Σ C x and, where there are biases, b = b(0) + Σ C.

    Without `kept`, s = 1; without `outer`, the second layer is that of the start.
    """
    start = initial.weights if kept is None else kept[:, None] * initial.weights
    biases = initial.biases + C.sum(axis=1) if initial.has_biases else initial.biases
    net = initial.with_parameters(start + C @ sample.x, biases)
    return net if outer is None or not isinstance(net, PolynomialNet) else net.with_outer(outer)


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
        wanted = checks.count("record", record, minimum=2)
        spread = np.geomspace(1, max(steps, 1), wanted - 1)[1 if wanted == 2 else 0 :]
        chosen = spread.round().astype(np.int64)
    elif isinstance(record, (str, bytes)) or not isinstance(record, Iterable):
        raise InputError(f"record must be a number of steps or a list of them; got {record!r}.")
    else:
        chosen = np.array([checks.count("record", t, minimum=0) for t in record], dtype=np.int64)
        if (chosen > steps).any():
            raise InputError(
                f"record must name steps of at most steps={steps}; got {int(chosen.max())}."
            )
    return np.unique(np.concatenate([[0], chosen[chosen <= steps], [steps]]))


def check_pair(net: TwoLayerNet, sample: Sample) -> None:
    """Refuse a network and a sample that do not fit each other."""
    if net.dim != sample.x.shape[1]:
        raise InputError(
            f"net and sample must have the same coordinates; got {net.dim} and {sample.x.shape[1]}."
        )


def _exp(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(values)


def _number(log: float) -> str:
    """Return a number given by its logarithm as text, however large or small it is."""
    if -690 < log < 690:
        return f"{np.exp(log):.4g}"
    exponent = np.floor(log / np.log(10) + 1e-4)  # what rounds to 10.000 is 1.000
    return f"{10 ** (log / np.log(10) - exponent):.3f}e{exponent:+.0f}"

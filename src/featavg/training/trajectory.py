"""Trajectories: the record of a training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.data.law import Sample
from featavg.drawing.common import over_training
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import Curves
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss
from featavg.training.rule import GradientDescent, Rule
from featavg.training.state import Snapshot, TrainingState


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Pictured):
    r"""The record of a training.

    Paper: :math:`\theta^{(t)}` and the coefficients of Lemmas 5.1 and 5.2.

    Linear rules, such as gradient descent, move the matrix C with
    :math:`w_r^{(t)} = s_r^{(t)} w_r^{(0)} + \sum_i C^{(t)}_{r,i} x_i`, from which the coefficients
    of the paper follow exactly; :math:`s = 1` for gradient descent of the paper's learners. Other
    rules move the weights, and feature coefficients are projections; see `exact_coefficients`.

    Attributes
    ----------
    net : BinaryNet or MultiClassNet
        The network at the end.
    initial_net : BinaryNet or MultiClassNet
        The network at the start.
    sample : Sample
        The training points.
    learning_rate : float
        :math:`\eta`.
    loss_function : Loss
        The loss that was minimised.
    rule : Rule
        The rule of training.
    log_times : array of shape (times,)
        The natural logarithms of the recorded times :math:`\eta t`; minus infinity at the start.
    log_loss : array of shape (times,)
        The natural logarithm of the mean loss, which may be far below what a float can hold.
    margins : array of shape (times, points)
        y f(x), or for a multi-class network f of the own class minus the largest other.
    snapshots : tuple of Snapshot
        The trained parameters at each time.
    method : str
        How the steps were computed.
    """

    net: TwoLayerNet
    initial_net: TwoLayerNet
    sample: Sample
    learning_rate: float
    loss_function: Loss
    rule: Rule
    log_times: FloatArray
    log_loss: FloatArray
    margins: FloatArray
    snapshots: tuple[Snapshot, ...]
    method: str

    def __repr__(self) -> str:
        rule = "" if self.rule == GradientDescent() else f" by {self.rule!r}"
        return (
            f"Trajectory({_number(self.log_steps[-1])} steps of {self.learning_rate:g}{rule}, "
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
    def active(self) -> BoolArray:
        """The activation sets, where a pre-activation is >= 0: (times, neurons, points)."""
        return np.stack([snapshot.active for snapshot in self.snapshots])

    @property
    def biases(self) -> FloatArray:
        """The biases, shape (times, neurons)."""
        return np.stack([snapshot.biases for snapshot in self.snapshots])

    @property
    def exact_coefficients(self) -> bool:
        """Whether coefficients are exact, because the rule only adds multiples of the points."""
        return self.rule.linear

    @property
    def point_coefficients(self) -> FloatArray:
        """The matrix C at each time, shape (times, neurons, points); only where it is exact."""
        if not self.exact_coefficients:
            raise InputError(
                "coefficients of the points need a linear rule, which only adds multiples of them "
                f"to the weights; got {self.rule!r}."
            )
        return np.stack([cast(FloatArray, snapshot.coefficients) for snapshot in self.snapshots])

    @property
    def feature_coefficients(self) -> FloatArray:
        r"""The coefficients :math:`\lambda_{r,j}` of Lemma 5.1, shape (times, neurons, clusters).

        :math:`\lambda_{r,j} = \alpha \|\mu_j\|^2 \sum_{i \in I_j} C_{r,i}`. Where they are not
        exact: :math:`\|\mu_j\|^2` times the coordinate of :math:`w - w^{(0)}` along
        :math:`\mu_j` in its projection onto the span of the centres.
        """
        return np.stack([self.feature_coefficients_at(i) for i in range(len(self.snapshots))])

    def feature_coefficients_at(self, index: int) -> FloatArray:
        """Return the feature coefficients at one recorded time, shape (neurons, clusters)."""
        law, centers = self.sample.law, self.sample.centers
        squared_norms = np.square(centers).sum(axis=1)
        snapshot = self.snapshots[index]
        if snapshot.coefficients is not None:
            members = np.eye(law.clusters, dtype=centers.dtype)[self.sample.cluster]
            return (snapshot.coefficients @ members) * (law.signal * squared_norms)
        moved = self.net_at(index).weights - self.initial_net.weights
        return np.linalg.lstsq(centers.T, moved.T, rcond=None)[0].T * squared_norms

    @property
    def noise_coefficients(self) -> FloatArray:
        r"""The coefficients :math:`\sigma_{r,i}` of Lemma 5.1, shape (times, neurons, points).

        :math:`\sigma_{r,i} = \sigma \|\xi_i\|^2 C_{r,i}`; only where they are exact.
        """
        squares = self.sample.law.noise * np.square(self.sample.noise_norms)
        return self.point_coefficients * squares

    def view(self) -> Curves:
        r"""Return the feature coefficients of own and of other centres over the time of training.

        Own centres are those of a neuron's side, or of its class for a multi-class network.
        """
        own = self.net.own_clusters(self.sample)
        values = self.feature_coefficients
        return over_training(self.log_times, values[:, own], values[:, ~own])

    def net_at(self, index: int) -> TwoLayerNet:
        """Return the network at the recorded time with this index."""
        return self.snapshots[index].rebuild(self.initial_net, self.sample)


class Recorder:
    """Collects the states at the recorded times, and makes a `Trajectory` of them."""

    def __init__(
        self, net: TwoLayerNet, sample: Sample, learning_rate: float, loss: Loss, rule: Rule
    ) -> None:
        self._net, self._sample, self._learning_rate = net, sample, learning_rate
        self._loss, self._rule = loss, rule
        self._targets = loss.targets(net.output_count, sample)
        self._log_times: list[float] = []
        self._log_loss: list[float] = []
        self._margins: list[FloatArray] = []
        self._snapshots: list[Snapshot] = []

    def __len__(self) -> int:
        return len(self._log_times)

    def add(self, log_time: float, outputs: FloatArray, state: TrainingState) -> None:
        """Record one time."""
        log_losses = self._loss.log_losses(outputs, self._targets).astype(np.float64)
        self._log_times.append(log_time)
        self._log_loss.append(_log_mean_exp(log_losses))
        self._margins.append(self._loss.margins(outputs, self._targets))
        self._snapshots.append(state.snapshot())

    def finish(self, method: str) -> Trajectory:
        """Return all that was recorded; the last time is the end."""
        return Trajectory(
            net=self._snapshots[-1].rebuild(self._net, self._sample),
            initial_net=self._net,
            sample=self._sample,
            learning_rate=self._learning_rate,
            loss_function=self._loss,
            rule=self._rule,
            log_times=np.array(self._log_times),
            log_loss=np.array(self._log_loss),
            margins=np.stack(self._margins),
            snapshots=tuple(self._snapshots),
            method=method,
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


def _log_mean_exp(logs: FloatArray) -> float:
    """Return log(mean(exp(logs))); minus infinity where all are."""
    largest = logs.max()
    if not np.isfinite(largest):
        return float(largest)
    return float(largest + np.log(np.exp(logs - largest).mean()))


def _exp(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(values)


def _number(log: float) -> str:
    """Return a number given by its logarithm as text, however large or small it is."""
    if -690 < log < 690:
        return f"{np.exp(log):.4g}"
    exponent = np.floor(log / np.log(10) + 1e-4)  # what rounds to 10.000 is 1.000
    return f"{10 ** (log / np.log(10) - exponent):.3f}e{exponent:+.0f}"

"""The state of training: coefficients and pre-activations, or the weights themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError, shortened
from featavg.networks.base import TwoLayerNet, hidden_values, positive_column
from featavg.training.rule import Parameters

Product = Callable[[FloatArray], FloatArray]
"""Multiplies by X Xᵀ from the right."""

Batch = IntArray | slice
"""Which points a gradient is taken over."""

ALL_POINTS = slice(None)


@dataclass(frozen=True, eq=False)
class Snapshot:
    r"""The trained parameters at one time.

    Attributes
    ----------
    active : bool array of shape (neurons, points)
        Where a pre-activation is >= 0.
    coefficients, initial_share : arrays of shape (neurons, points) and (neurons,), or None
        C and s with :math:`w_r = s_r w_r^{(0)} + \sum_i C_{r,i} x_i`, where training is computed
        on these.
    weights : array of shape (neurons, coordinates), or None
        The weights, where it is not.
    biases, second_layer : arrays of shape (neurons,)
        The other parameters, trained or not.
    """

    active: BoolArray
    biases: FloatArray
    second_layer: FloatArray
    coefficients: FloatArray | None = None
    initial_share: FloatArray | None = None
    weights: FloatArray | None = None

    def rebuild(self, initial: TwoLayerNet, sample: Sample) -> TwoLayerNet:
        """Return the network with these parameters, given where training started."""
        weights = self.weights
        if weights is None:
            assert self.coefficients is not None  # noqa: S101  one of the two is there
            assert self.initial_share is not None  # noqa: S101
            weights = self.initial_share[:, None] * initial.weights + self.coefficients @ sample.x
        outer = self.second_layer if initial.trains_second_layer else None
        net = initial.with_parameters(weights, self.biases, outer)
        return net.in_span_if(sample.in_span)  # whatever the network was made of


class TrainingState(ABC):
    """The parameters of a network in training, and the training points as it sees them.

    Attributes
    ----------
    Z : array of shape (neurons, points)
        The pre-activations.
    A : array of shape (outputs, neurons)
        The second layer.
    parameters : dict of arrays
        What a rule moves, by name; see `Parameters`.
    factors : array of shape (neurons, points), or None
        What the outputs of the neurons are multiplied by; see `with_factors`.
    """

    Z: FloatArray
    parameters: dict[str, FloatArray]
    factors: FloatArray | None = None

    def __init__(self, net: TwoLayerNet, sample: Sample) -> None:
        kind = sample.x.dtype
        self.net, self.sample = net, sample
        self.A: FloatArray = net.second_layer.astype(kind)
        self.Z = net.preactivations(sample.x).astype(kind)
        self.parameters = {}
        if net.has_biases:
            self.parameters["biases"] = net.biases.astype(kind)
        if net.trains_second_layer:
            self.parameters["second_layer"] = self.A[0].copy()

    @property
    def biases(self) -> FloatArray:
        """The biases, trained or not, shape (neurons,)."""
        return self.parameters.get("biases", self.net.biases)

    @property
    @abstractmethod
    def squared_norms(self) -> FloatArray:
        """The squared norms of the weights, shape (neurons,)."""

    @property
    @abstractmethod
    def _weights(self) -> dict[str, FloatArray]:
        """The weights as a snapshot has them: themselves, or their coefficients."""

    @abstractmethod
    def apply(self, updates: Parameters) -> None:
        """Add to the parameters."""

    @abstractmethod
    def _weight_gradient(self, signal: FloatArray, batch: Batch) -> FloatArray:
        """Return minus the mean of signal times point."""

    def snapshot(self) -> Snapshot:
        """Return the parameters as they are now; every neuron has one entry in one row of A."""
        outer, weights = self.A.sum(axis=0), self._weights
        return Snapshot(self.Z >= 0, **weights, biases=self.biases.copy(), second_layer=outer)

    def hidden(self, batch: Batch = ALL_POINTS) -> FloatArray:
        """Return the outputs of the neurons at the points of a batch."""
        hidden = hidden_values(self.net.activation, self.Z[:, batch], self._divisors())
        return hidden if self.factors is None else hidden * self.factors[:, batch]

    def outputs(self) -> FloatArray:
        """Return the outputs at the training points, shape (outputs, points)."""
        return self.A @ self.hidden()

    def gradients(self, residuals: FloatArray, batch: Batch = ALL_POINTS) -> Parameters:
        r"""Return the gradient of the mean loss over a batch.

        With residuals R, minus the derivative of the losses by the outputs, the pull of point i on
        neuron r is :math:`P_{r,i} = \frac1B (A^\top R)_{r,i}\,\varphi'(Z_{r,i})`, and the
        gradients of weights, biases and second layer are :math:`-\sum_i P_{r,i} x_i`,
        :math:`-\sum_i P_{r,i}` and :math:`-\frac1B \sum_i R_i h_{r,i}`.

        A normalized neuron, :math:`\|w\|\varphi(u)` with :math:`u = z/\|w\|`, also has the
        derivative :math:`\varphi(u) - u\varphi'(u)` by its norm, which is along its weight.
        """
        activation, divisors = self.net.activation, self._divisors()
        Z = self.Z[:, batch]
        size = residuals.shape[1]
        signal = self.A.T @ residuals
        if self.factors is not None:
            signal *= self.factors[:, batch]
        along: Any = 0.0
        if divisors is None:
            signal *= activation.slope(Z)
        else:
            u = Z / divisors
            slope = activation.slope(u)
            by_norm = (signal * (activation.value(u) - u * slope)).sum(axis=1, keepdims=True)
            along = by_norm / (size * divisors)
            signal *= slope
        gradients = {"weights": self._weight_gradient(signal, batch)}
        if np.any(along):
            gradients["weights"] -= along * self.parameters["weights"]
        if "biases" in self.parameters:
            gradients["biases"] = signal.sum(axis=1) / -size
        if "second_layer" in self.parameters:
            gradients["second_layer"] = -(self.hidden(batch) @ residuals[0]) / size
        return gradients

    def moved(self, step: Parameters) -> TrainingState:
        """Return the state after a step, and leave this one as it is."""
        other = copy(self)
        other.parameters = dict(self.parameters)
        other.apply(step)
        return other

    def with_factors(self, factors: FloatArray) -> TrainingState:
        """Return the state with the outputs of the neurons multiplied, and leave this one."""
        other = copy(self)
        other.factors = factors.astype(self.Z.dtype, copy=False)
        return other

    def at_points(self, x: FloatArray) -> TrainingState:
        """Return the state that sees other points, and leave this one as it is."""
        raise InputError(
            "gradients at other points need a state of the weights themselves, because "
            f"coefficients belong to the training points; got {len(x)} others."
        )

    def _divisors(self) -> FloatArray | None:
        """Return the norms to divide by, as a column, where neurons are normalized."""
        if not self.net.activation.normalized:
            return None
        return positive_column(np.sqrt(np.maximum(self.squared_norms, 0)))

    def _apply_to_others(self, updates: Parameters) -> None:
        for name in ("biases", "second_layer"):
            if name in updates:
                self.parameters[name] = self.parameters[name] + updates[name]
        if "second_layer" in updates:
            self.A = self.parameters["second_layer"][None, :]


class CoefficientState(TrainingState):
    r"""The state of training by linear rules, which only add multiples of points to weights.

    Paper: Lemma 5.1, :math:`w_r = s_r w_r^{(0)} + \sum_i C_{r,i} x_i` with s = 1.

    The weight of neuron r has the coordinates :math:`(C_{r,1}, \dots, C_{r,n}, s_r)` in the basis
    :math:`x_1, \dots, x_n, w_r^{(0)}`; a linear rule moves these as it would move weights.
    """

    def __init__(self, net: TwoLayerNet, sample: Sample, product: Product) -> None:
        super().__init__(net, sample)
        self._product = product
        coordinates = np.zeros((len(self.Z), len(sample) + 1), sample.x.dtype)
        coordinates[:, -1] = 1
        self.parameters = {"weights": coordinates, **self.parameters}
        # the pre-activations of the initial weights, needed only once their share changes
        self._start: FloatArray | None = None

    @property
    def coefficients(self) -> FloatArray:
        """C, shape (neurons, points)."""
        return self.parameters["weights"][:, :-1]

    @property
    def initial_share(self) -> FloatArray:
        """s, the factor of the initial weights, shape (neurons,)."""
        return self.parameters["weights"][:, -1]

    @property
    def squared_norms(self) -> FloatArray:
        r"""The squared norms, :math:`\sum_i C_i \langle w + s w_0, x_i\rangle + s^2\|w_0\|^2`."""
        C, s, start = self.coefficients, self.initial_share, self._initial_products()
        along = (C * (self.Z - self.biases[:, None] + s[:, None] * start)).sum(axis=1)
        return along + np.square(s * self.net.norms)

    def _initial_products(self) -> FloatArray:
        if self._start is None:
            self._start = (self.net.weights @ self.sample.x.T).astype(self.Z.dtype)
        return self._start

    def _weight_gradient(self, signal: FloatArray, batch: Batch) -> FloatArray:
        gradient = np.zeros_like(self.parameters["weights"])
        if isinstance(batch, slice):
            np.multiply(signal, -1 / signal.shape[1], out=gradient[:, :-1])
        else:
            gradient[:, batch] = signal / -len(batch)
        return gradient

    def apply(self, updates: Parameters) -> None:
        """Add to the parameters, and update the pre-activations."""
        step = updates["weights"]
        change = self._product(step[:, :-1])
        if step[:, -1].any():
            change += step[:, -1:] * self._initial_products()
        if "biases" in updates:
            change += updates["biases"][:, None]
        self.parameters["weights"] += step
        self.Z += change
        self._apply_to_others(updates)

    def change(self, step: FloatArray) -> FloatArray:
        """Return the change of Z when gradient flow adds `step` to C."""
        change = self._product(step)
        if "biases" in self.parameters:  # the same as a Gram matrix with 1 added to each entry
            change += step.sum(axis=1, keepdims=True)
        return change

    def flow(self, step: FloatArray, change: FloatArray) -> None:
        """Add `step` to C and to the biases, and `change` to Z; see the method `change`."""
        self.coefficients[...] += step
        self.Z += change
        if "biases" in self.parameters:
            self.parameters["biases"] = self.parameters["biases"] + step.sum(axis=1)

    @property
    def _weights(self) -> dict[str, FloatArray]:
        share = self.initial_share.copy()
        return {"coefficients": self.coefficients.copy(), "initial_share": share}


class WeightState(TrainingState):
    """The state of training by any rule: the weights themselves."""

    def __init__(self, net: TwoLayerNet, sample: Sample) -> None:
        super().__init__(net, sample)
        weights: FloatArray = net.weights.astype(sample.x.dtype)
        self.parameters = {"weights": weights, **self.parameters}
        self._points = sample.x

    @property
    def squared_norms(self) -> FloatArray:
        """The squared norms of the weights, shape (neurons,)."""
        return np.square(self.parameters["weights"]).sum(axis=1)

    def _weight_gradient(self, signal: FloatArray, batch: Batch) -> FloatArray:
        return (signal / -signal.shape[1]) @ self._points[batch]

    def apply(self, updates: Parameters) -> None:
        """Add to the parameters, and compute the pre-activations anew."""
        self.parameters["weights"] = self.parameters["weights"] + updates["weights"]
        self._apply_to_others(updates)
        self._see_points()

    def at_points(self, x: FloatArray) -> WeightState:
        """Return the state that sees other points, and leave this one as it is."""
        other = copy(self)
        other._points = x
        other._see_points()
        return other

    def _see_points(self) -> None:
        # the tall matrix first: BLAS is faster so
        products = (self._points @ self.parameters["weights"].T).T
        self.Z = products + self.biases[:, None].astype(products.dtype)

    @property
    def _weights(self) -> dict[str, FloatArray]:
        return {"weights": self.parameters["weights"].copy()}


def new_state(method: str, net: TwoLayerNet, sample: Sample) -> TrainingState:
    """Return the state at the start of training: on coefficients, or "weights"."""
    with np.errstate(over="ignore", invalid="ignore"):  # training finds what overflows
        if method == "weights":
            return WeightState(net, sample)
        return CoefficientState(net, sample, _products(method, sample))


def _products(method: str, sample: Sample) -> Product:
    """Return the product with X Xᵀ, by the Gram matrix ("dual") or by the points ("primal")."""

    def dual(update: FloatArray) -> FloatArray:
        return update @ sample.gram

    def primal(update: FloatArray) -> FloatArray:
        return (sample.x @ (update @ sample.x).T).T  # the tall matrix first: BLAS is faster so

    return dual if method == "dual" else primal


def check_pair(net: TwoLayerNet, sample: Sample) -> None:
    """Refuse anything but a network and a sample, and those that do not fit each other."""
    if not isinstance(net, TwoLayerNet):
        raise InputError(f"net must be a network, such as a BinaryNet; got {shortened(net)}.")
    if not isinstance(sample, Sample):
        raise InputError(
            f"sample must be a Sample, which knows the side of each centre; got "
            f"{shortened(sample)}."
        )
    if net.dim != sample.x.shape[1]:
        raise InputError(
            f"net and sample must have the same coordinates; got {net.dim} and {sample.x.shape[1]}."
        )
    if net.in_span and not sample.in_span:
        raise InputError(
            "net and sample must have the same coordinates; got a network in those of the span, "
            "and a sample in those of the law."
        )

"""What training keeps from step to step: coefficients and pre-activations, not weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.sample import Sample
from featavg.networks.base import TwoLayerNet
from featavg.networks.polynomial import PolynomialNet, polynomial, polynomial_slopes

Product = Callable[[FloatArray], FloatArray]
"""Multiplies by X Xᵀ from the right."""


class TrainingState:
    r"""The state of networks that only ever add multiples of the points to their weights.

    Paper: Lemma 5.1, :math:`w_r = w_r^{(0)} + \sum_i C_{r,i} x_i`.

    Attributes
    ----------
    C, Z : arrays of shape (neurons, points)
        The coefficients and the pre-activations.
    kept : array of shape (neurons,)
        The factor of the initial weight: 1.
    outer : array of shape (neurons,)
        The entry of each neuron in the second layer.
    """

    def __init__(self, net: TwoLayerNet, sample: Sample, product: Product) -> None:
        kind = sample.x.dtype
        self.Z: FloatArray = net.preactivations(sample.x).astype(kind)
        self.C: FloatArray = np.zeros_like(self.Z)
        self.kept: FloatArray = np.ones(len(self.Z), kind)
        self.A: FloatArray = net.second_layer.astype(kind)
        self._product, self._has_biases = product, net.has_biases

    @property
    def outer(self) -> FloatArray:
        """The entry of each neuron in the second layer; every neuron has one output."""
        return self.A.sum(axis=0)

    def outputs(self) -> FloatArray:
        """Return the outputs at the training points, shape (outputs, points)."""
        return self.A @ np.maximum(self.Z, 0)

    def step(self, residuals: FloatArray, rate: float) -> None:
        """Take a step of gradient descent, `rate` being the learning rate over n."""
        update = self.A.T @ residuals
        update *= self.Z >= 0
        update *= rate
        self.add(update, self.change(update))

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


class PolynomialState(TrainingState):
    r"""The state of a `PolynomialNet`: also the second layer, and how much is left of the start.

    Paper: none, an extension of Lemma 5.1.

    With :math:`h_{r,i} = \mathrm{relu}(Z_{r,i})^p / \|w_r\|^{p-1}` and the residuals
    :math:`R_i`, minus the derivative of the losses by the output, a step of gradient descent is

    .. math:: a_r \leftarrow a_r + \tfrac\eta n \sum_i R_i h_{r,i}, \qquad
              w_r \leftarrow (1 - \kappa_r) w_r + \sum_i G_{r,i} x_i

    with :math:`G = \frac\eta n a_r R_i\, p\,\mathrm{relu}(Z_{r,i})^{p-1}/\|w_r\|^{p-1}` and
    :math:`\kappa_r = \frac\eta n (p-1) a_r \sum_i R_i h_{r,i} / \|w_r\|^2`, which comes from
    the norm in the denominator. So :math:`w_r = s_r w_r^{(0)} + \sum_i C_{r,i} x_i` stays exact,
    and the norms follow from
    :math:`\|w'\|^2 = (1-\kappa)^2\|w\|^2 + 2(1-\kappa)\langle G, Z\rangle + \langle G, GK\rangle`.
    """

    def __init__(self, net: PolynomialNet, sample: Sample, product: Product) -> None:
        super().__init__(net, sample, product)
        self._power, self._train_second_layer = net.power, net.train_second_layer
        self._squares: FloatArray = np.square(net.norms).astype(sample.x.dtype)

    @property
    def norms(self) -> FloatArray:
        """The norms of the weights, shape (neurons,)."""
        return np.sqrt(np.maximum(self._squares, 0))

    def outputs(self) -> FloatArray:
        """Return the output at the training points, shape (1, points)."""
        return self.A @ polynomial(self.Z, self.norms, self._power)

    def step(self, residuals: FloatArray, rate: float) -> None:
        """Take a step of gradient descent, `rate` being the learning rate over n."""
        norms, a = self.norms, self.A[0]
        pull = rate * (polynomial(self.Z, norms, self._power) @ residuals[0])
        G = (rate * a)[:, None] * residuals * polynomial_slopes(self.Z, norms, self._power)
        squares = np.where(self._squares > 0, self._squares, 1)
        left = 1 - (self._power - 1) * a * pull / squares
        change = self.change(G)
        along = (G * self.Z).sum(axis=1)
        self._squares = left * left * self._squares + 2 * left * along + (G * change).sum(axis=1)
        self.kept *= left
        self.C *= left[:, None]
        self.Z *= left[:, None]
        self.add(G, change)
        if self._train_second_layer:
            self.A = (a + pull)[None, :]


def new_state(method: str, net: TwoLayerNet, sample: Sample) -> TrainingState:
    """Return the state at the start of training, with "dual" or "primal" products."""

    def dual(update: FloatArray) -> FloatArray:
        return update @ sample.gram

    def primal(update: FloatArray) -> FloatArray:
        return (sample.x @ (update @ sample.x).T).T  # the tall matrix first: BLAS is faster so

    product = dual if method == "dual" else primal
    if isinstance(net, PolynomialNet) and not net.moves_along_points:
        return PolynomialState(net, sample, product)
    return TrainingState(net, sample, product)

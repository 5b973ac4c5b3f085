"""Attacks on a two-layer network have as many dimensions as the network has neurons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet

# Squares of what is smaller than this, or larger than its inverse, leave what a float can hold.
_SMALLEST = 1e-100


@dataclass(frozen=True, eq=False, repr=False)
class WeightSpan:
    r"""A network seen from the span of its own weights.

    A perturbation :math:`\rho` changes the pre-activations by :math:`W\rho`, so only its part in
    the span of the rows of W matters. With an orthonormal basis Q of that span, :math:`\rho = Qu`
    changes them by :math:`(WQ)u` and has the norm :math:`\|u\|`.

    Attributes
    ----------
    basis : array of shape (coordinates, span)
        Q. The span has as many dimensions as there are neurons, or coordinates if they are fewer.
    weights : array of shape (neurons, span)
        W Q.
    """

    basis: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, net: TwoLayerNet) -> WeightSpan:
        """Return the span of a network's weights."""
        W = net.weights.astype(np.float64)
        largest = np.abs(W).max()
        basis, triangle = np.linalg.qr((W / largest if largest > 0 else W).T)
        return cls(basis=basis, weights=largest * triangle.T)

    def embed(self, coordinates: FloatArray) -> FloatArray:
        """Return the perturbations Qu, shape (points, coordinates), of u, shape (span, points)."""
        return (self.basis @ coordinates).T


@dataclass(frozen=True, eq=False, repr=False)
class AttackView:
    """Points and their labels as an attack in the span of the weights sees them.

    Perturbations u are laid out (span, points).
    """

    net: TwoLayerNet
    span: WeightSpan
    z: FloatArray
    z_sizes: FloatArray
    y: IntArray
    A: FloatArray

    @classmethod
    def of(cls, net: TwoLayerNet, x: FloatArray, y: IntArray, *, scaled: bool = True) -> AttackView:
        """Return the view of checked points, in double precision.

        With `scaled`, weights and biases are scaled to order 1 first, where the decision does not
        depend on it.
        """
        W: FloatArray = net.weights.astype(np.float64)
        b: FloatArray = net.biases.astype(np.float64)
        largest = float(np.abs(W).max())
        if scaled and largest > 0 and net.scale_is_free:
            net = net.with_parameters(W / largest, b / largest)
            W, b, largest = net.weights, net.biases, 1.0
        z = W @ x.astype(np.float64).T + b[:, None]
        for name, size in (("weights", largest), ("pre-activations", float(np.abs(z).max()))):
            if size and not _SMALLEST <= size <= 1 / _SMALLEST:
                raise InputError(
                    f"{name} must have a size from {_SMALLEST:g} to {1 / _SMALLEST:g} for radii to "
                    f"be computed; got {size:g}."
                )
        sizes = np.outer(np.linalg.norm(W, axis=1), np.linalg.norm(x, axis=1)) + np.abs(b)[:, None]
        return cls(net, WeightSpan.of(net), z, sizes, y, net.second_layer.astype(np.float64))

    def subset(self, which: IntArray) -> AttackView:
        """Return the view of some of the points."""
        z, sizes = self.z[:, which], self.z_sizes[:, which]
        return AttackView(self.net, self.span, z, sizes, self.y[which], self.A)

    def preactivations(self, u: FloatArray) -> FloatArray:
        """Return the pre-activations of the perturbed points."""
        return self.z + self.span.weights @ u

    def outputs(self, z: FloatArray) -> FloatArray:
        """Return the network's outputs at pre-activations z."""
        return self.net.outputs_at(z)

    def gradient(self, by_output: FloatArray, z: FloatArray) -> FloatArray:
        """Turn a derivative by the outputs into one by the perturbation, at pre-activations z."""
        return self.span.weights.T @ ((self.A.T @ by_output) * self.net.hidden_slopes(z))

    def margin(self, u: FloatArray) -> FloatArray:
        """Return y times the decision of the perturbed points."""
        return self.y * self.net.decision(self.outputs(self.preactivations(u)))

    def margin_and_gradient(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the margin and its derivative by the perturbation."""
        z = self.preactivations(u)
        outputs = self.outputs(z)
        by_output = self.y * self.net.decision_gradient(outputs)
        return self.y * self.net.decision(outputs), self.gradient(by_output, z)

    def turned(self, u: FloatArray) -> BoolArray:
        """Return where a perturbation turns the decision."""
        z = self.preactivations(u)
        return self.turned_at(z, self.y * self.net.decision(self.outputs(z)), u)

    def turned_at(self, z: FloatArray, margin: FloatArray, u: FloatArray) -> BoolArray:
        """Return where the decision is turned, given what `turned` would compute first.

        By more than rounding: at a score of 0 the decision is -1, and where the network is silent,
        or where neurons of both sides cancel, it is 0 up to rounding. Only in silence, where no
        rounding takes part, 0 turns a +1.
        """
        norms = np.linalg.norm(self.span.weights, axis=1)
        largest = np.abs(self.z) + norms[:, None] * np.linalg.norm(u, axis=0)
        rounding = 1e-14 * np.abs(self.A).max() * self.net.hidden(largest).sum(axis=0)
        silent = (self.net.hidden(z) == 0).all(axis=0)
        return (margin < -rounding) | ((self.y == 1) & silent & (margin <= 0))

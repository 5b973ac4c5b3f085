"""A network with two hidden layers: training by gradient descent, and radii by attack.

Exact radii are for one hidden layer, so here they are upper bounds: the norms of perturbations
that turn the decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.measures.alignment import cosines, participation

_BISECTIONS = 40


@dataclass(frozen=True, eq=False)
class ThreeLayerNet:
    r"""The network :math:`f(x) = a^\top \mathrm{relu}(V\,\mathrm{relu}(Wx + b) + c)`.

    Paper: none, an extension of Section 3.2.

    Attributes
    ----------
    weights, biases : arrays of shape (hidden, coordinates) and (hidden,)
        W and b, of the first layer.
    inner, inner_biases : arrays of shape (neurons, hidden) and (neurons,)
        V and c, of the second layer.
    outer : array of shape (neurons,)
        a, which is not trained: ±1/m.
    """

    weights: FloatArray
    biases: FloatArray
    inner: FloatArray
    inner_biases: FloatArray
    outer: FloatArray

    @classmethod
    def init(
        cls,
        sample: Sample,
        *,
        width: int,
        weight_scale: float,
        bias_scale: float,
        rng: np.random.Generator,
    ) -> ThreeLayerNet:
        """Draw a network of 2·`width` neurons in each hidden layer.

        The first layer and all biases begin as small as those of `BinaryNet`, the second layer with
        variance 2/(2·width) (He et al., 2015): had both small weights, gradients would vanish.
        """
        size = 2 * width
        return cls(
            weight_scale * sample.gaussian(size, rng=rng),
            bias_scale * rng.standard_normal(size),
            rng.standard_normal((size, size)) * np.sqrt(2 / size),
            bias_scale * rng.standard_normal(size),
            np.repeat([1.0, -1.0], width) / width,
        )

    def score(self, x: FloatArray) -> FloatArray:
        """Return f at each point, shape (points,)."""
        return self._forward(x)[2]

    def predict(self, x: FloatArray) -> IntArray:
        """Return the side of each point, with sgn(0) = -1."""
        return np.where(self.score(x) > 0, 1, -1)

    def _forward(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the pre-activations of both layers and the outputs, a row for each point."""
        first = x @ self.weights.T + self.biases
        second = np.maximum(first, 0) @ self.inner.T + self.inner_biases
        return first, second, np.maximum(second, 0) @ self.outer

    def input_gradients(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f and its derivative by each point, shapes (points,) and (points, coordinates)."""
        first, second, score = self._forward(x)
        back = ((second >= 0) * self.outer) @ self.inner * (first >= 0)
        return score, back @ self.weights

    def step(self, x: FloatArray, y: IntArray, learning_rate: float) -> ThreeLayerNet:
        """Return the network after a step of gradient descent on the mean logistic loss."""
        first, second, score = self._forward(x)
        pull = y * expit(-y * score) / len(y)
        by_second = pull[:, None] * (second >= 0) * self.outer
        by_first = (by_second @ self.inner) * (first >= 0)
        rate = learning_rate
        return ThreeLayerNet(
            self.weights + rate * (by_first.T @ x),
            self.biases + rate * by_first.sum(axis=0),
            self.inner + rate * (by_second.T @ np.maximum(first, 0)),
            self.inner_biases + rate * by_second.sum(axis=0),
            self.outer,
        )


def descend_three_layers(
    net: ThreeLayerNet, sample: Sample, *, learning_rate: float, steps: int
) -> Iterator[ThreeLayerNet]:
    """Yield the network after 0, 1, ..., `steps` steps of gradient descent."""
    yield net
    for _ in range(steps):
        net = net.step(sample.x, sample.y, learning_rate)
        yield net


def averaging(net: ThreeLayerNet, sample: Sample) -> tuple[float, float]:
    """Return the averaging index and the mean cosine with own centres of the first layer.

    A neuron of the first layer has no side of its own; it is counted to the side with whose centres
    it has the larger cosines. Neurons weigh as much as they carry: the norms of their weights in
    and out, so that neurons that never moved hardly count.
    """
    found, signs = cosines(sample.centers, net.weights), sample.law.signs
    strength = np.linalg.norm(net.weights, axis=1) * np.linalg.norm(net.inner, axis=0)
    side = np.where((found * signs[:, None]).sum(axis=0) >= 0, 1, -1)
    own = signs[:, None] == side
    index = participation(found.astype(np.float64), own)
    known = ~np.isnan(index)
    mean = np.where(own, found, 0).sum(axis=0) / own.sum(axis=0)
    return (
        float(np.average(index[known], weights=strength[known])),
        float(np.average(mean, weights=strength)),
    )


def attacked_radii(
    net: ThreeLayerNet, x: FloatArray, y: IntArray, *, towards: FloatArray, steps: int = 60
) -> FloatArray:
    r"""Return the norm of a perturbation that turns each decision: an upper bound of the radius.

    Paper: none, an extension. The iteration of Hasofer, Lind, Rackwitz and Fiessler, which
    DeepFool resembles: the next perturbation is halfway to the smallest one that turns the linear
    function that f is around :math:`x + \rho`, :math:`(g\rho - f(x + \rho))\,g / \|g\|^2`. It
    starts at the point, and where the decision turns on the way to twice each point of `towards`,
    such as the centres: from the point alone it found radii half as large again. The smallest
    perturbation that turns the decision is kept, cut back along its own direction by bisection. 0
    where the decision is wrong already, infinity where nothing was found. All of it runs in the
    span of the first layer's weights, which is all that f depends on.
    """
    basis = np.linalg.qr(net.weights.T)[0]
    net, x = replace(net, weights=net.weights @ basis), x @ basis
    best = np.where(net.predict(x) == y, np.inf, 0.0)
    starts: list[FloatArray] = [np.zeros_like(x)]
    for target in 2 * towards @ basis:
        length = _turning_length(net, x, y, target - x)
        best = np.minimum(best, length)
        share = np.where(np.isfinite(length), length, 0) / np.linalg.norm(target - x, axis=1)
        starts.append(share[:, None] * (target - x))
    for rho in starts:
        for _ in range(steps):
            score, gradient = net.input_gradients(x + rho)
            squares = np.square(gradient).sum(axis=1)
            along = ((gradient * rho).sum(axis=1) - score) / np.where(squares > 0, squares, 1)
            wanted = along[:, None] * gradient
            # a little beyond the boundary, where the decision is the other one
            best = np.minimum(best, _turning_length(net, x, y, 1.001 * wanted))
            rho = np.where(squares[:, None] > 0, (rho + wanted) / 2, rho)
    return best


def _turning_length(net: ThreeLayerNet, x: FloatArray, y: IntArray, rho: FloatArray) -> FloatArray:
    """Return the smallest length along each perturbation that turns the decision, or infinity."""
    turned = net.predict(x + rho) != y
    low, high = np.zeros(len(x)), np.ones(len(x))
    for _ in range(_BISECTIONS if turned.any() else 0):
        middle = (low + high) / 2
        over = net.predict(x + middle[:, None] * rho) != y
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.where(turned, high * np.linalg.norm(rho, axis=1), np.inf)

"""The learner of Min and Vidal: a trainable second layer and a polynomial activation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray, frozen
from featavg.data.sample import Sample
from featavg.errors import InputError
from featavg.networks.base import OneOutputNet, check_parameters
from featavg.networks.binary import BinaryNet

POWERS = (1, 2, 3)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class PolynomialNet(OneOutputNet):
    r"""The two-class network of polynomial neurons, without biases.

    Paper: none, an extension; for p = 1 and a fixed second layer of :math:`\pm 1/m` it is the
    network of Section 3.2 without biases. The setting is that of Min and Vidal, "Can implicit
    bias imply adversarial robustness?" (ICML 2024), whose conjecture is Theorem 4.6.

    .. math:: f(x) = \sum_r a_r \frac{\mathrm{relu}(\langle w_r, x\rangle)^p}{\|w_r\|^{p-1}}

    trained by the logistic loss on the labels in {-1, +1}. Whatever p is, doubling :math:`w_r`
    doubles what the neuron says. A neuron whose weight is zero says nothing.

    Parameters
    ----------
    weights : array of shape (neurons, dim)
        The :math:`w_r`.
    outer : array of shape (neurons,)
        The second layer :math:`a_r`; its sign is the side that a neuron speaks for.
    power : {1, 2, 3}
        p.
    train_second_layer : bool
        Whether training moves the second layer as well.

    Examples
    --------
    >>> net = PolynomialNet(weights=[[2.0, 0.0], [0.0, 1.0]], outer=[1.0, -1.0], power=2)
    >>> net.score([[3.0, 1.0], [-1.0, 4.0]])            # 6²/2 - 1² and 0 - 4²
    array([ 17., -16.])
    """

    weights: FloatArray
    outer: FloatArray
    power: int
    train_second_layer: bool

    def __init__(
        self,
        weights: ArrayLike,
        outer: ArrayLike,
        power: int = 1,
        train_second_layer: bool = True,
    ) -> None:
        W, _ = check_parameters(weights, None)
        a = checks.vector("outer", outer, length=len(W))
        if checks.count("power", power) not in POWERS:
            raise InputError(f"power must be 1, 2 or 3; got {power!r}.")
        if not isinstance(train_second_layer, (bool, np.bool_)):
            raise InputError(
                f"train_second_layer must be True or False; got {train_second_layer!r}."
            )
        object.__setattr__(self, "weights", W)
        object.__setattr__(self, "outer", frozen(a.astype(W.dtype, copy=False)))
        object.__setattr__(self, "power", int(power))
        object.__setattr__(self, "train_second_layer", bool(train_second_layer))

    @classmethod
    def init(
        cls,
        sample: Sample,
        *,
        width: int,
        weight_scale: float,
        rng: np.random.Generator,
        power: int = 1,
        train_second_layer: bool = True,
    ) -> PolynomialNet:
        r"""Draw a network of `width` positive and `width` negative neurons for a sample.

        Paper: none, an extension. :math:`w_r \sim N(0, \sigma_w^2 I_d)` with :math:`\sigma_w` =
        `weight_scale`. A second layer that is trained begins balanced,
        :math:`|a_r| = \|w_r\|`, which gradient flow conserves; one that is not is
        :math:`\pm 1/m` with m = `width`, as in the paper.

        Examples
        --------
        >>> from featavg import MultiCluster
        >>> rng = np.random.default_rng(0)
        >>> train = MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
        >>> net = PolynomialNet.init(train, width=3, weight_scale=1e-5, rng=rng, power=3)
        >>> net
        PolynomialNet(3 + 3 neurons of power 3, 50 coordinates, both layers trained)
        >>> bool(np.abs(net.imbalances).max() < 1e-20)
        True
        """
        width = checks.count("width", width)
        weight_scale = checks.scale("weight_scale", weight_scale, zero=True)
        with np.errstate(over="ignore"):  # what overflows is refused below
            weights = weight_scale * sample.gaussian(2 * width, rng=rng)
            norms = np.linalg.norm(weights, axis=1) if train_second_layer else 1 / width
        return cls(weights, np.repeat([1, -1], width) * norms, power, train_second_layer)

    def __repr__(self) -> str:
        positive = int((self.neuron_signs == 1).sum())
        trained = "both layers" if self.train_second_layer else "first layer"
        return (
            f"PolynomialNet({positive} + {len(self.outer) - positive} neurons of power "
            f"{self.power}, {self.dim} coordinates, {trained} trained)"
        )

    @property
    def has_biases(self) -> bool:
        """No, always."""
        return False

    @property
    def biases(self) -> FloatArray:
        """Zeros: this network has no biases."""
        return np.zeros(len(self.weights), self.weights.dtype)

    @property
    def second_layer(self) -> FloatArray:
        """The second layer, shape (1, neurons)."""
        return self.outer[None, :]

    @property
    def neuron_signs(self) -> IntArray:
        """The sign of each neuron's second layer; -1 for 0."""
        return np.where(self.outer > 0, 1, -1)

    @cached_property
    def norms(self) -> FloatArray:
        """The norms of the weights, shape (neurons,)."""
        return np.asarray(np.linalg.norm(self.weights, axis=1))

    @property
    def imbalances(self) -> FloatArray:
        r"""What gradient flow conserves, :math:`a_r^2 - \|w_r\|^2`, shape (neurons,)."""
        return np.square(self.outer) - np.square(self.norms)

    @property
    def moves_along_points(self) -> bool:
        """Whether training only adds multiples of the points: power 1, second layer fixed."""
        return self.power == 1 and not self.train_second_layer

    def hidden(self, Z: FloatArray) -> FloatArray:
        """Return relu(Z)^p / ‖w‖^(p-1)."""
        return polynomial(Z, self.norms, self.power)

    def hidden_slopes(self, Z: FloatArray) -> FloatArray:
        """Return p relu(Z)^(p-1) / ‖w‖^(p-1)."""
        return polynomial_slopes(Z, self.norms, self.power)

    def with_parameters(self, weights: FloatArray, biases: FloatArray) -> PolynomialNet:
        """Return the network with other weights; `biases` must be zero."""
        if np.any(biases):
            raise InputError("a PolynomialNet has no biases; got some that are not zero.")
        return PolynomialNet(weights, self.outer, self.power, self.train_second_layer)

    def with_outer(self, outer: FloatArray) -> PolynomialNet:
        """Return the network with another second layer."""
        return PolynomialNet(self.weights, outer, self.power, self.train_second_layer)

    def to_binary(self) -> BinaryNet:
        r"""Return the same function as a `BinaryNet`, for power 1.

        Paper: none, an extension. :math:`a\,\mathrm{relu}(z) = \pm\mathrm{relu}(|a| z)`; the
        smaller side is filled up with neurons that are zero.

        Examples
        --------
        >>> net = PolynomialNet(weights=[[1.0, 0.0], [0.0, 1.0]], outer=[3.0, -0.5])
        >>> net.to_binary().score([[2.0, 4.0]]), net.score([[2.0, 4.0]])
        (array([4.]), array([4.]))
        """
        if self.power > 1:
            raise InputError(
                f"only a network of power 1 is a ReLU network; got a power of {self.power}."
            )
        signs = self.neuron_signs
        sides = [np.flatnonzero(signs == s) for s in (1, -1)]
        width = max(map(len, sides))
        weights = np.zeros((2, width, self.dim), self.weights.dtype)
        for s, neurons in enumerate(sides):
            scales = width * np.abs(self.outer[neurons])
            weights[s, : len(neurons)] = scales[:, None] * self.weights[neurons]
        return BinaryNet(weights.reshape(2 * width, self.dim))


def polynomial(Z: FloatArray, norms: FloatArray, power: int) -> FloatArray:
    """Return relu(Z)^p / norms^(p-1), shape (neurons, points)."""
    values = np.maximum(Z, 0)
    if power == 1:
        return values
    share = values / _divisors(norms)  # first, so that nothing underflows
    return values * (share if power == 2 else share * share)


def polynomial_slopes(Z: FloatArray, norms: FloatArray, power: int) -> FloatArray:
    """Return the derivative of `polynomial` by Z; a neuron at 0 counts as active."""
    if power == 1:
        return (Z >= 0).astype(Z.dtype)
    share = np.maximum(Z, 0) / _divisors(norms)
    return 2 * share if power == 2 else 3 * share * share


def _divisors(norms: FloatArray) -> FloatArray:
    """Return the norms as a column, with 1 for 0: a weight of zero has no pre-activations."""
    return np.where(norms > 0, norms, 1).astype(norms.dtype)[:, None]

"""The coarse-label learner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.data.sample import Sample
from featavg.errors import InputError
from featavg.networks.base import OneOutputNet, check_parameters


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BinaryNet(OneOutputNet):
    r"""The two-class network with 2m neurons.

    Paper: Section 3.2.

    .. math:: f(x) = \frac1m \sum_{r \le m} \mathrm{relu}(\langle w_{+,r}, x\rangle + b_{+,r})
                   - \frac1m \sum_{r \le m} \mathrm{relu}(\langle w_{-,r}, x\rangle + b_{-,r})

    trained by the logistic loss :math:`\log(1 + e^{-y f(x)})` on the labels in {-1, +1}.

    Parameters
    ----------
    weights : array of shape (2m, dim)
        The first m rows are the positive neurons, the last m the negative ones.
    biases : array of shape (2m,), optional
        Zeros by default.

    Examples
    --------
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]], biases=[0.0, -1.0])
    >>> net.score([[3.0, 2.0], [1.0, 4.0]])
    array([ 2., -2.])
    >>> net.predict([[3.0, 2.0], [1.0, 4.0]])
    array([ 1, -1])
    """

    weights: FloatArray
    _biases: FloatArray

    def __init__(self, weights: ArrayLike, biases: ArrayLike | None = None) -> None:
        W, b = check_parameters(weights, biases)
        if len(W) % 2:
            raise InputError(
                "weights must have an even number of rows, half of them positive neurons; "
                f"got {len(W)}."
            )
        object.__setattr__(self, "weights", W)
        object.__setattr__(self, "_biases", b)

    @classmethod
    def init(
        cls,
        sample: Sample,
        *,
        width: int,
        weight_scale: float,
        bias_scale: float,
        rng: np.random.Generator,
    ) -> BinaryNet:
        r"""Draw a network of `width` positive and `width` negative neurons for a sample.

        Paper: Section 3.2. :math:`w_{s,r} \sim N(0, \sigma_w^2 I_d)` with
        :math:`\sigma_w` = `weight_scale`, :math:`b_{s,r} \sim N(0, \sigma_b^2)` with
        :math:`\sigma_b` = `bias_scale`, :math:`m` = `width`.

        Examples
        --------
        >>> from featavg import MultiCluster
        >>> rng = np.random.default_rng(0)
        >>> train = MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
        >>> BinaryNet.init(train, width=3, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
        BinaryNet(3 + 3 neurons, 50 coordinates)
        """
        width = checks.count("width", width)
        weight_scale = checks.scale("weight_scale", weight_scale, zero=True)
        bias_scale = checks.scale("bias_scale", bias_scale, zero=True)
        with np.errstate(over="ignore"):  # what overflows is refused below
            weights = weight_scale * sample.gaussian(2 * width, rng=rng)
            return cls(weights, bias_scale * rng.standard_normal(2 * width))

    def __repr__(self) -> str:
        return f"BinaryNet({self.width} + {self.width} neurons, {self.dim} coordinates)"

    @property
    def width(self) -> int:
        """The number m of neurons on each side."""
        return len(self.weights) // 2

    @property
    def has_biases(self) -> bool:
        """Yes, always."""
        return True

    @property
    def biases(self) -> FloatArray:
        """The biases, shape (2m,)."""
        return self._biases

    @property
    def second_layer(self) -> FloatArray:
        """The fixed layer: 1/m for positive neurons and -1/m for negative ones, shape (1, 2m)."""
        return (self.neuron_signs / self.width).astype(self.weights.dtype)[None, :]

    @property
    def neuron_signs(self) -> IntArray:
        """+1 for the first m neurons, -1 for the last m."""
        return np.repeat([1, -1], self.width)

    def with_parameters(self, weights: FloatArray, biases: FloatArray) -> BinaryNet:
        """Return the network with other weights and biases."""
        return BinaryNet(weights, biases)

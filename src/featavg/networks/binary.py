"""The coarse-label learner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray, frozen
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import Activation, ReLU
from featavg.networks.base import TwoLayerNet, check_parameters, plain_relus
from featavg.networks.loss import Logistic, Loss
from featavg.networks.shallow import ShallowNet


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BinaryNet(TwoLayerNet):
    r"""The two-class network with 2m neurons.

    Paper: Section 3.2; another second layer, activation, or what is trained, are extensions.

    .. math:: f(x) = \frac1m \sum_{r \le m} \mathrm{relu}(\langle w_{+,r}, x\rangle + b_{+,r})
                   - \frac1m \sum_{r \le m} \mathrm{relu}(\langle w_{-,r}, x\rangle + b_{-,r})

    trained by the logistic loss :math:`\log(1 + e^{-y f(x)})` on the labels in {-1, +1}.

    Parameters
    ----------
    weights : array of shape (2m, dim)
        The first m rows are the positive neurons, the last m the negative ones; with a
        `second_layer`, any number of rows.
    biases : array of shape (2m,), optional
        Zeros by default.
    second_layer : array of shape (neurons,), optional
        The factor of each neuron, whose sign is the side of the neuron; 1/m and -1/m by default.
    activation : Activation
        The function of the pre-activations; the ReLU by default.
    train_biases, train_second_layer : bool
        Whether training moves the biases (yes) and the second layer (no).

    Examples
    --------
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]], biases=[0.0, -1.0])
    >>> net.score([[3.0, 2.0], [1.0, 4.0]])
    array([ 2., -2.])
    >>> net.predict([[3.0, 2.0], [1.0, 4.0]])
    array([ 1, -1])
    """

    weights: FloatArray
    activation: Activation
    _biases: FloatArray
    _outer: FloatArray | None
    _train_biases: bool
    _train_second_layer: bool

    readout = "score"

    def __init__(
        self,
        weights: ArrayLike,
        biases: ArrayLike | None = None,
        *,
        second_layer: ArrayLike | None = None,
        activation: Activation = ReLU(),  # noqa: B008  it cannot change
        train_biases: bool = True,
        train_second_layer: bool = False,
    ) -> None:
        W, b = check_parameters(weights, biases, activation)
        outer = None
        if second_layer is not None:
            outer = checks.vector("second_layer", second_layer, length=len(W))
            outer = frozen(outer.astype(W.dtype, copy=False))
        elif len(W) % 2:
            raise InputError(
                "weights must have an even number of rows, half of them positive neurons; "
                f"got {len(W)}."
            )
        for name, value in (
            ("weights", W),
            ("activation", activation),
            ("_biases", b),
            ("_outer", outer),
            ("_train_biases", checks.flag("train_biases", train_biases)),
            ("_train_second_layer", checks.flag("train_second_layer", train_second_layer)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def init(
        cls,
        sample: Sample,
        *,
        width: int,
        weight_scale: float,
        bias_scale: float | None,
        rng: np.random.Generator,
        activation: Activation = ReLU(),  # noqa: B008
        train_second_layer: bool = False,
    ) -> BinaryNet:
        r"""Draw a network of `width` positive and `width` negative neurons for a sample.

        Paper: Section 3.2. :math:`w_{s,r} \sim N(0, \sigma_w^2 I_d)` with
        :math:`\sigma_w` = `weight_scale`, :math:`b_{s,r} \sim N(0, \sigma_b^2)` with
        :math:`\sigma_b` = `bias_scale`, :math:`m` = `width`. With a `bias_scale` of None the
        network has no biases (an extension), and with `train_second_layer` the second layer is
        trained too and begins balanced, :math:`|a_r| = \|w_r\|`, which gradient flow conserves.

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
        with np.errstate(over="ignore"):  # what overflows is refused below
            weights = weight_scale * sample.gaussian(2 * width, rng=rng)
            biases = None
            if bias_scale is not None:
                bias_scale = checks.scale("bias_scale", bias_scale, zero=True)
                biases = bias_scale * rng.standard_normal(2 * width)
            outer = None
            if train_second_layer:
                outer = np.repeat([1, -1], width) * np.linalg.norm(weights, axis=1)
        return cls(
            weights,
            biases,
            second_layer=outer,
            activation=activation,
            train_biases=bias_scale is not None,
            train_second_layer=train_second_layer,
        ).in_span_if(sample.in_span)

    def __repr__(self) -> str:
        positive = int((self.neuron_signs == 1).sum())
        parts = [f"{positive} + {len(self.weights) - positive} neurons", f"{self.dim} coordinates"]
        parts += [] if self.activation == ReLU() else [repr(self.activation)]
        parts += [] if self.has_biases else ["no biases trained"]
        parts += ["both layers trained"] if self.trains_second_layer else []
        return f"BinaryNet({', '.join(parts)})"

    @property
    def width(self) -> int:
        """The number m of neurons on each side; of the larger one, if they differ."""
        positive = int((self.neuron_signs == 1).sum())
        return max(positive, len(self.weights) - positive)

    @property
    def has_biases(self) -> bool:
        """Whether biases are trained, as in the paper."""
        return self._train_biases

    @property
    def trains_second_layer(self) -> bool:
        """Whether training moves the second layer; not in the paper."""
        return self._train_second_layer

    @property
    def biases(self) -> FloatArray:
        """The biases, shape (neurons,)."""
        return self._biases

    @property
    def second_layer(self) -> FloatArray:
        """1/m for positive neurons and -1/m for negative ones, or as given, shape (1, neurons)."""
        if self._outer is not None:
            return self._outer[None, :]
        return (self.neuron_signs / self.width).astype(self.weights.dtype)[None, :]

    @property
    def neuron_signs(self) -> IntArray:
        """+1 for positive neurons, -1 for the others: the sign of the second layer."""
        if self._outer is not None:
            return np.where(self._outer > 0, 1, -1)
        return np.repeat([1, -1], len(self.weights) // 2)

    @property
    def output_signs(self) -> IntArray:
        """+1: the one output is the score of the positive side."""
        return np.ones(1, dtype=np.int64)

    @property
    def default_loss(self) -> Loss:
        """The logistic loss."""
        return Logistic()

    def own_clusters(self, sample: Sample) -> BoolArray:
        """Return which clusters each neuron is to learn: all of its side."""
        return self.neuron_signs[:, None] == sample.law.signs[None, :]

    def with_parameters(
        self, weights: FloatArray, biases: FloatArray, second_layer: FloatArray | None = None
    ) -> BinaryNet:
        """Return the network with other weights and biases, and possibly second layer."""
        return BinaryNet(
            weights,
            biases,
            second_layer=self._outer if second_layer is None else second_layer,
            activation=self.activation,
            train_biases=self._train_biases,
            train_second_layer=self._train_second_layer,
        ).in_span_if(self.in_span)

    def decision(self, outputs: FloatArray) -> FloatArray:
        """Return f itself."""
        return outputs[0]

    def decision_gradient(self, outputs: FloatArray) -> FloatArray:
        """Return 1 for every point."""
        return np.ones_like(outputs)

    def to_shallow(self) -> ShallowNet:
        """Return the network whose one output is the score of +1 against -1."""
        return plain_relus(self, self.second_layer, [-1, 1])

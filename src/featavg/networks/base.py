"""What the learners share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from inspect import isabstract
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray, frozen
from featavg.data.law import Sample
from featavg.drawing.common import mutual_cosines
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import HeatMaps
from featavg.errors import InputError
from featavg.networks.activation import Activation, check_activation, refuse_smooth
from featavg.networks.frame import Framed
from featavg.networks.loss import Loss
from featavg.networks.shallow import ShallowNet

if TYPE_CHECKING:
    import torch


class TwoLayerNet(Framed, Pictured):
    r"""A network with one hidden layer.

    With the pre-activations :math:`Z = W X^\top + b`, the activation h and the second layer
    :math:`A`, the outputs are :math:`F = A\,h(Z)`. Everything that has a value for each neuron or
    output and each point is laid out (neurons or outputs, points). Each neuron feeds one output.

    Conventions: a neuron is active where its pre-activation is >= 0; the decision at a score of 0
    is -1.
    """

    weights: FloatArray
    activation: Activation
    readout: str
    """How the outputs decide: "score", "argmax", "probability" or "logit-sum"."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in cls.__mro__[1:]:
            if issubclass(base, TwoLayerNet) and base is not TwoLayerNet and not isabstract(base):
                raise TypeError(
                    f"{base.__name__} cannot be subclassed, because methods would not follow what "
                    "is overridden; give it an Activation, or subclass TwoLayerNet."
                )
        for name in ("hidden", "hidden_slopes"):
            if name in vars(cls):
                raise TypeError(
                    f"{cls.__name__} must not override {name}, because training and radii would "
                    "not follow it; give the network an Activation instead."
                )

    @property
    @abstractmethod
    def has_biases(self) -> bool:
        """Whether biases are trained."""

    @property
    @abstractmethod
    def biases(self) -> FloatArray:
        """The biases, shape (neurons,); zeros where the network has none."""

    @property
    @abstractmethod
    def second_layer(self) -> FloatArray:
        """The second layer A, shape (outputs, neurons)."""

    @property
    @abstractmethod
    def neuron_signs(self) -> IntArray:
        """The side, +1 or -1, that each neuron speaks for, shape (neurons,)."""

    @property
    @abstractmethod
    def output_signs(self) -> IntArray:
        """The side, +1 or -1, that each output speaks for, shape (outputs,)."""

    @property
    @abstractmethod
    def default_loss(self) -> Loss:
        """The loss that the network is trained by unless another one is given."""

    @abstractmethod
    def with_parameters(
        self, weights: FloatArray, biases: FloatArray, second_layer: FloatArray | None = None
    ) -> TwoLayerNet:
        """Return the same network with other trained parameters.

        `second_layer` has one entry for each neuron; without it, it stays as it is.
        """

    @abstractmethod
    def decision(self, outputs: FloatArray) -> FloatArray:
        """Return a number for each point whose sign is the binary decision."""

    @abstractmethod
    def decision_gradient(self, outputs: FloatArray) -> FloatArray:
        """Return the derivative of the decision by each output, shape (outputs, points)."""

    @abstractmethod
    def to_shallow(self) -> ShallowNet:
        """Return the decision as that of a `ShallowNet`, with the labels -1 and +1; or refuse."""

    def after_affine(self, factors: FloatArray, offset: FloatArray) -> TwoLayerNet:
        """Return the network that takes x where this one takes factors * x + offset.

        It is in double precision, and its biases are not zero even where this one has none.
        """
        return self.with_parameters(*self._first_layer_after(factors, offset))

    def _first_layer_after(
        self, factors: FloatArray, offset: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if self.activation.normalized and self.activation.pieces is None:
            raise InputError(
                "a scaling can only be folded into a network whose activation does not look at "
                f"the norms of the weights; got {self.activation!r}."
            )
        W, b = self.weights.astype(np.float64), self.biases.astype(np.float64)
        return W * factors, b + W @ offset

    def view(self) -> HeatMaps:
        """Return the cosines between the weights of neurons: blocks where they average."""
        title = f"Cosines between the weights of {len(self.weights)} neurons"
        return mutual_cosines(title, self.weights, "neuron")

    def with_readout(self, readout: str) -> TwoLayerNet:
        """Return the network with another readout, which only one of many classes has."""
        raise self._needs_classes("another readout")

    def with_positive(self, positive: int | Sequence[int]) -> TwoLayerNet:
        """Return the network with other classes on the positive side."""
        raise self._needs_classes("another positive side")

    def of_classes(self, classes: ArrayLike) -> TwoLayerNet:
        """Return the network of some of the classes, of which the first half is positive."""
        raise self._needs_classes("a choice of classes")

    def _needs_classes(self, what: str) -> InputError:
        return InputError(f"{what} needs a network of many classes; got {self!r}.")

    @abstractmethod
    def own_clusters(self, sample: Sample) -> BoolArray:
        """Return which clusters each neuron is to learn, shape (neurons, clusters)."""

    @property
    def trains_second_layer(self) -> bool:
        """Whether training moves the second layer as well."""
        return False

    @property
    def output_count(self) -> int:
        """The number of outputs."""
        return len(self.second_layer)

    @property
    def has_one_output(self) -> bool:
        """Whether one output is the binary score; else there is an output for each class."""
        return len(self.second_layer) == 1

    @property
    def degree(self) -> int | None:
        r"""The L with :math:`F(c\,\theta) = c^L F(\theta)`, :math:`\theta` being what is trained.

        None where outputs are not homogeneous.
        """
        inner = 1 if self.activation.normalized else self.activation.degree
        if inner is None or (not self.has_biases and self.biases.any()):
            return None
        return inner + self.trains_second_layer

    @property
    def scale_is_free(self) -> bool:
        """Whether weights and biases times the same factor decide alike."""
        homogeneous = self.activation.normalized or self.activation.degree is not None
        return homogeneous and self.readout != "probability"

    @property
    def dim(self) -> int:
        """The number of coordinates of the points it takes."""
        return int(self.weights.shape[1])

    @cached_property
    def norms(self) -> FloatArray:
        """The norms of the weights, shape (neurons,)."""
        return np.asarray(np.linalg.norm(self.weights, axis=1))

    def preactivations(self, x: ArrayLike) -> FloatArray:
        """Return Z = W Xᵀ + b, shape (neurons, points)."""
        points = checks.matrix("x", x, columns=self.dim)
        return self.weights @ points.T + self.biases[:, None]

    def hidden(self, Z: FloatArray) -> FloatArray:
        """Return what the neurons say at pre-activations Z, shape (..., neurons, points)."""
        return hidden_values(self.activation, Z, self._divisors)

    def hidden_slopes(self, Z: FloatArray) -> FloatArray | BoolArray:
        """Return the derivative of `hidden` by each pre-activation, of the same shape."""
        return self.activation.slope(Z if self._divisors is None else Z / self._divisors)

    @cached_property
    def _divisors(self) -> FloatArray | None:
        return positive_column(self.norms) if self.activation.normalized else None

    def outputs(self, x: ArrayLike) -> FloatArray:
        """Return F = A h(W Xᵀ + b), shape (outputs, points)."""
        return self.outputs_at(self.preactivations(x))

    def outputs_at(self, Z: FloatArray) -> FloatArray:
        """Return F = A h(Z) at pre-activations Z of shape (..., neurons, points)."""
        return self.second_layer @ self.hidden(Z)

    def score(self, x: ArrayLike) -> FloatArray:
        """Return the binary score of each point, shape (points,); its sign is the decision."""
        return self.decision(self.outputs(x))

    def predict(self, x: ArrayLike) -> IntArray:
        """Return the binary decision, -1 or +1, of each point; a score of 0 counts as -1."""
        return np.where(self.decision(self.outputs(x)) > 0, 1, -1)

    def to_torch(self, outputs: str = "decision") -> torch.nn.Module:
        """Return the network as an ordinary `torch.nn.Module`, for Foolbox, ART and other tools.

        Paper: none, an extension. Needs PyTorch, the extra ``featavg[vision]``.

        Parameters
        ----------
        outputs : {"decision", "classes"}
            "decision" gives two logits, 0 and the binary decision: class 1 is the label +1, class
            0 the label -1. "classes" gives the outputs of each class of a `MultiClassNet`.

        Examples
        --------
        >>> from featavg import BinaryNet
        >>> import torch
        >>> module = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]]).to_torch()
        >>> module(torch.tensor([[3.0, 1.0]], dtype=torch.float64)).tolist()
        [[0.0, 2.0]]
        """
        checks.choice("outputs", outputs, ("decision", "classes"))
        if outputs == "classes" and self.has_one_output:
            raise InputError("outputs 'classes' needs a MultiClassNet; got a BinaryNet.")
        try:
            from featavg.networks.torch_net import TorchNet
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "to_torch needs PyTorch: pip install 'featavg[vision]'."
            ) from error
        return TorchNet(
            weights=self.weights,
            biases=self.biases,
            second_layer=self.second_layer,
            positive=self.output_signs == 1,
            activation=self.activation,
            readout="classes" if outputs == "classes" else self.readout,
        )


def plain_relus(net: TwoLayerNet, outer: FloatArray, labels: ArrayLike) -> ShallowNet:
    r"""Return a network of ReLUs with the outputs :math:`A\varphi(W x + b)` and these labels.

    With the slopes l and r of the activation, :math:`\varphi(z) = l z + (r - l)\,\mathrm{relu}(z)`.
    It is the same for a normalized activation, because this one is homogeneous of degree 1.
    """
    left, right = refuse_smooth(net.activation, "the exact radius")
    W, b, A = (part.astype(np.float64) for part in (net.weights, net.biases, outer))
    linear = left * A @ W
    shallow = ShallowNet(W, b, (right - left) * A, left * A @ b, linear=linear, labels=labels)
    return shallow.in_span_if(net.in_span)


def hidden_values(
    activation: Activation, Z: FloatArray, divisors: FloatArray | None = None
) -> FloatArray:
    """Return h(Z), or ‖w‖ h(Z/‖w‖) with the norms of the weights as divisors."""
    return activation.value(Z) if divisors is None else divisors * activation.value(Z / divisors)


def positive_column(norms: FloatArray) -> FloatArray:
    """Return norms as a column to divide by, with 1 for 0: such weights have no pre-activations."""
    return np.where(norms > 0, norms, 1).astype(norms.dtype)[:, None]


def check_parameters(
    weights: ArrayLike, biases: ArrayLike | None, activation: Activation
) -> tuple[FloatArray, FloatArray]:
    """Return read-only weights and biases (zeros if None) of one precision."""
    check_activation(activation)
    W = checks.matrix("weights", weights)
    b = np.zeros(len(W), W.dtype) if biases is None else checks.vector("biases", biases)
    if len(b) != len(W):
        raise InputError(
            f"biases must have one entry for each of the {len(W)} neurons; got {len(b)}."
        )
    return frozen(W), frozen(b.astype(W.dtype, copy=False))

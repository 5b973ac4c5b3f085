"""What the learners share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray, frozen
from featavg.data.law import MultiCluster
from featavg.data.sample import Sample
from featavg.errors import InputError

if TYPE_CHECKING:
    import torch


class TwoLayerNet(ABC):
    r"""A network with one hidden layer.

    With the pre-activations :math:`Z = W X^\top + b` and the second layer :math:`A`, the outputs
    are :math:`F = A\,h(Z)`, with :math:`h` the ReLU unless a subclass says otherwise. Everything
    that has a value for each neuron or output and each point is laid out (neurons or outputs,
    points).

    Conventions: a neuron is active where its pre-activation is >= 0; the decision at a score of 0
    is -1.
    """

    weights: FloatArray

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

    @abstractmethod
    def with_parameters(self, weights: FloatArray, biases: FloatArray) -> TwoLayerNet:
        """Return the same network with other trained parameters."""

    @abstractmethod
    def targets(self, sample: Sample) -> IntArray:
        """Return the labels of a sample that this network is trained on."""

    @abstractmethod
    def soft_margins(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return q with the loss log(1 + exp(-q)) of each point, shape (points,)."""

    @abstractmethod
    def residual_direction(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return the residuals divided by the target's own, which does not vanish with the loss."""

    @abstractmethod
    def margins(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return the margin of each point, shape (points,): positive where it is fitted."""

    @abstractmethod
    def decision(self, outputs: FloatArray) -> FloatArray:
        """Return a number for each point whose sign is the binary decision."""

    @abstractmethod
    def decision_gradient(self, outputs: FloatArray) -> FloatArray:
        """Return the derivative of the decision by each output, shape (outputs, points)."""

    def losses(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return the loss of each point, shape (points,)."""
        return np.logaddexp(0, -self.soft_margins(outputs, targets))

    def log_losses(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return the logarithm of each loss, also where the loss is too small for a float."""
        q = self.soft_margins(outputs, targets)
        return np.where(q > 40, -q, np.log(np.logaddexp(0, -np.minimum(q, 40))))

    def residuals(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return minus the derivative of each point's loss by each output."""
        q = self.soft_margins(outputs, targets)
        return expit(-q) * self.residual_direction(outputs, targets)

    def log_residuals(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return the logarithm of the residual of each point's target, shape (points,)."""
        return -np.logaddexp(0, self.soft_margins(outputs, targets))

    @property
    def decides_by_order(self) -> bool:
        """Whether only the order of the outputs decides, so that their scale does not matter."""
        return True

    @property
    def dim(self) -> int:
        """The number of coordinates of the points it takes."""
        return int(self.weights.shape[1])

    def preactivations(self, x: ArrayLike) -> FloatArray:
        """Return Z = W Xᵀ + b, shape (neurons, points)."""
        points = checks.matrix("x", x, columns=self.dim)
        return self.weights @ points.T + self.biases[:, None]

    @property
    def moves_along_points(self) -> bool:
        """Whether training only ever adds multiples of the points to the weights."""
        return True

    def hidden(self, Z: FloatArray) -> FloatArray:
        """Return what the neurons say at pre-activations Z, shape (neurons, points)."""
        return np.maximum(Z, 0)

    def hidden_slopes(self, Z: FloatArray) -> FloatArray | BoolArray:
        """Return the derivative of `hidden` by each pre-activation, shape (neurons, points)."""
        return Z >= 0

    def outputs(self, x: ArrayLike) -> FloatArray:
        """Return F = A h(W Xᵀ + b), shape (outputs, points)."""
        return self.outputs_at(self.preactivations(x))

    def outputs_at(self, Z: FloatArray) -> FloatArray:
        """Return F = A h(Z) at pre-activations Z of shape (..., neurons, points)."""
        return self.second_layer @ self.hidden(Z)

    def own_clusters(self, law: MultiCluster) -> BoolArray:
        """Return which clusters each neuron is to learn, shape (neurons, clusters).

        Those of its side; for a network with an output for each cluster, its own alone.
        """
        return self.neuron_signs[:, None] == law.signs[None, :]

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
        if outputs == "classes" and len(self.second_layer) == 1:
            raise InputError("outputs 'classes' needs a MultiClassNet; got a BinaryNet.")
        try:
            from featavg.networks.torch_net import TorchNet
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "to_torch needs PyTorch: pip install 'featavg[vision]'."
            ) from error
        return TorchNet(self, outputs)


class OneOutputNet(TwoLayerNet):
    r"""A network whose one output is the binary score, trained by the logistic loss.

    Paper: Section 3.2. The loss of a point is :math:`\log(1 + e^{-y f(x)})`.
    """

    def targets(self, sample: Sample) -> IntArray:
        """Return the coarse labels y."""
        return sample.y

    def soft_margins(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return y f of each point: the loss is log(1 + exp(-y f))."""
        return self.margins(outputs, targets)

    def residual_direction(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return y, shape (1, points)."""
        return targets.astype(outputs.dtype)[None, :]

    def margins(self, outputs: FloatArray, targets: IntArray) -> FloatArray:
        """Return y f of each point."""
        return outputs[0] * targets.astype(outputs.dtype)

    def decision(self, outputs: FloatArray) -> FloatArray:
        """Return f itself."""
        return outputs[0]

    def decision_gradient(self, outputs: FloatArray) -> FloatArray:
        """Return 1 for every point."""
        return np.ones_like(outputs)


def check_parameters(weights: ArrayLike, biases: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return read-only weights and biases (zeros if None) of one precision."""
    W = checks.matrix("weights", weights)
    b = np.zeros(len(W), W.dtype) if biases is None else checks.vector("biases", biases)
    if len(b) != len(W):
        raise InputError(
            f"biases must have one entry for each of the {len(W)} neurons; got {len(b)}."
        )
    return frozen(W), frozen(b.astype(W.dtype, copy=False))

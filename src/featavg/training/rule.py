"""Rules of training: how gradients become updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss

Parameters = Mapping[str, FloatArray]
"""Arrays by name: "weights", and "biases" and "second_layer" where they are trained."""

_Arrays = dict[str, FloatArray]


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """What a rule may look at before the gradients of a step are taken.

    Attributes
    ----------
    step : int
        How many steps were taken before.
    net : BinaryNet or MultiClassNet
        The network as it is.
    x : array of shape (points, coordinates)
        The points of the step: those of the batch.
    Z : array of shape (neurons, points)
        Their pre-activations.
    y : array of shape (points,)
        Their sides, in {-1, +1}.
    loss : Loss
        The loss that is minimised.
    targets : array or object
        What the loss compares the outputs with.
    """

    step: int
    net: TwoLayerNet
    x: FloatArray
    Z: FloatArray
    y: IntArray
    loss: Loss
    targets: Any


@dataclass(frozen=True, kw_only=True, repr=False)
class Rule(ABC):
    r"""How to get from a gradient to a step, as a pair of `init` and `update` like Optax's.

    Paper: gradient descent, equation (1); others are extensions. A rule of your own is a subclass
    with `update`, and `init` if it has a state.

    Parameters
    ----------
    batch : int, optional
        How many points, drawn anew for each step without replacement within an epoch, the gradient
        is the mean over; all of them by default.

    Attributes
    ----------
    linear : bool
        Whether updates are linear in gradients and parameters, entry by entry with the same
        factors. Such a rule adds multiples of the points to the weights, so it is computed on the
        coefficients of Lemma 5.1, which are exact. Checked before training.
    rotation_equivariant : bool
        Whether rotated points, gradients and weights give rotated updates, so that training in
        coordinates of the span is training in all dimensions: what commutes with all rotations
        stays in the span. A linear rule does. Checked before such training.
    moves_points : bool
        Whether gradients are taken at other points than those of the sample, `perturbed_points`.
    """

    batch: int | None = None

    linear = False
    rotation_equivariant = False
    moves_points = False

    def __post_init__(self) -> None:
        if self.batch is not None:
            checks.count("batch", self.batch)

    def __repr__(self) -> str:
        changed = [f for f in fields(self) if f.init and getattr(self, f.name) != f.default]
        given = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in changed)
        return f"{type(self).__name__}({given})"

    def init(self, parameters: Parameters) -> Any:
        """Return the initial state of the rule; None if it has none."""
        return None

    @abstractmethod
    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return the update of each parameter, which is added to it, and the new state.

        `gradients` are derivatives of the mean loss.
        """

    def neuron_factors(
        self, shape: tuple[int, int], rng: np.random.Generator | None
    ) -> FloatArray | None:
        """Return the factor of each neuron's output at each point in a step; None for 1."""
        return None

    def lookahead(self, gradients: Parameters) -> Parameters | None:
        """Return the displacement at which the gradient is taken instead; None for none."""
        return None

    def perturbed_points(self, step: TrainingStep) -> FloatArray:
        """Return the points at which gradients are taken, where the rule has `moves_points`."""
        return step.x


@dataclass(frozen=True, kw_only=True, repr=False)
class GradientDescent(Rule):
    r"""Gradient descent, :math:`\theta \leftarrow \theta - \eta \nabla L`.

    Paper: equation (1).

    Examples
    --------
    >>> GradientDescent().update({"weights": np.array([4.0])}, None, {}, 0.5)[0]
    {'weights': array([-2.])}
    """

    linear = True

    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return minus the learning rate times the gradients."""
        return {name: -learning_rate * g for name, g in gradients.items()}, state


@dataclass(frozen=True, repr=False)
class SGD(GradientDescent):
    """Stochastic gradient descent: gradient descent on mini-batches of `batch` points.

    Paper: none, an extension.

    Examples
    --------
    >>> SGD(), SGD(batch=8)
    (SGD(), SGD(batch=8))
    """

    batch: int | None = 32


@dataclass(frozen=True, repr=False)
class Momentum(GradientDescent):
    r"""Gradient descent with heavy-ball momentum, as PyTorch has it.

    Paper: none, an extension. :math:`v \leftarrow \beta v + \nabla L`,
    :math:`\theta \leftarrow \theta - \eta v`.

    Examples
    --------
    >>> Momentum(0.5).update({"w": np.ones(1)}, {"w": np.ones(1)}, {}, 0.1)[0]
    {'w': array([-0.15])}
    """

    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one("momentum", self.momentum)

    def init(self, parameters: Parameters) -> _Arrays:
        """Return velocities of zero."""
        return {name: np.zeros_like(value) for name, value in parameters.items()}

    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return minus the learning rate times the velocities."""
        velocity = {name: self.momentum * state[name] + g for name, g in gradients.items()}
        return super().update(velocity, velocity, parameters, learning_rate)


@dataclass(frozen=True, repr=False)
class WeightDecay(GradientDescent):
    r"""Gradient descent with weight decay of everything that is trained.

    Paper: none, an extension. :math:`\theta \leftarrow \theta - \eta(\nabla L + \lambda\theta)`,
    :math:`\lambda` = `decay`.

    Examples
    --------
    >>> WeightDecay(0.5).update({"w": np.ones(1)}, None, {"w": np.ones(1)}, 0.1)[0]
    {'w': array([-0.15])}
    """

    decay: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale("decay", self.decay, zero=True)

    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return minus the learning rate times the gradients plus the decay."""
        decayed = {name: g + self.decay * parameters[name] for name, g in gradients.items()}
        return super().update(decayed, state, parameters, learning_rate)


@dataclass(frozen=True, repr=False)
class Adam(Rule):
    r"""Adam (Kingma and Ba, 2015).

    Paper: none, an extension. It divides each coordinate by its own size, so it depends on the
    frame: ambient coordinates only.

    Examples
    --------
    >>> Adam(), Adam(first=0.8).linear
    (Adam(), False)
    """

    first: float = 0.9
    second: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("first", "second"):
            below_one(name, getattr(self, name))
        checks.scale("epsilon", self.epsilon)

    def init(self, parameters: Parameters) -> tuple[int, _Arrays, _Arrays]:
        """Return the number of steps and both moments, all zero."""
        zeros = {name: np.zeros_like(value) for name, value in parameters.items()}
        return 0, zeros, dict(zeros)

    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return the step of each parameter: its mean gradient over its root mean square."""
        count, means, squares = state[0] + 1, {}, {}
        updates = {}
        for name, g in gradients.items():
            means[name] = self.first * state[1][name] + (1 - self.first) * g
            squares[name] = self.second * state[2][name] + (1 - self.second) * np.square(g)
            mean = means[name] / (1 - self.first**count)
            root = np.sqrt(squares[name] / (1 - self.second**count))
            updates[name] = -learning_rate * mean / (root + self.epsilon)
        return updates, (count, means, squares)


@dataclass(frozen=True, kw_only=True, repr=False)
class SignDescent(Rule):
    r"""Sign descent, :math:`\theta \leftarrow \theta - \eta\,\mathrm{sgn}(\nabla L)`.

    Paper: none, an extension. It depends on the frame: ambient coordinates only.

    Examples
    --------
    >>> SignDescent().update({"w": np.array([4.0, -2.0])}, None, {}, 0.1)[0]
    {'w': array([-0.1,  0.1])}
    """

    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return minus the learning rate times the signs of the gradients."""
        return {name: -learning_rate * np.sign(g) for name, g in gradients.items()}, state


@dataclass(frozen=True, repr=False)
class SAM(GradientDescent):
    r"""Sharpness-aware minimisation (Foret et al., 2021) with gradient descent.

    Paper: none, an extension. The gradient is taken at
    :math:`\theta + \rho\,\nabla L / \|\nabla L\|`.

    Parameters
    ----------
    radius : float
        :math:`\rho`.

    Examples
    --------
    >>> SAM(0.1).lookahead({"w": np.array([3.0, 4.0])})
    {'w': array([0.06, 0.08])}
    """

    radius: float = 0.05
    linear = False
    rotation_equivariant = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale("radius", self.radius, zero=True)

    def lookahead(self, gradients: Parameters) -> Parameters | None:
        """Return the radius times the normalised gradient, over all parameters."""
        norm = np.sqrt(sum(float(np.square(g, dtype=np.float64).sum()) for g in gradients.values()))
        return {name: g * (self.radius / (norm + 1e-12)) for name, g in gradients.items()}


def below_one(name: str, value: float) -> None:
    """Refuse a number that is not from 0 to below 1."""
    if not checks.scale(name, value, zero=True) < 1:
        raise InputError(f"{name} must be below 1; got {value!r}.")

"""Rules that change one thing about another rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.training.rule import GradientDescent, Parameters, Rule, TrainingStep, below_one


@dataclass(frozen=True, kw_only=True, repr=False)
class WrappedRule(Rule):
    """A rule that does as another one does, except for what a subclass overrides.

    Paper: none, an extension. The batches are those of the other rule.

    Parameters
    ----------
    rule : Rule
        The other rule; gradient descent by default.
    """

    rule: Rule = GradientDescent()  # noqa: RUF009  it cannot change
    batch: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise InputError(f"rule must be a Rule, such as GradientDescent(); got {self.rule!r}.")
        object.__setattr__(self, "batch", self.rule.batch)
        super().__post_init__()

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """Whether the other rule is linear."""
        return self.rule.linear

    @property
    def rotation_equivariant(self) -> bool:  # type: ignore[override]
        """Whether the other rule commutes with rotations."""
        return self.rule.linear or self.rule.rotation_equivariant

    @property
    def moves_points(self) -> bool:  # type: ignore[override]
        """Whether the other rule takes gradients at other points."""
        return self.rule.moves_points

    def init(self, parameters: Parameters) -> Any:
        """Return the initial state of the other rule."""
        return self.rule.init(parameters)

    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return the updates of the other rule."""
        return self.rule.update(gradients, state, parameters, learning_rate)

    def lookahead(self, gradients: Parameters) -> Parameters | None:
        """Return the displacement of the other rule."""
        return self.rule.lookahead(gradients)

    def perturbed_points(self, step: TrainingStep) -> FloatArray:
        """Return the points of the other rule."""
        return self.rule.perturbed_points(step)

    def neuron_factors(
        self, shape: tuple[int, int], rng: np.random.Generator | None
    ) -> FloatArray | None:
        """Return the factors of the other rule."""
        return self.rule.neuron_factors(shape, rng)


@dataclass(frozen=True, kw_only=True, repr=False)
class LearningRates(WrappedRule):
    r"""Another rule, with learning rates of their own for biases and second layer.

    Paper: none, an extension. The updates of the biases and of the second layer are those of the
    other rule, times a factor.

    Parameters
    ----------
    biases, second_layer : float
        The factors.
    rule : Rule
        The other rule; gradient descent by default.

    Examples
    --------
    >>> rule = LearningRates(biases=10.0)
    >>> rule, rule.linear
    (LearningRates(biases=10.0), True)
    >>> rule.update({"weights": np.ones(1), "biases": np.ones(1)}, None, {}, 0.5)[0]
    {'weights': array([-0.5]), 'biases': array([-5.])}
    """

    biases: float = 1.0
    second_layer: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("biases", "second_layer"):
            checks.scale(name, getattr(self, name), zero=True)

    def update(
        self, gradients: Parameters, state: Any, parameters: Parameters, learning_rate: float
    ) -> tuple[Parameters, Any]:
        """Return the updates of the other rule, times the factors."""
        updates, state = super().update(gradients, state, parameters, learning_rate)
        factors = {"biases": self.biases, "second_layer": self.second_layer}
        return {name: factors.get(name, 1.0) * value for name, value in updates.items()}, state


@dataclass(frozen=True, repr=False)
class Dropout(WrappedRule):
    r"""Another rule, with dropout of neurons (Srivastava et al., 2014).

    Paper: none, an extension. In each step each neuron is silent at each point with the
    probability `rate`, independently, and its output is otherwise divided by 1 - `rate`; the
    gradient is that of this random network. What is recorded, and what training ends with, is the
    whole network. Gradients stay combinations of the points, so a linear rule stays linear.

    Parameters
    ----------
    rate : float
        The probability, from 0 to below 1.
    rule : Rule
        The other rule; gradient descent by default.

    Examples
    --------
    >>> rule = Dropout(0.2)
    >>> rule, rule.linear
    (Dropout(rate=0.2), True)
    >>> np.unique(rule.neuron_factors((2, 30), np.random.default_rng(0)))
    array([0.  , 1.25])
    """

    rate: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one("rate", self.rate)

    def neuron_factors(
        self, shape: tuple[int, int], rng: np.random.Generator | None
    ) -> FloatArray | None:
        """Draw which neurons are silent at which points, and return the factors of all."""
        kept = checks.generator(rng).random(shape) >= self.rate
        others = super().neuron_factors(shape, rng)
        return kept / (1 - self.rate) * (1.0 if others is None else others)

"""Adversarial training: gradients at the worst points within a radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.robustness.certify import exact_radii
from featavg.robustness.norm import NORMS, as_norm
from featavg.robustness.view import WeightSpan
from featavg.training.rule import TrainingStep
from featavg.training.wrapped_rule import WrappedRule

ATTACKS = ("pgd", "exact")


@dataclass(frozen=True, repr=False)
class AdversarialTraining(WrappedRule):
    r"""Adversarial training (Madry et al., 2018): another rule, on the worst points in a ball.

    Paper: none, an extension. Training minimises
    :math:`\frac1n \sum_i \max_{\|\rho_i\| \le \varepsilon} \ell_i(x_i + \rho_i)`; the gradient of a
    step is that of the loss at the points :math:`x_i + \rho_i`. In the L2 norm perturbations lie in
    the span of the weights, so weights stay in the span of the points and the initial weights, and
    training commutes with rotations if the other rule does. In the maximum norm neither is true,
    so that it needs ambient coordinates.

    Parameters
    ----------
    radius : float
        :math:`\varepsilon`.
    rule : Rule
        The rule that makes updates of these gradients; gradient descent by default.
    norm : {"l2", "linf"}
        The norm of perturbations.
    attack : {"pgd", "exact"}
        How the maximum is searched for. "pgd" takes `steps` steps of length 2.5·radius/steps up the
        loss from the point itself, with no random start, and may miss the maximum; where the loss
        is flat, it goes down the binary decision. "exact" maximises the number of wrong decisions,
        not the loss: it takes the smallest perturbation that turns the decision (`exact_radii`),
        scaled to the radius, and leaves points that are wrong already. It is as slow as the search
        for exact radii, and not for the probability readout.
    steps : int
        The steps of "pgd".
    ramp : int
        Over how many steps of training the radius grows linearly to its value; at once by default.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster, descend
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=4, dim=400).sample(100, rng=rng)
    >>> net = BinaryNet.init(train, width=2, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    >>> rule = AdversarialTraining(5.0, ramp=50)
    >>> descend(net, train, learning_rate=0.01, steps=100, rule=rule, record=2)
    Trajectory(100 steps of 0.01 by AdversarialTraining(radius=5.0, ramp=50), 2 recorded, ...
    """

    radius: float
    norm: str = "l2"
    attack: str = "pgd"
    steps: int = 10
    ramp: int = 0

    moves_points = True
    linear = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule.moves_points:
            raise InputError(
                "adversarial training needs a rule that leaves the points alone; got "
                f"{self.rule!r}."
            )
        checks.scale("radius", self.radius, zero=True)
        object.__setattr__(self, "norm", as_norm(self.norm).name)
        checks.choice("attack", self.attack, ATTACKS)
        checks.count("steps", self.steps)
        checks.count("ramp", self.ramp, minimum=0)

    @property
    def rotation_equivariant(self) -> bool:  # type: ignore[override]
        """Whether the norm is the same in every frame, and the other rule does not look at it."""
        return super().rotation_equivariant and NORMS[self.norm].rotation_invariant

    def radius_at(self, step: int) -> float:
        """Return the radius after so many steps of training.

        Examples
        --------
        >>> rule = AdversarialTraining(8.0, ramp=4)
        >>> [rule.radius_at(step) for step in (0, 1, 3, 4, 100)]
        [2.0, 4.0, 8.0, 8.0, 8.0]
        """
        return self.radius * min(1.0, (step + 1) / self.ramp) if self.ramp else self.radius

    def perturbed_points(self, step: TrainingStep) -> FloatArray:
        """Return the worst points that were found."""
        radius = self.radius_at(step.step)
        if radius == 0:
            return step.x
        find = self._smallest_turns if self.attack == "exact" else self._ascent
        return step.x + find(step, radius)

    def _ascent(self, step: TrainingStep, radius: float) -> FloatArray:
        """Return perturbations by PGD, which in the L2 norm runs in the span of the weights."""
        net, norm = step.net, NORMS[self.norm]
        span = WeightSpan.of(net) if norm.rotation_invariant else None
        W = net.weights if span is None else span.weights
        A, length = net.second_layer, 2.5 * radius / self.steps
        u: FloatArray = np.zeros((W.shape[1], len(step.x)))
        for _ in range(self.steps):
            Z = step.Z + W @ u
            outputs = A @ net.hidden(Z)
            lowered = step.loss.directions(outputs, step.targets)
            flat = ~lowered.any(axis=0)
            if flat.any():
                lowered[:, flat] = step.y[flat] * net.decision_gradient(outputs[:, flat])
            gradient = W.T @ ((A.T @ lowered) * net.hidden_slopes(Z))
            u = norm.project(u - length * norm.steepest(gradient), radius)
        return u.T if span is None else span.embed(u)

    def _smallest_turns(self, step: TrainingStep, radius: float) -> FloatArray:
        """Return the smallest perturbations that turn decisions, scaled to the radius."""
        if step.net.readout == "probability":
            raise InputError(
                "the attack 'exact' needs a network with exact radii, such as one with the argmax "
                f"readout; got {step.net!r}."
            )
        found = exact_radii(
            step.net, step.x, step.y, norm=self.norm, certificates=False, jobs=1
        ).perturbations
        length = NORMS[self.norm].length(found.T)
        return found * (radius / np.where(length > 0, length, 1))[:, None]

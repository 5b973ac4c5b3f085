"""Checks of what a rule promises, before it is trained with."""

from __future__ import annotations

import numpy as np

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.networks.binary import BinaryNet
from featavg.networks.loss import Logistic
from featavg.training.rule import Rule, TrainingStep

# Of gradients and weights, at which promises are checked.
_SIZES = (1.0, 1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9)


def check_rule(rule: Rule, *, in_span: bool) -> Rule:
    """Return a rule whose promises hold on small random arrays; refuse another.

    A linear rule must commute with any matrix from the right, which is how coefficients become
    weights; a rule in span coordinates with any rotation. Both at any size of the gradients, since
    a rule may treat large ones differently, such as one that clips them.
    """
    if not isinstance(rule, Rule):
        raise InputError(f"rule must be a Rule, such as GradientDescent(); got {rule!r}.")
    if rule.linear and (rule.moves_points or _looks_ahead(rule)):
        raise InputError(
            "a rule that takes gradients elsewhere must not be declared linear, because "
            f"coefficients would not follow; got {rule!r}."
        )
    rng = np.random.default_rng(0)
    if rule.linear and not _commutes(rule, rng.standard_normal((4, 6))):
        raise InputError(
            "a rule that is declared linear must be linear in gradients and parameters, because it "
            f"is computed on coefficients; got {rule!r}."
        )
    if in_span and not rule.linear:
        rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
        equivariant = rule.rotation_equivariant and _commutes(rule, rotation)
        if not equivariant or (rule.moves_points and not _moves_alike(rule, rotation)):
            raise InputError(
                "span coordinates need a rule that commutes with rotations, because they leave the "
                f"orientation open; got {rule!r}, so draw the sample with coordinates='ambient'."
            )
    return rule


def _looks_ahead(rule: Rule) -> bool:
    return rule.lookahead({"weights": np.ones((3, 4)), "biases": np.ones(3)}) is not None


def _commutes(rule: Rule, matrix: FloatArray) -> bool:
    """Return whether steps on weights W, and on W times a matrix, differ by the matrix."""
    return all(_commutes_at(rule, matrix, size) for size in _SIZES)


def _commutes_at(rule: Rule, matrix: FloatArray, size: float) -> bool:
    """Return the same for weights and gradients of one size."""
    rng = np.random.default_rng(1)
    weights = [size * rng.standard_normal((3, len(matrix))), size * rng.standard_normal(3)]
    moved = [weights[0] @ matrix, weights[1].copy()]
    states = [rule.init({"weights": w, "biases": b}) for w, b in (weights, moved)]
    for _ in range(3):
        g, b = size * rng.standard_normal((3, len(matrix))), size * rng.standard_normal(3)
        for i, (now, gradient) in enumerate(((weights, g), (moved, g @ matrix))):
            parameters = {"weights": now[0], "biases": now[1]}
            gradients = {"weights": gradient, "biases": b}
            updates, states[i] = rule.update(gradients, states[i], parameters, 0.1)
            now[0], now[1] = now[0] + updates["weights"], now[1] + updates["biases"]
    return bool(np.allclose(weights[0] @ matrix, moved[0], rtol=1e-8, atol=1e-10 * size))


def _moves_alike(rule: Rule, rotation: FloatArray) -> bool:
    """Return whether a rule moves rotated points of a rotated network to rotated places."""
    rng = np.random.default_rng(2)
    weights, biases, x = rng.standard_normal((4, 4)), rng.standard_normal(4), np.eye(4)
    found = []
    for turn in (np.eye(4), rotation):
        net = BinaryNet(weights @ turn, biases)
        points = x @ turn
        y = np.where(net.score(points) > 0, 1, -1)
        step = TrainingStep(10**9, net, points, net.preactivations(points), y, Logistic(), y)
        found.append(rule.perturbed_points(step))
    return bool(np.allclose(found[0] @ rotation, found[1], rtol=1e-5, atol=1e-5))

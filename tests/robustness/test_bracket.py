"""Radii of the probability readout, between two bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import featavg as fa
from featavg.robustness.odds_bound import _ClassScalars
from featavg.robustness.view import AttackView
from support.zoo import (
    SEEDS,
    check_perturbations,
    random_multi,
)


@settings(deadline=None)
@given(SEEDS)
def test_costs_of_class_outputs_are_below_the_norm(seed):
    """The inequality behind the bracket: the sum of d (change of a class)² is at most |rho|²."""
    rng = np.random.default_rng(seed)
    net = random_multi(rng, "probability")
    weights = net.weights.copy()
    weights[rng.random(len(weights)) < 0.2] = 0
    net = fa.MultiClassNet(weights, net.classes, net.positive)
    x = rng.standard_normal((1, net.dim))
    rho = rng.standard_normal((200, net.dim)) * 10.0 ** rng.uniform(-2, 2, (200, 1))
    view = AttackView.of(net, x, net.predict(x))
    scalars = _ClassScalars.of(net, view)
    moved = AttackView.of(net, x + rho, np.ones(200, dtype=int))
    change = _ClassScalars.of(net, moved).z - scalars.z
    spent = (scalars.cost[:, None] * np.square(change)).sum(axis=0)
    assert (spent <= np.square(rho).sum(axis=1) * (1 + 1e-9)).all()


@pytest.mark.slow
def test_probability_brackets_hold_what_a_fine_grid_of_the_plane_finds():
    rng = np.random.default_rng(2)
    angles = np.linspace(0, 2 * np.pi, 721)
    rays = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    gaps = []
    for _ in range(40):
        classes = int(rng.integers(2, 6))
        weights = 2 * rng.standard_normal((classes * int(rng.integers(1, 3)), 2))
        net = fa.MultiClassNet(weights, classes, int(rng.integers(1, classes)))
        x = rng.standard_normal((1, 2))
        y = net.predict(x)
        radii = fa.exact_radii(net, x, y)
        reach = 1.5 * min(radii.upper[0], 20.0)
        lengths = np.linspace(0, reach, 1500)
        grid = x + (lengths[:, None, None] * rays).reshape(-1, 2)
        turned = (net.predict(grid) != y[0]).reshape(1500, -1).any(axis=1)
        nearest = lengths[np.argmax(turned)] if turned.any() else np.inf
        assert radii.lower[0] <= nearest * (1 + 1e-9)
        # the grid misses the boundary by at most a step and the angle between two rays
        assert radii.upper[0] >= 0.99 * nearest - reach / 1500
        gaps.append(radii.gap[0])
    assert np.median(gaps) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-4, 1e-2, 1.0, 30.0, 1e4])
def test_brackets_are_narrow_for_small_and_large_logits(paper, factor):
    """Small logits: the readout is a difference of sums. Large ones: it is the argmax."""
    test, _, fine = paper
    net = fa.MultiClassNet(factor * fine.weights, 10, 5)
    radii = fa.exact_radii(net, test.x[:60], test.y[:60])
    assert np.median(radii.gap) < 0.05
    check_perturbations(net, test.x[:60], test.y[:60], radii)

"""The distance of Theorem 4.6 between its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import featavg as fa
from featavg.measures.distance import (
    _from_below,
    _in_span,
    distance_to_averaging,
    distance_to_decoupled,
)
from featavg.networks import reference
from support.zoo import polynomial


def sample(dim, clusters, seed=0):
    return fa.MultiCluster(clusters=clusters, dim=dim).sample(4, rng=np.random.default_rng(seed))


def on_the_circle(net, other):
    """Return the relative distance in the plane, from a fine grid."""
    angles = np.linspace(0, 2 * np.pi, 40001)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    f, g = net.score(x), other.score(x)
    best = minimize_scalar(
        lambda C: np.abs(f - C * g).max(),
        bounds=(0, 4 * np.abs(f).max() / np.abs(g).max()),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(best.fun / np.abs(f).max(), 1.0)


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_truth_lies_between_the_bounds(power, seed):
    """In the plane, where the supremum can be seen; neurons near the centres and far from them."""
    rng = np.random.default_rng([seed, power])
    train = sample(2, 2, seed)
    signs = np.array([1, 1, -1, -1])
    weights = train.centers[[0, 0, 1, 1]] + rng.choice([0.1, 3.0]) * rng.standard_normal((4, 2))
    net = polynomial(weights, signs * rng.uniform(0.5, 2, 4), power)
    averaging = distance_to_averaging(net, train)
    truth = on_the_circle(net, reference.averaging(train))
    assert 0 <= averaging.lower <= truth + 3e-4
    assert averaging.upper >= truth - 3e-4
    decoupled = distance_to_decoupled(net, train)
    truth = on_the_circle(net, polynomial(train.centers, [1.0, -1.0], power))
    assert 0 <= decoupled.lower <= truth + 3e-4
    assert decoupled.upper >= truth - 3e-4
    # the cutting plane finds the truth; what is lost is the proof of the size
    f, g = _in_span(net, train.centers, train.law.signs, power)
    size, distance = _from_below(f, g)
    assert distance / size == pytest.approx(truth, rel=1e-3, abs=3e-4)


def test_the_closed_forms_are_at_distance_zero_whatever_their_scale():
    train = sample(60, 6)
    sums = np.stack([train.centers[:3].sum(axis=0), train.centers[3:].sum(axis=0)])
    split = polynomial(np.repeat(sums, 2, axis=0), [3.0, 1.0, -2.0, -2.0])
    for net in (reference.averaging(train), split):
        found = distance_to_averaging(net, train)
        assert found.lower <= found.upper < 1e-9
    for power in (1, 2, 3):
        net = polynomial(7 * train.centers, 0.1 * train.law.signs, power)
        found = distance_to_decoupled(net, train)
        assert found.lower <= found.upper < 1e-9


@pytest.mark.parametrize("power", [2, 3])
def test_decoupled_networks_are_as_far_from_averaging_as_two_points_say(power):
    """By hand: with q centres a side, at a centre f = 1 and C f_FA = C, at the average q^(1-p/2)
    and C sqrt(q); they differ by the same where C = (1 + q^(1-p/2)) / (1 + sqrt(q))."""
    train = sample(60, 10)
    net = polynomial(train.centers, train.law.signs.astype(float), power)
    C = (1 + 5 ** (1 - power / 2)) / (1 + np.sqrt(5))
    assert distance_to_averaging(net, train).lower >= 1 - C - 1e-6


def test_what_has_no_such_distance_is_refused():
    train = sample(20, 4)
    with pytest.raises(fa.InputError, match="biases of zero"):
        distance_to_averaging(reference.averaging(train, positive_bias=1.0), train)
    with pytest.raises(fa.InputError, match="one output"):
        distance_to_averaging(fa.MultiClassNet(train.centers, 4), train)
    with pytest.raises(fa.InputError, match="not zero everywhere"):
        distance_to_decoupled(polynomial(np.ones((2, 20)), [0.0, 0.0]), train)

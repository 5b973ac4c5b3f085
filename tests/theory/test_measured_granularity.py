"""The granularity law for measured means, and bounds of networks with one ReLU a class."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from featavg.theory.granularity import argmax_radii
from featavg.theory.measured_granularity import (
    argmax_brackets,
    averaged_features,
    measured_law,
)


def test_the_formula_written_out(rng):
    """Correlated means of unequal norms; all inner products by loops."""
    means = rng.standard_normal((5, 8)) * [[1], [2], [1], [3], [2]] + 0.4
    sample = fa.Sample.from_points(means, np.arange(5), positive=3).grouped("1,2|2")
    groups = {"A": [0], "B": [1, 2], "C": [3, 4]}
    weights = {
        name: sum(means[j] / (means[j] @ means[j]) for j in own) for name, own in groups.items()
    }
    sides = {0: "AB", 1: "AB", 2: "AB", 3: "C", 4: "C"}
    for a, found in enumerate(measured_law(sample)):
        candidates = []
        for own in sides[a]:
            against = [other for other in weights if other not in sides[a]]
            to_others = min(
                (weights[own] - weights[other])
                @ means[a]
                / np.linalg.norm(weights[own] - weights[other])
                for other in against
            )
            candidates.append(
                min(to_others, weights[own] @ means[a] / np.linalg.norm(weights[own]))
            )
        assert found == pytest.approx(max(0, *candidates))


def test_two_parallel_means_of_a_side_are_one_feature():
    """Averaging features that are the same costs nothing: the law as if there were one cluster."""
    means = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    sample = fa.Sample.from_points(means, [0, 1, 2], positive=2).grouped("2|1")
    # w_A = (2, 0, 0), w_B = (0, 1, 0): 2/sqrt(5), where orthogonal means have 1/sqrt(3)
    np.testing.assert_allclose(measured_law(sample)[:2], 2 / np.sqrt(5))


def test_a_mean_on_the_wrong_side_has_no_radius():
    means = np.array([[1.0, 0.0], [-0.9, 1.0], [-1.0, 0.0]])
    sample = fa.Sample.from_points(means, [0, 1, 2], positive=2).grouped("2|1")
    net = averaged_features(sample)
    wrong = net.predict(means) != [1, 1, -1]
    assert wrong.any()
    np.testing.assert_array_equal(measured_law(sample) == 0, wrong)


def test_bounds_enclose_the_exact_radii(rng):
    net = fa.MultiClassNet(rng.standard_normal((6, 4)), 6, readout="argmax")
    x = 2 * rng.standard_normal((150, 4))
    y = np.where(rng.random(150) < 0.9, net.predict(x), -net.predict(x))
    lower, upper = argmax_brackets(net, x, y)
    exact = argmax_radii(net, x, y)
    right = net.predict(x) == y
    np.testing.assert_array_equal(lower[~right], 0)
    np.testing.assert_array_equal(upper[~right], 0)
    assert (lower <= exact * (1 + 1e-9)).all()
    assert (exact <= upper * (1 + 1e-6)).all()
    assert (np.abs(lower - exact) <= 1e-6 * exact)[right].mean() > 0.3  # not merely bounds


def test_what_has_no_closed_form_is_refused(rng):
    x, y = np.ones((1, 4)), np.array([1])
    wide = fa.MultiClassNet(rng.standard_normal((8, 4)), 4, readout="argmax")
    summed = fa.MultiClassNet(rng.standard_normal((4, 4)), 4)
    for net in (wide, summed):
        with pytest.raises(InputError, match="one ReLU for each class and the argmax readout"):
            argmax_brackets(net, x, y)
    flat = fa.Sample.from_points([[1.0, 0.0], [0.0, 0.0]], [0, 1])
    with pytest.raises(InputError, match="a mean that is not zero; got cluster 1"):
        averaged_features(flat)

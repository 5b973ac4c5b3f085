"""Decisions in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import featavg as fa
from featavg.robustness.exact.verify import exact_outputs, leaves, leaves_exactly
from support.shallow_oracles import random_shallow


def test_outputs_agree_with_floating_point():
    rng = np.random.default_rng(0)
    for leak in (0.0, 0.25):
        net = random_shallow(rng, 6, 4, 3, leak)
        x = rng.standard_normal(4)
        exact = [float(f) for f in exact_outputs(net, x)]
        np.testing.assert_allclose(exact, net.outputs(x[None])[:, 0], rtol=1e-12, atol=1e-13)


def test_what_floating_point_rounds_away_decides():
    """0.1 + 0.2 - 0.3 is not 0 in binary fractions, and is told from 0."""
    net = fa.ShallowNet(np.zeros((0, 3)), [], np.zeros((1, 0)), [0.0], linear=[[1.0, 1.0, -1.0]])
    x = np.array([0.1, 0.2, 0.3])
    value = Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    assert exact_outputs(net, x) == [0, value]
    own = net.labels == 0
    assert leaves_exactly(net, x, own, ~own) == (value > 0)
    assert leaves(net, x, own, ~own) == (value > 0)


def test_of_equal_outputs_the_first_decides():
    net = fa.ShallowNet(np.eye(2), [0, 0], np.eye(2), [0, 0])
    first = np.array([True, False])
    tie = np.array([1.0, 1.0])
    assert not leaves(net, tie, first, ~first)
    assert leaves(net, tie, ~first, first)

"""Radii of decoupled features by each readout, against the general search."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.theory.readouts import argmax_radius, logit_sum_radius, probability_radius


def decoupled(own, opposing, readout, scale=1.0, share=0.0):
    """Return the network on its centres as axes, in units in which d is 1."""
    k = own + opposing
    weights = scale * (np.eye(k) - share * (1 - np.eye(k)))
    return fa.MultiClassNet(weights, k, own, readout)


def radius(net):
    radii = fa.exact_radii(net, np.eye(net.dim)[:1], [1], jobs=1)
    return radii.lower[0], radii.upper[0]


@pytest.mark.parametrize(("own", "opposing"), [(1, 1), (2, 3), (5, 5), (4, 1)])
def test_argmax_and_summed_logits_are_exact(own, opposing):
    assert radius(decoupled(own, opposing, "argmax"))[1] == pytest.approx(argmax_radius())
    for share in (0.0, 0.02):
        found = radius(decoupled(own, opposing, "logit-sum", share=share))[1]
        assert found == pytest.approx(logit_sum_radius(own, opposing, share), rel=1e-6)


@pytest.mark.parametrize("scale", [0.05, 0.7, 2.0, 4.0, 20.0])
@pytest.mark.parametrize(("own", "opposing"), [(2, 3), (3, 3), (4, 2)])
def test_probabilities_are_between_the_certified_bounds(own, opposing, scale):
    lower, upper = radius(decoupled(own, opposing, "probability", scale))
    theory = probability_radius(scale, own, opposing)
    assert lower * (1 - 1e-6) <= theory <= upper * (1 + 1e-3)
    assert upper <= 1.03 * lower


def test_probabilities_go_from_sums_to_the_largest():
    assert probability_radius(1e-4, 5, 5) == pytest.approx(logit_sum_radius(5, 5), rel=1e-3)
    assert probability_radius(1e3, 5, 5) == pytest.approx(argmax_radius(), rel=2e-3)

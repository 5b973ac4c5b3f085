"""Measurements of probabilities, and of statements about every choice of biases."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import log_ndtr

from featavg.networks import reference
from featavg.theory.claim import Finding, at_most, both, not_stated
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.theory.measurements import SMALL


def noise_along_centers(e: Evidence, _: ProofQuantities) -> Finding:
    """Check that |<μ, ξ>| >= ‖μ‖ ln d for hardly any training noise and centre."""
    far = np.abs(e.training_noise_products) >= np.sqrt(e.d) * np.log(e.d)
    return at_most(far.mean(), 2 * e.d ** (-np.log(e.d) / 2), f"{far.size:,} pairs")


def extremes_of_normal_numbers(count: int) -> Finding:
    """Check both bounds of Lemma A.9 for the extremes of `count` normal numbers, over t.

    P[min <= -a] = 1 - Φ(a)^l for a = √(2 ln l) + t, and P[max <= a] = Φ(a)^l for a = √(2 ln l - t).
    """
    typical = np.sqrt(2 * np.log(count))
    t = np.linspace(0, 8, 801)
    below = -np.expm1(count * log_ndtr(typical + t))
    low = at_most(below, np.exp(-(t**2) / 2) / 2, f"of the least of {count}")
    t = np.linspace(0, typical**2, 801)
    above = np.exp(count * log_ndtr(np.sqrt(np.maximum(typical**2 - t, 0))))
    bound = np.exp(-np.exp(t / 2) / (np.sqrt(2 * np.pi) * (typical + 1)))
    return both(low, at_most(above, bound, f"of the largest of {count}"))


def broken_with_any_biases(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that x - y · (2(1+c)/k) (Σ μ₊ - Σ μ₋) is wrong for nearly all, whatever the biases.

    The averaging network has one bias for each side. Both run over a grid, and those count with
    which the network is right on nearly all fresh points.
    """
    reach = 2 * (1 + e.balance)
    net = reference.averaging(quantities.sample)
    before = net.preactivations(e.test.x)
    after = before - np.outer(net.weights @ e.averaged, e.test.y) * (reach / e.k)
    grid = np.arange(-np.ceil(4 * reach), np.ceil(4 * reach) + 1) / 4
    right = []
    for biases in itertools.product(e.d * grid, repeat=2):
        clean, moved = (
            np.where(net.decision(net.outputs_at(Z + np.array([biases]).T)) > 0, 1, -1) == e.test.y
            for Z in (before, after)
        )
        if clean.mean() >= 1 - SMALL:
            right.append(moved.mean())
    if not right:
        return not_stated("no biases make it right on nearly all points")
    return at_most(right, e.vanishing, f"{len(right)} of {grid.size**2} pairs of biases")

"""The assumptions: Sections 3 and 4."""

from __future__ import annotations

import numpy as np

from featavg.theory.claim import Finding, at_least, at_most, both, claim
from featavg.theory.evidence import Evidence

ASSUMPTIONS = "Assumptions"
CONSTANT_ONE = "no constant given; read with 1"


@claim(ASSUMPTIONS, bound="rounding")
def assumption_3_2(e: Evidence) -> Finding:
    """assumption-3.2: centres are orthogonal and have the norm √d."""
    gram = e.train.centers.astype(np.float64) @ e.train.centers.T / e.d
    return at_most(np.abs(gram - np.eye(e.k)), e.rounding)


@claim(ASSUMPTIONS, bound="c", reading="c is any constant: it cannot fail")
def assumption_3_3(e: Evidence) -> Finding:
    """assumption-3.3: neither side has more than c times the clusters of the other."""
    return at_most(e.balance, e.balance, f"c = {e.balance:.3g}")


@claim(ASSUMPTIONS, bound="k^10", reading=CONSTANT_ONE)
def assumption_4_3_dim(e: Evidence) -> Finding:
    """assumption-4.3.dim: the dimension is at least of order k^10."""
    return at_least(e.d, e.k**10)


@claim(ASSUMPTIONS, bound="k^7", reading=CONSTANT_ONE)
def assumption_4_3_samples(e: Evidence) -> Finding:
    """assumption-4.3.samples: there are at least of order k^7 points."""
    return at_least(e.n, e.k**7)


@claim(ASSUMPTIONS, bound="exp(ln² d)", reading=CONSTANT_ONE)
def assumption_4_3_samples_limit(e: Evidence) -> Finding:
    """assumption-4.3.samples-limit: and not more than exp(O(log² d)); compared as logarithms."""
    return at_most(np.log(e.n), np.log(e.d) ** 2)


@claim(ASSUMPTIONS, bound="k", reading="Θ(k), read as k/2 to 2k")
def assumption_4_3_width(e: Evidence) -> Finding:
    """assumption-4.3.width: the width m is of order k."""
    return both(at_most(e.m, 2 * e.k), at_least(e.m, e.k / 2))


@claim(ASSUMPTIONS, bound="d^-2", reading=CONSTANT_ONE)
def assumption_4_3_rate(e: Evidence) -> Finding:
    """assumption-4.3.rate: the learning rate is at most of order d^-2."""
    return at_most(e.eta, float(e.d) ** -2 * (1 + 1e-12))


@claim(ASSUMPTIONS, bound="η k^-5", reading=CONSTANT_ONE)
def assumption_4_3_init(e: Evidence) -> Finding:
    """assumption-4.3.init: the variances of initial weights and biases are at most η k^-5."""
    largest = max(e.weight_scale, e.bias_scale) ** 2
    return at_most(largest, e.eta * float(e.k) ** -5 * (1 + 1e-12))

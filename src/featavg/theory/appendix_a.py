"""Appendix A: the data; its claims on the start of training are in `dynamics`."""

from __future__ import annotations

import numpy as np

from featavg.theory.claim import Finding, at_least, at_most, both, claim
from featavg.theory.evidence import Evidence

DATA = "Appendix A: the data and the start"


@claim(DATA, bound="2 ln d")
def proposition_a_6_1(e: Evidence) -> Finding:
    """proposition-a.6.1: the norm of each training noise is near √d."""
    off = np.abs(e.train.noise_norms.astype(np.float64) - np.sqrt(e.d))
    return at_most(off, 2 * np.log(e.d))


@claim(DATA, bound="3 √d")
def proposition_a_6_2(e: Evidence) -> Finding:
    """proposition-a.6.2: no training point is longer than three times a centre."""
    return at_most(np.linalg.norm(e.train.x, axis=1), 3 * np.sqrt(e.d))


@claim(DATA, bound="Δ = 4 √d ln d")
def proposition_a_6_3(e: Evidence) -> Finding:
    """proposition-a.6.3: the noises of two points are nearly orthogonal."""
    law, P = e.train.law, e.training_noise_products
    centers = e.train.centers.astype(np.float64) @ e.train.centers.T
    c = e.train.cluster
    largest = 0.0
    for i in range(e.n):  # <x_i, x_j> = (α μ_i + σ ξ_i, α μ_j + σ ξ_j), solved for the last part
        cross = law.noise * law.signal * (P[i, c] + P[:, c[i]])
        row = (e.train.gram[i] - cross - law.signal**2 * centers[c[i], c]) / law.noise**2
        row[i] = 0
        largest = max(largest, float(np.abs(row).max()))
    return at_most(largest, e.cross)


@claim(DATA, bound="Δ = 4 √d ln d")
def proposition_a_6_4(e: Evidence) -> Finding:
    """proposition-a.6.4: each noise is nearly orthogonal to each centre."""
    return at_most(np.abs(e.training_noise_products), e.cross)


def _extremes(e: Evidence) -> tuple[float, float, float]:
    """Return the largest |<x_i, x_j>| across clusters, and both extremes within them, i ≠ j."""
    across, low, high = 0.0, np.inf, -np.inf
    for i in range(e.n):
        row = e.train.gram[i]
        same = e.train.cluster == e.train.cluster[i]
        if not same.all():
            across = max(across, float(np.abs(row[~same]).max()))
        same[i] = False
        if same.any():
            low, high = min(low, float(row[same].min())), max(high, float(row[same].max()))
    return across, low, high


@claim(DATA, bound="Δ = 4 √d ln d")
def proposition_a_6_5(e: Evidence) -> Finding:
    """proposition-a.6.5: points of different clusters are nearly orthogonal."""
    return at_most(_extremes(e)[0], e.cross)


@claim(DATA, bound="d/2 to 2d", reading="printed for all i, j; read as i ≠ j")
def proposition_a_6_6(e: Evidence) -> Finding:
    """proposition-a.6.6: two points of one cluster have an inner product of d/2 to 2d."""
    _, low, high = _extremes(e)
    return both(at_least(low, e.d / 2), at_most(high, 2 * e.d))


@claim(DATA, bound="2d", reading="the case i = j, which is printed too")
def proposition_a_6_6_self(e: Evidence) -> Finding:
    """proposition-a.6.6.self: the same for a point and itself, whose squared norm is about 2d."""
    squared = np.square(e.train.x, dtype=np.float64).sum(axis=1)
    share = float((squared > 2 * e.d).mean())
    return at_most(squared, 2 * e.d, f"{share:.0%} of the points are above")


@claim(DATA, bound="√(2n/k) ln(n/k)", reading="garbled; read as √(2n/k) ln(n/k)")
def proposition_a_6_7(e: Evidence) -> Finding:
    """proposition-a.6.7: clusters have nearly n/k points each."""
    sizes = np.bincount(e.train.cluster, minlength=e.k)
    return at_most(np.abs(sizes - e.n / e.k), np.sqrt(2 * e.n / e.k) * np.log(e.n / e.k))

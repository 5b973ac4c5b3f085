"""Appendix A: the data and the start of training."""

from __future__ import annotations

import numpy as np

from featavg.theory.claim import Finding, at_least, at_most, both, claim
from featavg.theory.evidence import Evidence
from featavg.theory.measurements import initial_norms, initially_active

DATA = "Appendix A: the data and the start"


@claim("proposition-a.6.1", DATA, bound="2 ln d")
def proposition_a_6_1(e: Evidence) -> Finding:
    """proposition-a.6.1: the norm of each training noise is near √d."""
    off = np.abs(e.train.noise_norms.astype(np.float64) - np.sqrt(e.d))
    return at_most(off, 2 * np.log(e.d))


@claim("proposition-a.6.2", DATA, bound="3 √d")
def proposition_a_6_2(e: Evidence) -> Finding:
    """proposition-a.6.2: no training point is longer than three times a centre."""
    return at_most(np.linalg.norm(e.train.x, axis=1), 3 * np.sqrt(e.d))


@claim("proposition-a.6.3", DATA, bound="Δ = 4 √d ln d")
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


@claim("proposition-a.6.4", DATA, bound="Δ = 4 √d ln d")
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


@claim("proposition-a.6.5", DATA, bound="Δ = 4 √d ln d")
def proposition_a_6_5(e: Evidence) -> Finding:
    """proposition-a.6.5: points of different clusters are nearly orthogonal."""
    return at_most(_extremes(e)[0], e.cross)


@claim("proposition-a.6.6", DATA, bound="d/2 to 2d", reading="printed for all i, j; read as i ≠ j")
def proposition_a_6_6(e: Evidence) -> Finding:
    """proposition-a.6.6: two points of one cluster have an inner product of d/2 to 2d."""
    _, low, high = _extremes(e)
    return both(at_least(low, e.d / 2), at_most(high, 2 * e.d))


@claim("proposition-a.6.6.self", DATA, bound="2d", reading="the case i = j, which is printed too")
def proposition_a_6_6_self(e: Evidence) -> Finding:
    """proposition-a.6.6.self: the same for a point and itself, whose squared norm is about 2d."""
    squared = np.square(e.train.x, dtype=np.float64).sum(axis=1)
    share = float((squared > 2 * e.d).mean())
    return at_most(squared, 2 * e.d, f"{share:.0%} of the points are above")


@claim(
    "proposition-a.6.7", DATA, bound="√(2n/k) ln(n/k)", reading="garbled; read as √(2n/k) ln(n/k)"
)
def proposition_a_6_7(e: Evidence) -> Finding:
    """proposition-a.6.7: clusters have nearly n/k points each."""
    sizes = np.bincount(e.train.cluster, minlength=e.k)
    return at_most(np.abs(sizes - e.n / e.k), np.sqrt(2 * e.n / e.k) * np.log(e.n / e.k))


@claim("proposition-a.10.weights", DATA, bound="2 σ_w ln d")
def proposition_a_10_weights(e: Evidence) -> Finding:
    """proposition-a.10.weights: the norm of each initial weight is near σ_w √d."""
    return initial_norms(e, e.coarse)


@claim("proposition-a.10.biases", DATA, bound="2 σ_b √(2 ln m)")
def proposition_a_10_biases(e: Evidence) -> Finding:
    """proposition-a.10.biases: no initial bias is far beyond its scale."""
    return at_most(np.abs(e.coarse.biases[0]), 2 * e.bias_scale * np.sqrt(2 * np.log(e.m)))


@claim("proposition-a.12", DATA, bound="n / (3 k m²)")
def proposition_a_12(e: Evidence) -> Finding:
    """proposition-a.12: at the start each neuron is on for some points of every cluster."""
    return at_least(initially_active(e.coarse), e.n / (3 * e.k * e.m**2))


@claim("lemma-a.13", DATA, bound="η √d / (n m)")
def lemma_a_13(e: Evidence) -> Finding:
    """lemma-a.13: pre-activations are tiny at the start."""
    return at_most(np.abs(e.coarse.preactivations[0]), e.eta * np.sqrt(e.d) / (e.n * e.m))


@claim("lemma-a.14", DATA, bound="1/3 to 2/3")
def lemma_a_14(e: Evidence) -> Finding:
    """lemma-a.14: at the start every point pulls with 1/3 to 2/3."""
    pull = np.exp(e.coarse.log_pull[0])
    return both(at_most(pull, 2 / 3), at_least(pull, 1 / 3))


@claim("lemma-a.15", DATA, bound="0 to 1")
def lemma_a_15(e: Evidence) -> Finding:
    """lemma-a.15: at any time every point pulls with 0 to 1."""
    pull = np.exp(e.coarse.log_pull)
    return both(at_most(pull, 1.0), at_least(pull, 0.0))

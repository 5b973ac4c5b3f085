"""Appendix C.2: the dynamics of the k-class network."""

from __future__ import annotations

import numpy as np

from featavg.theory.claim import Finding, at_least, at_most, both, claim, not_stated
from featavg.theory.evidence import Evidence
from featavg.theory.measurements import (
    NO_EPSILON,
    always_on,
    balance_of_coefficients,
    center_products,
    decomposition,
    distance_to_centers,
    extreme_pair,
    fresh_noise_products,
    gaps,
    gaps_within_clusters,
    growth_of_features,
    growth_of_noise,
    in_units_of_epsilon,
    initial_norms,
    initially_active,
    margin_by_noise,
    noise_products,
    others_small,
    point_products,
    pull_by_noise,
    ratio_of_features,
    signs,
    similar_noise,
    updates,
)

FINE = "Appendix C: k classes"


@claim("proposition-c.1", FINE, bound="2 σ_w ln d")
def proposition_c_1(e: Evidence) -> Finding:
    """proposition-c.1: the norm of each initial weight is near σ_w √d."""
    return initial_norms(e, e.fine)


@claim("proposition-c.3", FINE, bound="n / (3 k³ h²)")
def proposition_c_3(e: Evidence) -> Finding:
    """proposition-c.3: at the start each neuron is on for some points of every cluster."""
    return at_least(initially_active(e.fine), e.n / (3 * e.k**3 * e.h**2))


@claim("lemma-c.4", FINE, bound="1/(2k) to 2/k")
def lemma_c_4(e: Evidence) -> Finding:
    """lemma-c.4: at the start every class has a probability of 1/(2k) to 2/k at every point."""
    F = e.fine.outputs[0]
    probabilities = np.exp(F - F.max(axis=0))
    probabilities /= probabilities.sum(axis=0)
    return both(at_most(probabilities, 2 / e.k), at_least(probabilities, 1 / (2 * e.k)))


@claim("lemma-c.5", FINE, bound="1")
def lemma_c_5(e: Evidence) -> Finding:
    """lemma-c.5: after one step every point switches on all neurons of its class."""
    return always_on(e.fine, slice(1, 2))


@claim("lemma-c.6", FINE, bound="rounding")
def lemma_c_6(e: Evidence) -> Finding:
    """lemma-c.6: a weight is its start plus multiples λ of the centres and σ of the noises."""
    return decomposition(e, e.fine)


@claim("corollary-c.7", FINE, bound="rounding")
def corollary_c_7(e: Evidence) -> Finding:
    """corollary-c.7: a feature coefficient is the sum of the noise coefficients of its cluster."""
    return balance_of_coefficients(e, e.fine)


@claim("corollary-c.8", FINE, bound="rounding")
def corollary_c_8(e: Evidence) -> Finding:
    """corollary-c.8: the coefficients change in a step by the pulls of the points that are on."""
    return updates(e, e.fine)


@claim("corollary-c.9", FINE, bound="0", reading="printed as 'iff'; 0 is both: read as in B.5")
def corollary_c_9(e: Evidence) -> Finding:
    """corollary-c.9: own coefficients are never negative, all others never positive."""
    return signs(e, e.fine)


@claim("lemma-c.10.1", FINE, bound="(k/2n) ln(ηt) to (2k/n) ln(t+1)")
def lemma_c_10_1(e: Evidence) -> Finding:
    """lemma-c.10.1: own noise coefficients grow like the logarithm of time."""
    return growth_of_noise(e, e.fine)


@claim("lemma-c.10.2", FINE, bound="5 k ε")
def lemma_c_10_2(e: Evidence) -> Finding:
    """lemma-c.10.2: estimated margins are nearly the same within a cluster."""
    values = gaps_within_clusters(e.fine, e.fine.estimated_margin[1:])
    return in_units_of_epsilon(e, values, 5 * e.k)


@claim("lemma-c.10.3", FINE, bound="32 k² ε")
def lemma_c_10_3(e: Evidence) -> Finding:
    """lemma-c.10.3: estimated margins are nearly the same everywhere."""
    return in_units_of_epsilon(e, gaps(e.fine.estimated_margin[1:]), 32 * e.k**2)


@claim("lemma-c.10.4", FINE, bound="33 k² ε")
def lemma_c_10_4(e: Evidence) -> Finding:
    """lemma-c.10.4: margins are nearly the same everywhere."""
    return in_units_of_epsilon(e, gaps(e.fine.margin[1:]), 33 * e.k**2)


@claim("lemma-c.10.5", FINE, bound="1 + 14 k ε")
def lemma_c_10_5(e: Evidence) -> Finding:
    """lemma-c.10.5: the pulls of two points of a cluster have nearly the ratio 1."""
    ratios = np.exp(gaps_within_clusters(e.fine, e.fine.log_pull[1:]))
    return in_units_of_epsilon(e, ratios, 14 * e.k, offset=1.0)


@claim("lemma-c.10.6", FINE, bound="1 + 67 k² ε")
def lemma_c_10_6(e: Evidence) -> Finding:
    """lemma-c.10.6: the pulls of any two points have nearly the ratio 1."""
    return in_units_of_epsilon(e, np.exp(gaps(e.fine.log_pull[1:])), 67 * e.k**2, offset=1.0)


@claim("lemma-c.10.7", FINE, bound="1", reading="printed for t = 1 only; read as for all t, as B.7")
def lemma_c_10_7(e: Evidence) -> Finding:
    """lemma-c.10.7: every point switches on all neurons of its class, at all times from 1 on."""
    return always_on(e.fine, slice(1, None))


@claim("lemma-c.10.8", FINE, bound="ε and 2 ε", reading="σ is printed with the index c(i); read i")
def lemma_c_10_8(e: Evidence) -> Finding:
    """lemma-c.10.8: coefficients of other classes stay small."""
    return others_small(e, e.fine)


@claim("lemma-c.11", FINE, bound="ε/6")
def lemma_c_11(e: Evidence) -> Finding:
    """lemma-c.11: a weight's inner product with a centre is nearly its coefficient λ."""
    return center_products(e, e.fine)


@claim("lemma-c.12", FINE, bound="ε/6")
def lemma_c_12(e: Evidence) -> Finding:
    """lemma-c.12: a weight's inner product with a training noise is nearly its coefficient σ."""
    return noise_products(e, e.fine)


@claim("lemma-c.13", FINE, bound="ε/3")
def lemma_c_13(e: Evidence) -> Finding:
    """lemma-c.13: a weight's inner product with a training point is nearly λ + σ."""
    return point_products(e, e.fine)


@claim("lemma-c.14", FINE, bound="ε")
def lemma_c_14(e: Evidence) -> Finding:
    """lemma-c.14: margins are nearly what the coefficients say."""
    return in_units_of_epsilon(e, np.abs(e.fine.margin - e.fine.estimated_margin)[1:], 1)


@claim("corollary-c.15", FINE, bound="2 ε")
def corollary_c_15(e: Evidence) -> Finding:
    """corollary-c.15: so are differences of margins."""
    return in_units_of_epsilon(e, gaps((e.fine.margin - e.fine.estimated_margin)[1:]), 2)


@claim("lemma-c.16", FINE, bound="ε and 2 ε")
def lemma_c_16(e: Evidence) -> Finding:
    """lemma-c.16: coefficients of other classes stay small (again, as a lemma)."""
    return others_small(e, e.fine)


@claim("lemma-c.17", FINE, bound="ε")
def lemma_c_17(e: Evidence) -> Finding:
    """lemma-c.17: no class but its own answers to a training point."""
    others = np.arange(e.k)[:, None] != e.train.cluster
    return in_units_of_epsilon(e, e.fine.outputs[1:][:, others], 1)


@claim("lemma-c.18", FINE, bound="(e^gap + k - 1)/(k(1+2ε)) to e^gap (1+2ε)")
def lemma_c_18(e: Evidence) -> Finding:
    """lemma-c.18: two pulls differ by about the exponential of the margins' gap."""
    if np.isnan(e.epsilon):
        return not_stated(NO_EPSILON)
    gap, log_ratio = extreme_pair(e.fine)
    ratio = np.exp(log_ratio)
    room = 1 + 2 * e.epsilon
    return both(
        at_most(ratio, np.exp(gap) * room),
        at_least(ratio, (np.exp(gap) + e.k - 1) / e.k / room),
    )


@claim("lemma-c.19", FINE, bound="(1 ± 200 k² ε) σ ± 1/(nd)")
def lemma_c_19(e: Evidence) -> Finding:
    """lemma-c.19: any two own noise coefficients are nearly the same."""
    return similar_noise(e, e.fine, 200 * e.k**2)


@claim("lemma-c.20", FINE, bound="(n/2k) σ - 2ε to (2n/k) σ + 2ε")
def lemma_c_20(e: Evidence) -> Finding:
    """lemma-c.20: a margin is of the order of n/k times any own noise coefficient."""
    return margin_by_noise(e, e.fine)


@claim(
    "lemma-c.21",
    FINE,
    bound="exp(-2nσ/k)/2 to 2k exp(-nσ/2k)",
    reading="σ is printed with the class 1; read as the own class",
)
def lemma_c_21(e: Evidence) -> Finding:
    """lemma-c.21: a pull decays exponentially in n/k times the noise coefficient."""
    return pull_by_noise(e, e.fine, 1 / 2, 2 * e.k)


@claim("lemma-c.23", FINE, bound="ln(ηT)/4 to 4 ln(T+1)")
def lemma_c_23(e: Evidence) -> Finding:
    """lemma-c.23: own feature coefficients are of the order of the logarithm of time."""
    return growth_of_features(e, e.fine)


@claim("lemma-c.24", FINE, bound="1 + 204 k² ε")
def lemma_c_24(e: Evidence) -> Finding:
    """lemma-c.24: any two own feature coefficients have nearly the ratio 1."""
    return ratio_of_features(e, e.fine, 204 * e.k**2)


@claim("lemma-c.25", FINE, bound="λ/10", reading="o(1), read as a tenth of λ")
def lemma_c_25(e: Evidence) -> Finding:
    """lemma-c.25: each weight is λ times its own centre, up to o(d^-1/2)."""
    return distance_to_centers(e, e.fine)


@claim("lemma-c.26", FINE, bound="ε/6")
def lemma_c_26(e: Evidence) -> Finding:
    """lemma-c.26: weights are nearly orthogonal to the noise of fresh points."""
    return fresh_noise_products(e, e.fine)

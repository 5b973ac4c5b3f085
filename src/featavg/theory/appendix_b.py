"""Appendix B.1: the dynamics of the 2-class network."""

from __future__ import annotations

import numpy as np

from featavg.theory.claim import Finding, at_most, claim, not_stated
from featavg.theory.evidence import Evidence
from featavg.theory.measurements import (
    NO_EPSILON,
    always_on,
    balance_of_coefficients,
    center_products,
    derivative_ratio,
    distance_to_centers,
    fresh_noise_products,
    gaps,
    gaps_within_clusters,
    growth_of_features,
    growth_of_noise,
    in_units_of_epsilon,
    margin_by_noise,
    noise_products,
    others_small,
    point_products,
    pull_by_noise,
    ratio_of_features,
    signs,
    similar_noise,
)

COARSE = "Appendix B: 2 classes"


@claim("lemma-b.1", COARSE, bound="1")
def lemma_b_1(e: Evidence) -> Finding:
    """lemma-b.1: after one step every point switches on all neurons of its side."""
    return always_on(e.coarse, slice(1, 2))


@claim("corollary-b.4", COARSE, bound="rounding")
def corollary_b_4(e: Evidence) -> Finding:
    """corollary-b.4: a feature coefficient is the sum of the noise coefficients of its cluster."""
    return balance_of_coefficients(e, e.coarse)


@claim("corollary-b.5", COARSE, bound="0", reading="printed with < 0; the start is 0: read as <= 0")
def corollary_b_5(e: Evidence) -> Finding:
    """corollary-b.5: own coefficients are never negative, all others never positive."""
    return signs(e, e.coarse)


@claim("lemma-b.6", COARSE, bound="exp(gap/2) to exp(gap)")
def lemma_b_6(e: Evidence) -> Finding:
    """lemma-b.6: two pulls differ by the exponential of the margins' gap, or its root."""
    return derivative_ratio(e.coarse)


@claim("lemma-b.7.epsilon", COARSE, bound="k^-2.5", reading="o(k^-2.5), read as at most k^-2.5")
def lemma_b_7_epsilon(e: Evidence) -> Finding:
    """lemma-b.7.epsilon: the ε in which everything below is measured is itself small."""
    if np.isnan(e.epsilon):
        return not_stated(NO_EPSILON)
    return at_most(e.epsilon, float(e.k) ** -2.5)


@claim("lemma-b.7.1", COARSE, bound="(k/2n) ln(ηt) to (2k/n) ln(t+1)")
def lemma_b_7_1(e: Evidence) -> Finding:
    """lemma-b.7.1: own noise coefficients grow like the logarithm of time."""
    return growth_of_noise(e, e.coarse)


@claim("lemma-b.7.2", COARSE, bound="5 ε")
def lemma_b_7_2(e: Evidence) -> Finding:
    """lemma-b.7.2: estimated margins are nearly the same within a cluster."""
    values = gaps_within_clusters(e.coarse, e.coarse.estimated_margin[1:])
    return in_units_of_epsilon(e, values, 5)


@claim("lemma-b.7.3", COARSE, bound="63 ε")
def lemma_b_7_3(e: Evidence) -> Finding:
    """lemma-b.7.3: estimated margins are nearly the same everywhere."""
    return in_units_of_epsilon(e, gaps(e.coarse.estimated_margin[1:]), 63)


@claim("lemma-b.7.4", COARSE, bound="65 ε")
def lemma_b_7_4(e: Evidence) -> Finding:
    """lemma-b.7.4: margins are nearly the same everywhere."""
    return in_units_of_epsilon(e, gaps(e.coarse.margin[1:]), 65)


@claim("lemma-b.7.5", COARSE, bound="1 + 14 ε")
def lemma_b_7_5(e: Evidence) -> Finding:
    """lemma-b.7.5: the pulls of two points of a cluster have nearly the ratio 1."""
    ratios = np.exp(gaps_within_clusters(e.coarse, e.coarse.log_pull[1:]))
    return in_units_of_epsilon(e, ratios, 14, offset=1.0)


@claim("lemma-b.7.6", COARSE, bound="1 + 130 ε")
def lemma_b_7_6(e: Evidence) -> Finding:
    """lemma-b.7.6: the pulls of any two points have nearly the ratio 1."""
    return in_units_of_epsilon(e, np.exp(gaps(e.coarse.log_pull[1:])), 130, offset=1.0)


@claim("lemma-b.7.7", COARSE, bound="1")
def lemma_b_7_7(e: Evidence) -> Finding:
    """lemma-b.7.7: every point switches on all neurons of its side, at all times from 1 on."""
    return always_on(e.coarse, slice(1, None))


@claim("lemma-b.7.8", COARSE, bound="ε and 2 ε")
def lemma_b_7_8(e: Evidence) -> Finding:
    """lemma-b.7.8: coefficients of the opposite side stay small."""
    return others_small(e, e.coarse)


@claim("lemma-b.10", COARSE, bound="ε/6")
def lemma_b_10(e: Evidence) -> Finding:
    """lemma-b.10: biases stay small."""
    return in_units_of_epsilon(e, np.abs(e.coarse.biases), 1 / 6)


@claim("lemma-b.11", COARSE, bound="ε/6")
def lemma_b_11(e: Evidence) -> Finding:
    """lemma-b.11: a weight's inner product with a centre is nearly its coefficient λ."""
    return center_products(e, e.coarse)


@claim("lemma-b.12", COARSE, bound="ε/6")
def lemma_b_12(e: Evidence) -> Finding:
    """lemma-b.12: a weight's inner product with a training noise is nearly its coefficient σ."""
    return noise_products(e, e.coarse)


@claim("lemma-b.13", COARSE, bound="ε/3")
def lemma_b_13(e: Evidence) -> Finding:
    """lemma-b.13: a weight's inner product with a training point is nearly λ + σ."""
    return point_products(e, e.coarse)


@claim("lemma-b.14", COARSE, bound="ε")
def lemma_b_14(e: Evidence) -> Finding:
    """lemma-b.14: margins are nearly what the coefficients say."""
    return in_units_of_epsilon(e, np.abs(e.coarse.margin - e.coarse.estimated_margin)[1:], 1)


@claim("corollary-b.15", COARSE, bound="2 ε")
def corollary_b_15(e: Evidence) -> Finding:
    """corollary-b.15: so are differences of margins."""
    return in_units_of_epsilon(e, gaps((e.coarse.margin - e.coarse.estimated_margin)[1:]), 2)


@claim("lemma-b.16", COARSE, bound="ε and 2 ε")
def lemma_b_16(e: Evidence) -> Finding:
    """lemma-b.16: coefficients of the opposite side stay small (again, as a lemma)."""
    return others_small(e, e.coarse)


@claim("lemma-b.19", COARSE, bound="(1 ± 200 ε) σ ± 1/(nd)")
def lemma_b_19(e: Evidence) -> Finding:
    """lemma-b.19: any two own noise coefficients are nearly the same."""
    return similar_noise(e, e.coarse, 200)


@claim("lemma-b.20", COARSE, bound="(n/2k) σ - 2ε to (2n/k) σ + 2ε")
def lemma_b_20(e: Evidence) -> Finding:
    """lemma-b.20: a margin is of the order of n/k times any own noise coefficient."""
    return margin_by_noise(e, e.coarse)


@claim("lemma-b.21", COARSE, bound="exp(-2nσ/k)/3 to 2 exp(-nσ/2k)")
def lemma_b_21(e: Evidence) -> Finding:
    """lemma-b.21: a pull decays exponentially in n/k times the noise coefficient."""
    return pull_by_noise(e, e.coarse, 1 / 3, 2)


@claim("lemma-b.23", COARSE, bound="ln(ηT)/4 to 4 ln(T+1)")
def lemma_b_23(e: Evidence) -> Finding:
    """lemma-b.23: own feature coefficients are of the order of the logarithm of time."""
    return growth_of_features(e, e.coarse)


@claim("lemma-b.24", COARSE, bound="1 + 204 ε")
def lemma_b_24(e: Evidence) -> Finding:
    """lemma-b.24: any two own feature coefficients have nearly the ratio 1."""
    return ratio_of_features(e, e.coarse, 204)


@claim("lemma-b.25", COARSE, bound="λ/10", reading="o(1), read as a tenth of λ")
def lemma_b_25(e: Evidence) -> Finding:
    """lemma-b.25: each weight is λ times the sum of its side's centres, up to o(d^-1/2)."""
    return distance_to_centers(e, e.coarse)


@claim("lemma-b.26", COARSE, bound="ε/6")
def lemma_b_26(e: Evidence) -> Finding:
    """lemma-b.26: weights are nearly orthogonal to the noise of fresh points."""
    return fresh_noise_products(e, e.coarse)

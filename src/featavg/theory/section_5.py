"""Section 5: the proof in short."""

from __future__ import annotations

from featavg.theory.claim import Finding, claim
from featavg.theory.evidence import Evidence
from featavg.theory.measurements import always_on, decomposition, gaps, in_units_of_epsilon, updates

SKETCH = "Section 5: the proof in short"


@claim("lemma-5.1", SKETCH, bound="rounding")
def lemma_5_1(e: Evidence) -> Finding:
    """lemma-5.1: a weight is its start plus multiples λ of the centres and σ of the noises."""
    return decomposition(e, e.coarse)


@claim("lemma-5.2", SKETCH, bound="rounding")
def lemma_5_2(e: Evidence) -> Finding:
    """lemma-5.2: the coefficients change in a step by the pulls of the points that are on."""
    return updates(e, e.coarse)


@claim("lemma-5.3", SKETCH, bound="65 ε", reading="only ε(k) → 0 is said; 65 ε is of Lemma B.7")
def lemma_5_3(e: Evidence) -> Finding:
    """lemma-5.3: all training margins are nearly the same at all times."""
    return in_units_of_epsilon(e, gaps(e.coarse.margin[1:]), 65)


@claim("lemma-5.5", SKETCH, bound="1")
def lemma_5_5(e: Evidence) -> Finding:
    """lemma-5.5: every point switches on all neurons of its side, at all times from 1 on."""
    return always_on(e.coarse, slice(1, None))

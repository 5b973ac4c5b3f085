"""Appendix D: the two reference networks, and the attack on every KKT point."""

from __future__ import annotations

import numpy as np

from featavg.networks import reference
from featavg.theory.claim import Finding, at_most, claim, not_stated
from featavg.theory.evidence import Evidence
from featavg.theory.measurements import (
    broken_by_average,
    certified,
    error_rate,
    predictions_along_average,
)
from featavg.theory.section_4 import ERROR

REFERENCES = "Appendix D: reference networks"
_FOOLED = 0.99


@claim(REFERENCES, bound="exp(-ln² d)", reading="1 - o(1), read as in Theorem 4.5")
def theorem_d_1(e: Evidence) -> Finding:
    """theorem-d.1: the averaging network is right on nearly every fresh point."""
    return error_rate(e, reference.averaging(e.train))


@claim(
    REFERENCES,
    bound="exp(-ln² d)",
    reading="Ω(√(d/k)), read as 2(1+c) √(d/k) as for Theorem 4.5; for zero biases",
)
def theorem_d_2(e: Evidence) -> Finding:
    """theorem-d.2: moved along the averaged centres, it is right on nearly none."""
    return broken_by_average(e, reference.averaging(e.train), 2 * (1 + e.balance))


@claim(REFERENCES, bound="exp(-ln² d)", reading="the radius is garbled; √d/3 in the proof")
def theorem_d_3(e: Evidence) -> Finding:
    """theorem-d.3: the decoupled network is right on nearly every point within √d/3."""
    return certified(e, reference.decoupled(e.train), np.sqrt(e.d) / 3)


@claim(REFERENCES, bound="exp(-ln² d)", reading=ERROR)
def theorem_d_4(e: Evidence) -> Finding:
    """theorem-d.4: the averaging k-class network fails within 3(1+c) √(d/k); Proposition 4.8."""
    return broken_by_average(e, reference.averaging_multiclass(e.train), 3 * (1 + e.balance))


@claim(
    REFERENCES,
    bound="√(d/(c² k))",
    reading="of KKT points, which training only approaches; no constant given, read with 1",
)
def frei_4_2(e: Evidence) -> Finding:
    """frei-4.2: one direction, Σ y μ, fools the 2-class network on 99 % of fresh points."""
    law = e.train.law
    if e.n < e.k * np.log(e.d) ** 2:
        return not_stated("asks for n >= k ln² d")
    share = min(len(law.positive_clusters), len(law.negative_clusters)) / e.k
    decide = predictions_along_average(e, e.coarse.run.net)
    length = float(np.linalg.norm(e.averaged))

    def fooled(radius: float) -> float:
        return float((decide(radius / length) != decide(0.0)).mean())

    low, high = 0.0, 10 * np.sqrt(e.d)
    if fooled(high) < _FOOLED:
        low = high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fooled(middle) >= _FOOLED else (middle, high)
    return at_most(high, np.sqrt(e.d / (share**2 * e.k)), f"c = {share:.2g}")

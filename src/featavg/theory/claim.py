"""Claims, statements of the paper that can be measured, and the findings of measuring them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from featavg.drawing.views import HOLDS, NOT_STATED, VIOLATED

if TYPE_CHECKING:
    from featavg.theory.evidence import Evidence


@dataclass(frozen=True)
class Finding:
    """The outcome of measuring a claim.

    Attributes
    ----------
    measured, bound : float
        Both sides of the inequality, where it is nearest to failing or fails the most.
    slack : float
        The factor by which the inequality holds: at least 1 where the statement holds, 2 where
        the bound could be halved. NaN where it is not stated.
    note : str
        A remark on this measurement.
    """

    measured: float
    bound: float
    slack: float
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the statement holds, is violated, or is not stated at this scale."""
        if np.isnan(self.slack):
            return NOT_STATED
        return HOLDS if self.slack >= 1 else VIOLATED


@dataclass(frozen=True)
class Claim:
    """A measurable statement of the paper.

    Attributes
    ----------
    id : str
        ``lemma-5.3``, or ``proposition-a.6.2`` for the second of several properties.
    section : str
        The section or appendix of the paper, with its subject.
    statement : str
        The statement, in our words.
    bound : str
        The formula of its bound.
    reading : str
        How the statement was read where the paper gives no constant, only O(·) or o(·), or is
        garbled; "" elsewhere.
    measure : callable
        ``measure(evidence)`` returns the finding.
    """

    id: str
    section: str
    statement: str
    bound: str
    reading: str
    measure: Callable[[Evidence], Finding]


def at_most(measured: ArrayLike, bound: ArrayLike, note: str = "") -> Finding:
    """Return the finding of measured <= bound, at the entry with the least slack.

    Examples
    --------
    >>> at_most([1.0, 3.0], [10.0, 6.0])
    Finding(measured=3.0, bound=6.0, slack=2.0, note='')
    """
    q, b = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (measured, bound)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        positive = np.where(b > 0, b / q, 0.0)  # a slack of 0 fails
    slack = np.where(q <= np.minimum(b, 0), np.inf, np.where(q > 0, positive, np.inf))
    slack = np.where((q <= 0) & (q > b), 0.0, slack)
    return _worst(q, b, slack, note)


def at_least(measured: ArrayLike, bound: ArrayLike, note: str = "") -> Finding:
    """Return the finding of measured >= bound, at the entry with the least slack.

    Examples
    --------
    >>> at_least([1.0, 3.0], [0.5, 6.0])
    Finding(measured=3.0, bound=6.0, slack=0.5, note='')
    >>> at_least(0.0, -1.0).verdict
    'holds'
    """
    q, b = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (measured, bound)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.maximum(q, 0) / b
    slack = np.where(b > 0, ratio, np.where(q >= b, np.inf, 0.0))
    return _worst(q, b, slack, note)


def both(*findings: Finding) -> Finding:
    """Return the finding with the least slack: all parts of a statement must hold."""
    return min(findings, key=lambda finding: finding.slack)


def between(measured: ArrayLike, low: ArrayLike, high: ArrayLike) -> Finding:
    """Return the finding of low <= measured <= high."""
    return both(at_most(measured, high), at_least(measured, low))


def not_stated(why: str) -> Finding:
    """Return the finding of a statement that is not made at this scale, with the reason."""
    return Finding(np.nan, np.nan, np.nan, why)


def _worst(q: np.ndarray, b: np.ndarray, slack: np.ndarray, note: str) -> Finding:
    if q.size == 0 or np.isnan(q).any():
        raise ValueError("a measurement must have at least one value, and no NaN.")
    index = np.unravel_index(np.argmin(slack), slack.shape)
    return Finding(float(q[index]), float(b[index]), float(slack[index]), note)

"""Measurements on all pairs of training points: the pulls of two points, by their margins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featavg.arrays import FloatArray
from featavg.theory.claim import Finding, at_least, at_most, both
from featavg.theory.evidence import Evidence, ProofQuantities

_ROUNDING = 1e-9


def pulls_by_margins(_: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that exp(gap/2) <= ratio of two pulls <= exp(gap), for the gap of their margins.

    Of all pairs, at all times. The lower side fails for a pair exactly where the sum of its margins
    is negative, so it fails for some pair where it does for the two smallest margins.
    """
    q, pull = quantities.margin, quantities.log_pull
    negative = np.flatnonzero(np.sort(q, axis=1)[:, :2].sum(axis=1) < 0)
    note = f"the two smallest margins have a negative sum at {len(negative)} of {len(q)} times"
    if len(negative):
        note += f", last at recorded time {negative[-1]}"
    gap, ratio = _worst_pairs(q, pull, _largest_drop, q + pull)
    high = at_most(np.exp(ratio), np.exp(gap + _ROUNDING))
    gap, ratio = _worst_pairs(q, pull, _largest_drop, -(q / 2 + pull))
    return both(high, at_least(np.exp(ratio), np.exp(gap / 2 - _ROUNDING), note))


def pulls_by_margins_of_classes(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check the same for k classes, with other functions of the gap, at all times from 1 on."""
    q, pull = quantities.margin[1:], quantities.log_pull[1:]
    room = 1 + 2 * e.epsilon
    gap, ratio = _worst_pairs(q, pull, _largest_drop, q + pull)
    high = at_most(np.exp(ratio), np.exp(gap) * room)
    gap, ratio = _worst_pairs(q, pull, lambda q, u: _least_above_bound(q, u, e.k), pull)
    return both(high, at_least(np.exp(ratio), (np.exp(gap) + e.k - 1) / e.k / room))


def _worst_pairs(
    q: FloatArray,
    pull: FloatArray,
    search: Callable[[FloatArray, FloatArray], tuple[int, int]],
    values: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the gap of the margins of one pair at each time, and the log-ratio of its pulls.

    ``search(q, values)`` finds the pair, with margins in ascending order: the indices of the
    smaller and of the larger margin.
    """
    gaps, ratios = [], []
    for t, order in enumerate(np.argsort(q, axis=1, kind="stable")):
        low, high = (order[i] for i in search(q[t, order], values[t, order]))
        gaps.append(q[t, high] - q[t, low])
        ratios.append(pull[t, low] - pull[t, high])
    return np.array(gaps), np.array(ratios)


def _largest_drop(_: FloatArray, values: FloatArray) -> tuple[int, int]:
    """Return the i < j for which values[i] - values[j] is largest."""
    least_later = np.minimum.accumulate(values[::-1])[::-1]
    i = int(np.argmax(values[:-1] - least_later[1:]))
    return i, i + 1 + int(np.argmin(values[i + 1 :]))


def _least_above_bound(q: FloatArray, pull: FloatArray, k: int) -> tuple[int, int]:
    """Return the i < j with the least ratio of pulls over exp(q_j - q_i) + k - 1."""
    pulls, inverse = np.exp(pull - pull.max()), np.exp(q[0] - q)
    along = pulls / inverse  # the pair has the value pulls_i / (inverse_i along_j + (k-1) pulls_j)
    best = np.inf, 0, 1
    for i in range(len(q) - 1):
        below = inverse[i] * along[i + 1 :] + (k - 1) * pulls[i + 1 :]
        j = int(np.argmax(below))
        best = min(best, (pulls[i] / below[j], i, i + 1 + j))
    return best[1:]

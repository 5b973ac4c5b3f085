"""All patterns of the undecided neurons of a node, as half-spaces for Shor's relaxation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.robustness.exact.pieces import Pieces
from featavg.robustness.exact.proof import PatternProof, Weights
from featavg.robustness.exact.shor import Patterns, pattern_bound

# How often the multipliers are improved, and by which part of the gap each time for another try.
_STEPS = 6
_WORTHWHILE = 0.1


@dataclass(frozen=True, eq=False)
class PatternState:
    """What the nodes below start from: multipliers and the solution for the free challengers."""

    weights: Weights
    free: BoolArray
    factor: FloatArray

    def factor_for(self, free: BoolArray) -> FloatArray | None:
        """Return the solution for challengers that are still free."""
        if (free & ~self.free).any():
            return None
        rows = np.concatenate([[0], 1 + np.flatnonzero(free[self.free])])
        return self.factor[rows]


@dataclass(frozen=True, eq=False)
class BestPatterns:
    """The best bound over all patterns in a node, its proof, and patterns worth a look."""

    bound: float
    proof: PatternProof
    state: PatternState
    on: BoolArray


def best_patterns(
    pieces: Pieces,
    index: int,
    signs: IntArray,
    reach: tuple[FloatArray, FloatArray],
    starts: Sequence[PatternState | Weights],
    radius: float,
    goal: float,
) -> BestPatterns | None:
    """Return the best bound over all patterns in a node; None if there is none.

    The multipliers of the hindering neurons are improved as by Frank and Wolfe: towards those that
    are on where the half-space of the solution is nearest.
    """
    free = (signs == 0) & (reach[0] < 0) & (reach[1] > 0)
    on = (signs == 1) | ((signs == 0) & (reach[0] >= 0))
    best: BestPatterns | None = None
    nearest: FloatArray = np.zeros(pieces.V.shape[1])

    def attempt(weights: Weights, factor: FloatArray | None) -> bool:
        nonlocal best, nearest
        patterns = patterns_of(pieces, index, weights, signs, on, free)
        answer = pattern_bound(patterns, goal, factor)
        if answer is None:
            return False
        bound = safe_distance(pieces, index, weights, patterns, answer.distance)
        if best is not None and bound <= best.bound:
            return False
        pattern = on.copy()
        pattern[free] = answer.on
        proof = PatternProof(weights, free, radius, answer.distance, answer.multipliers)
        best = BestPatterns(bound, proof, PatternState(weights, free, answer.factor), pattern)
        nearest = answer.point
        return True

    for start in starts:
        if isinstance(start, PatternState):
            attempt(start.weights, start.factor_for(free))
        else:
            attempt(start, None)
    step = 1.0
    for _ in range(_STEPS):
        if best is None or best.bound >= goal * (1 - 1e-9):
            break
        before = best.bound
        weights = _towards(pieces, index, best.state.weights, nearest, step)
        if not attempt(weights, best.state.factor):
            step /= 2
        elif best.bound - before < _WORTHWHILE * (goal - before):
            break
    return best


def _towards(
    pieces: Pieces, index: int, weights: Weights, point: FloatArray, step: float
) -> Weights:
    """Return multipliers that are moved towards the hindering neurons that are on at a point."""
    on = pieces.z + pieces.V @ point > 0
    target = (weights.rivals @ pieces.contests[index].hindering) * on
    return replace(weights, hindering=(1 - step) * weights.hindering + step * target)


def weights_at(pieces: Pieces, index: int, point: FloatArray) -> Weights:
    """Return the multipliers of the first rival, with its neurons that are on at a point."""
    plain = plain_weights(pieces, index)
    return _towards(pieces, index, plain, point, 1.0)


def plain_weights(pieces: Pieces, index: int) -> Weights:
    """Return the multipliers of the rival furthest ahead, with its neurons that are on."""
    contest = pieces.contests[index]
    active = contest.hindering * (pieces.z > 0)
    ahead = active @ pieces.z - contest.leads - contest.helping @ np.maximum(pieces.z, 0)
    rival = int(np.argmax(ahead))
    return Weights(
        np.eye(len(contest.leads))[rival], active[rival], np.zeros(len(contest.challengers))
    )


def patterns_of(
    pieces: Pieces,
    index: int,
    weights: Weights,
    signs: IntArray,
    on: BoolArray,
    free: BoolArray,
) -> Patterns:
    """Return the half-space that holds each pattern of the free challengers, given the others."""
    contest = pieces.contests[index]
    who = contest.challengers
    gains = weights.rivals @ contest.helping[:, who]
    fixed = gains * on + weights.decided * signs
    slopes = gains[free, None] * pieces.V[who[free]]
    return Patterns(
        float(
            weights.hindering @ pieces.z - weights.rivals @ contest.leads - fixed @ pieces.z[who]
        ),
        gains[free] * pieces.z[who[free]],
        weights.hindering @ pieces.V
        - weights.rivals @ pieces.slopes[index]
        - fixed @ pieces.V[who],
        slopes,
    )


def safe_distance(
    pieces: Pieces, index: int, weights: Weights, patterns: Patterns, distance: float
) -> float:
    r"""Return what is left of a distance when F and G have been computed with rounding.

    With errors :math:`\delta_F, \delta_G`, either :math:`\|G\| \ge K\delta_G`, and the distance is
    right up to a factor of 1 + 1/K, or the half-space is at least
    :math:`(F - \delta_F)/((K + 1)\delta_G)` away.
    """
    contest = pieces.contests[index]
    who = contest.challengers
    gains = weights.rivals @ contest.helping[:, who] + weights.decided
    slope_size = weights.hindering @ pieces.norms + gains @ pieces.norms[who]
    slope_size += weights.rivals @ pieces.slope_sizes[index]
    offset_size = weights.hindering @ pieces.z_sizes + gains @ pieces.z_sizes[who]
    offset_size += weights.rivals @ contest.lead_sizes
    least = patterns.least_offset
    if distance <= 0 or least <= pieces.rounding * offset_size:
        return 0.0
    left = 1 - pieces.rounding * offset_size / least
    ratio = least * left / (distance * pieces.rounding * slope_size) - 1
    return float(distance * left * ratio / (1 + ratio)) if ratio > 0 else 0.0

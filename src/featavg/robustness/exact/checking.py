"""A check of proofs: what a search has found is evaluated again, and nothing is searched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.robustness.exact.contest import PointProblem
from featavg.robustness.exact.geometry import Cap, Euclidean, Geometry
from featavg.robustness.exact.nearest import FAR
from featavg.robustness.exact.patterns import patterns_of, safe_distance
from featavg.robustness.exact.pieces import Pieces
from featavg.robustness.exact.proof import PatternProof, Proof, ProofNode, Weights
from featavg.robustness.exact.shor import proves

# Of the multipliers that prove a draw, at least this share has to be that of strict rivals.
_STRICT_SHARE = 1e-6


def proved_bound(problem: PointProblem, geometry: Geometry, proof: Proof) -> float:
    """Return the distance within which a proof shows that no contest is won; 0 if it does not.

    Paper: none, an extension.

    The nodes have to cover all patterns of the challengers: one first node for each contest, and
    under each node that is split, one in which the challenger is on and one in which it is off.
    In each node, the multipliers of its rounds make one inequality of those that hold at every
    win, which is a half-space at some distance; the half-space narrows what the neurons can reach,
    and so the chords of the next round. A node's bound is the best of its own and of the one above
    it, but no more than the smallest ball that one of its relaxations was restricted to. What is
    proved is the smallest bound of the nodes that are not split.
    """
    checker = _Checker(Pieces(problem, geometry, proof.unit))
    children: dict[int, list[int]] = {}
    for number, node in enumerate(proof.nodes):
        if node.parent >= number:
            return 0.0
        children.setdefault(node.parent, []).append(number)
    roots = sorted(proof.nodes[r].contest for r in children.get(-1, []))
    if roots != list(range(len(problem.contests))):
        return 0.0
    least = np.inf
    states: dict[int, tuple[IntArray, float, Cap]] = {}
    for number, node in enumerate(proof.nodes):
        size = len(problem.contests[node.contest].challengers)
        signs, above, cap = np.zeros(size, dtype=np.int64), 0.0, Cap(np.inf)
        if node.parent >= 0:
            before, above, cap = states[node.parent]
            signs = before.copy()
            signs[node.split] = node.side
        bound, cap = checker.node_bound(node, signs, above, cap)
        states[number] = signs, bound, cap
        below = [proof.nodes[c] for c in children.get(number, [])]
        if below:
            if not _is_split(below, signs, node.contest):
                return 0.0
        else:
            if cap.radius < checker.extent:  # otherwise the ball holds all that is allowed
                bound = min(bound, cap.radius)
            if bound <= checker.extent and not checker.is_drawn(node, signs):
                least = min(least, bound)
    return least * proof.unit


def _is_split(below: list[ProofNode], signs: IntArray, contest: int) -> bool:
    """Return whether two nodes are the two sides of one that leaves a challenger undecided."""
    return (
        sorted(node.side for node in below) == [-1, 1]
        and len({node.split for node in below}) == 1
        and all(node.contest == contest for node in below)
        and signs[below[0].split] == 0
    )


class _Checker:
    """The evaluation of one node after the other."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces, self.extent = pieces, pieces.geometry.extent

    def node_bound(
        self, node: ProofNode, signs: IntArray, bound: float, cap: Cap
    ) -> tuple[float, Cap]:
        """Return the bound of a node, and the cap that everything nearer than its ball is in.

        Bounds and half-spaces say nothing about what is outside of the balls they were proved in,
        so the balls never grow.
        """
        challengers = self._pieces.contests[node.contest].challengers
        for step in node.rounds:
            cap = replace(cap, radius=min(cap.radius, step.radius))
            low, high = self._pieces.reach(challengers, _usable(cap))
            distance, normal, along = self._half_space(
                node.contest, step.weights, signs, low, high, cap.radius
            )
            bound = max(bound, distance)
            if np.isfinite(distance) and normal is not None:
                cap = Cap(cap.radius, normal, along)
        if node.patterns is not None:
            cap = replace(cap, radius=min(cap.radius, node.patterns.radius))
            bound = max(bound, self._pattern_bound(node.contest, node.patterns, signs, cap))
        return bound, cap

    def _half_space(
        self,
        index: int,
        weights: Weights,
        signs: IntArray,
        low: FloatArray,
        high: FloatArray,
        radius: float,
    ) -> tuple[float, FloatArray | None, float]:
        """Return how far the half-space of the sum of all inequalities is, and where it is."""
        pieces, contest = self._pieces, self._pieces.contests[index]
        weights = _admissible(pieces, index, weights, signs)
        who, decided = contest.challengers, weights.decided * signs
        slope = weights.hindering @ pieces.V - decided @ pieces.V[who]
        offset = float(weights.hindering @ pieces.z - decided @ pieces.z[who])
        slope_size = float(weights.hindering @ pieces.norms + weights.decided @ pieces.norms[who])
        offset_size = weights.hindering @ pieces.z_sizes + weights.decided @ pieces.z_sizes[who]
        if weights.rivals.any():
            total = pieces.relaxed_total(index, signs, low, high)
            slope = slope - weights.rivals @ total.slopes
            offset -= float(weights.rivals @ total.offsets)
            slope_size += float(weights.rivals @ total.slope_sizes)
            offset_size += weights.rivals @ total.offset_sizes
        offset -= pieces.rounding * float(offset_size)
        error = pieces.rounding * slope_size
        cutoff = min(radius, pieces.geometry.extent)
        return pieces.geometry.half_space(slope, offset, error, slope_size, cutoff)

    def _pattern_bound(self, index: int, proof: PatternProof, signs: IntArray, cap: Cap) -> float:
        pieces = self._pieces
        if not isinstance(pieces.geometry, Euclidean):
            return 0.0
        low, high = pieces.reach(pieces.contests[index].challengers, _usable(cap))
        undecided = (signs == 0) & (low < 0) & (high > 0)
        if (undecided & ~proof.free).any() or (proof.free & (signs != 0)).any():
            return 0.0
        on = (signs == 1) | ((signs == 0) & (low >= 0) & ~proof.free)
        weights = _admissible(pieces, index, proof.weights, signs)
        patterns = patterns_of(pieces, index, weights, signs, on, proof.free)
        if not proves(patterns, proof.distance, proof.multipliers):
            return 0.0
        return safe_distance(pieces, index, weights, patterns, proof.distance)

    def is_drawn(self, node: ProofNode, signs: IntArray) -> bool:
        """Return whether a fully decided node can at most be drawn, against a strict rival."""
        pieces, contest = self._pieces, self._pieces.contests[node.contest]
        if node.drawn is None or (signs == 0).any() or not contest.strict.any():
            return False
        weights = _admissible(pieces, node.contest, node.drawn, signs)
        total = pieces.total(node.contest, signs == 1)
        strict = weights.rivals[contest.strict].sum()
        is_strict = bool(strict > _STRICT_SHARE * weights.rivals.sum())
        if np.isinf(self.extent):  # far enough out, any slope makes up for any room
            slope, size = pieces.weighted_slope(total, weights)
            length = float(pieces.geometry.dual_length(slope[None])[0])
            is_strict = is_strict and length <= pieces.rounding * size
        return is_strict and pieces.is_thin(total, weights)


def _usable(cap: Cap) -> Cap:
    """Return a cap without its plane where the ball is larger than what planes are proved for."""
    return Cap(cap.radius) if cap.radius > FAR else cap


def _admissible(pieces: Pieces, index: int, weights: Weights, signs: IntArray) -> Weights:
    """Return multipliers with everything removed that they must not have."""
    rivals = np.maximum(weights.rivals, 0)
    most = rivals @ pieces.contests[index].hindering
    decided = np.maximum(weights.decided, 0) * (signs != 0)
    return Weights(rivals, np.clip(weights.hindering, 0, most), decided)

"""Branch and bound for the nearest point at which one group of neurons overtakes others."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.robustness.exact.pieces import Cap, Contest, Pieces

# How near the bound has to come to the best perturbation for the search to end.
_CLOSED = 1e-9
# How near to its kink a challenger is taken to be at it.
_AT_KINK = 1e-9
# How often a node's bound is improved, and by which factor each time for another try.
_ROUNDS = 4
_WORTHWHILE = 1.02
# A radius smaller than this, in its unit, is looked at again with a smaller unit; and by how much
# the unit grows while nothing is found and nothing is proved. No more than this many units.
_TINY = 1e-4
_FURTHER = 1e5
_UNITS = 8


@dataclass(frozen=True, eq=False)
class Found:
    """The answer of a search: bounds of the radius, and a perturbation of the upper one."""

    lower: float
    upper: float
    point: FloatArray | None


@dataclass(order=True)
class _Node:
    """A part of the search space: challengers that are on (+1), off (-1) or undecided (0).

    `bound` is the best one known; `point` solves the node's own relaxation, at a distance that is
    proved to be at least `distance`.
    """

    bound: float
    order: int
    contest: int = field(compare=False)
    signs: IntArray = field(compare=False)
    point: FloatArray = field(compare=False)
    distance: float = field(compare=False)


class ContestSearch:
    r"""Find the nearest point at which some contest is won.

    Paper: none, an extension.

    In a node each challenger is on, off or undecided. Undecided ones are relaxed by the chord of
    the relu over what they can reach, which gives a bound. Something better than the best
    perturbation so far lies in its ball and beyond the plane that proves the node's bound, so the
    bound narrows the reach, and the chords give a better bound. The node of the smallest bound is
    split at the challenger whose chord is furthest from its relu.

    Bounds are those of the closed problem, with <=. A strict contest counts as won only where its
    linear piece has an interior; then the infimum of the open set is the minimum of its closure.

    Parameters
    ----------
    weights : array of shape (neurons, span)
        The weights in an orthonormal basis of their span.
    z : array of shape (neurons,)
        The pre-activations of the point.
    contests : sequence of Contest
        The ways to turn the decision.
    incumbent : array of shape (span,), optional
        A perturbation that is known to win one.
    """

    def __init__(
        self,
        weights: FloatArray,
        z: FloatArray,
        contests: tuple[Contest, ...],
        incumbent: FloatArray | None = None,
    ) -> None:
        self._weights, self._z, self._contests = weights, z, contests
        self._best: FloatArray | None = None
        self._radius = self._unproved = np.inf
        if incumbent is None:
            self._use_unit(_kink_distance(z, weights))
            self._guess()
            self._rescale()
        else:
            self._use_unit(float(np.linalg.norm(incumbent)))
            self._best, self._radius = incumbent / self._pieces.unit, 1.0
            self._polish(self._best)

    def run(self, max_nodes: int) -> Found:
        """Return the radius: both bounds equal, unless more than `max_nodes` would be needed."""
        for _ in range(_UNITS):
            bound = self._explore(max_nodes)
            if self._radius < _TINY:  # what looks like this may be rounding
                unit = self._pieces.unit * max(self._radius, _TINY)
            elif np.isinf(self._radius) and np.isfinite(self._unproved):
                unit = self._pieces.unit * _FURTHER  # nothing within what this unit can resolve
            else:
                return self._found(bound)
            self._best, self._radius, self._unproved = None, np.inf, np.inf
            self._use_unit(unit)
            self._guess()
        return self._found(min(self._explore(max_nodes), self._unproved))

    def inner_point(self, point: FloatArray, stretch: float) -> FloatArray | None:
        """Return the nearest perturbation that wins as it is and stretched, close to `point`.

        `point` lies on the boundary. Of the linear pieces that meet there, those that are on a
        little further out are tried first.
        """
        pieces = self._pieces
        for factor in (stretch, 1.0):
            near = point * factor / pieces.unit
            for index in range(len(self._contests)):
                if not pieces.wins(index, near, slack=1e-7):
                    continue
                for slack in (0.0, 1e-6):
                    on = self._challengers_on(index, near, slack)
                    total = pieces.total(self._contests[index].challengers[on])
                    answer = pieces.nearest_win(index, total, strict=True, stretch=stretch)
                    if answer.point is not None:
                        return answer.point * pieces.unit
        return None

    # --- setting out

    def _use_unit(self, unit: float) -> None:
        self._pieces = Pieces(self._weights, self._z, self._contests, unit)

    def _rescale(self) -> None:
        """Make the best radius the unit."""
        if self._best is not None and self._radius > 0:
            self._use_unit(self._pieces.unit * self._radius)
            self._best, self._radius = self._best / self._radius, 1.0

    def _guess(self) -> None:
        """Look for a first perturbation: all challengers on; else one of them, or none."""
        for index, contest in enumerate(self._contests):
            who = contest.challengers
            self._improve(index, (self._pieces.norms[who] > 0) | (self._z[who] > 0))
        if self._best is None:
            for index, contest in enumerate(self._contests):
                size = len(contest.challengers)
                for on in (*np.eye(size, dtype=bool), np.zeros(size, dtype=bool)):
                    self._improve(index, on)

    def _polish(self, best: FloatArray) -> None:
        """Move the best perturbation to the nearest point of its own linear piece."""
        for index in range(len(self._contests)):
            if self._pieces.wins(index, best, slack=1e-7):
                self._improve(index, self._challengers_on(index, best))

    # --- exploring

    def _explore(self, max_nodes: int) -> float:
        """Work through the nodes and return a bound: the radius itself if all are done."""
        counter = itertools.count()
        heap: list[_Node] = []
        for index, contest in enumerate(self._contests):
            undecided = np.zeros(len(contest.challengers), dtype=np.int64)
            self._push(heap, counter, index, undecided, None)
        visited = 0
        while heap and heap[0].bound < self._radius * (1 - _CLOSED):
            if visited >= max_nodes:
                return heap[0].bound
            visited += 1
            node = heapq.heappop(heap)
            for signs in self._branches(node):
                self._push(heap, counter, node.contest, signs, node)
        return self._radius

    def _branches(self, node: _Node) -> Iterator[IntArray]:
        """Yield the parts of a node, after learning what its relaxed solution teaches."""
        challengers = self._contests[node.contest].challengers
        on = self._challengers_on(node.contest, node.point)
        norm = float(np.linalg.norm(node.point))
        # where a challenger is at its kink, the node says on which side of it to look
        at_kink = self._challengers_on(node.contest, node.point, slack=_AT_KINK)
        sides = on | (at_kink & (node.signs == 1))
        if self._pieces.wins(node.contest, node.point) and (
            self._pieces.has_interior(node.contest, on)
            or self._pieces.has_interior(node.contest, sides)
        ):
            if norm < self._radius:
                self._best, self._radius = node.point, norm
            return
        self._improve(node.contest, on)
        if not (node.signs == 0).any():
            self._improve(node.contest, node.signs == 1)
            return
        now = self._z[challengers] + self._pieces.V[challengers] @ node.point
        gap = self._pieces.chord_gaps(challengers, now, self._cap(node))
        gap[node.signs != 0] = -np.inf
        split = int(np.argmax(gap))
        for sign in (1, -1):
            signs = node.signs.copy()
            signs[split] = sign
            yield signs

    def _push(
        self,
        heap: list[_Node],
        counter: itertools.count[int],
        index: int,
        signs: IntArray,
        parent: _Node | None,
    ) -> None:
        """Bound a node and keep it if it can hold something better than the best.

        Each bound narrows what the challengers can reach, and so gives a better one: the first
        comes from the parent, the others from the node itself.
        """
        pieces, challengers = self._pieces, self._contests[index].challengers
        decided = (signs != 0) & (pieces.norms[challengers] > 0)
        side, which = signs[decided], challengers[decided]
        extra = (-side[:, None] * pieces.V[which], side * self._z[which])
        unbounded = np.isinf(self._radius) and bool((signs == 0).any())
        known, bound = parent, 0.0 if parent is None else parent.bound
        for _ in range(_ROUNDS):
            if unbounded:  # nothing limits the undecided ones yet: only their signs are known
                answer = pieces.nearest_signs(extra)
            else:
                total = pieces.relaxed_total(challengers, signs, self._cap(known))
                answer = pieces.nearest_win(index, total, cutoff=self._radius, extra=extra)
            if answer.point is None:
                self._unproved = min(self._unproved, answer.distance)
                return
            before, bound = bound, max(bound, answer.distance)
            if bound >= self._radius * (1 - _CLOSED):
                return
            known = _Node(bound, next(counter), index, signs, answer.point, answer.distance)
            if unbounded or bound < before * _WORTHWHILE:
                break
        if known is not None:
            heapq.heappush(heap, known)

    def _improve(self, index: int, on: BoolArray) -> None:
        """Look for a better perturbation, given a guess of which challengers are on.

        Repeat with those that are on where it ends, until nothing changes.
        """
        while True:
            total = self._pieces.total(self._contests[index].challengers[on])
            answer = self._pieces.nearest_win(index, total, cutoff=self._radius)
            if answer.point is None:
                return
            norm = float(np.linalg.norm(answer.point))
            if norm >= self._radius or not self._pieces.has_interior(index, on):
                return
            self._best, self._radius = answer.point, norm
            now = self._challengers_on(index, answer.point)
            if (now == on).all():
                return
            on = now

    def _challengers_on(self, index: int, point: FloatArray, slack: float = 0.0) -> BoolArray:
        """Return which challengers are on at a point, or (with slack) nearly so."""
        challengers = self._contests[index].challengers
        now = self._z[challengers] + self._pieces.V[challengers] @ point
        return now > -slack * self._pieces.norms[challengers]

    def _cap(self, node: _Node | None) -> Cap:
        """Return where something better than the best can be, in a node."""
        length = 0.0 if node is None else float(np.linalg.norm(node.point))
        if node is None or length == 0 or np.isinf(self._radius):
            return Cap(self._radius)
        return Cap(self._radius, node.point / length, node.distance)

    def _found(self, bound: float) -> Found:
        unit = self._pieces.unit
        point = None if self._best is None else self._best * unit
        return Found(min(bound, self._radius) * unit, self._radius * unit, point)


def _kink_distance(z: FloatArray, weights: FloatArray) -> float:
    """Return the typical distance to where a neuron switches on or off."""
    norms = np.linalg.norm(weights, axis=1)
    live = norms > 0
    distance = float(np.median(np.abs(z[live]) / norms[live])) if live.any() else 1.0
    return distance if distance > 0 else 1.0

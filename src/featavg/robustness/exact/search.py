"""Branch and bound for the nearest point at which one output overtakes others."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.robustness.exact.contest import PointProblem
from featavg.robustness.exact.geometry import Cap, Euclidean, Geometry
from featavg.robustness.exact.nearest import FAR
from featavg.robustness.exact.nodes import Budget, Found, Node
from featavg.robustness.exact.patterns import PatternState, best_patterns, weights_at
from featavg.robustness.exact.pieces import MARGIN, Pieces
from featavg.robustness.exact.proof import Proof, ProofNode, Round, Weights

# How near the bound has to come to the best perturbation for the search to end.
CLOSED = 1e-9
# How near to its kink a challenger is taken to be at it.
_AT_KINK = 1e-9
# In units of the radius, how far from a win a perturbation may be that is taken for one. Where
# weights of very different sizes meet, rounding alone makes solutions miss by so much.
_NEARLY_WON = 1e-6
# How often a node's bound is improved, and by which factor each time for another try.
_ROUNDS = 4
_WORTHWHILE = 1.02
# A radius smaller or larger than this, in its unit, is looked at again in another unit; and by how
# much the unit grows while nothing is found and nothing is proved, but not once it is as large as
# the distance that is proved. No more than this many units.
_TINY = 1e-4
_LARGE = 1e2
_FURTHER = 1e5
_BARELY = 10.0
_UNITS = 8
# The relaxation over all patterns is worth its time from this many undecided neurons on.
_MANY = 4
_FEW = 20


class ContestSearch:
    r"""Find the nearest point at which some contest is won.

    Paper: none, an extension.

    In a node each challenger is on, off or undecided. Undecided ones are relaxed by the chord of
    the relu over what they can reach, which gives a bound. Something better than the best
    perturbation so far lies in its ball and beyond the plane that proves the node's bound, so the
    bound narrows the reach, and the chords give a better bound. Where many are undecided, the
    relaxation of `featavg.robustness.exact.shor` bounds all their patterns at once. The node of the
    smallest bound is split at the challenger whose chord is furthest from its relu.

    Bounds are those of the closed problem, with >=. A strict contest counts as won only where its
    linear piece has an interior; then the infimum of the open set is the minimum of its closure.

    Parameters
    ----------
    problem : PointProblem
        The point, and the ways to turn its decision.
    geometry : Geometry
        The norm, and where perturbations may be.
    """

    def __init__(self, problem: PointProblem, geometry: Geometry) -> None:
        self._problem, self._geometry, self._contests = problem, geometry, problem.contests
        self._best: FloatArray | None = None
        self._radius = self._unproved = np.inf
        self._use_unit(kink_distance(problem, geometry))
        self._guess()
        self._rescale()

    def run(self, budget: Budget) -> Found:
        """Return the radius: both bounds equal up to rounding, unless the budget is spent."""
        has_grown = False
        for _ in range(_UNITS):
            bound = self._explore(budget)
            if self._radius < _TINY:  # what looks like this may be rounding
                unit = self._pieces.unit * max(self._radius, _TINY)
            elif _LARGE < self._radius < np.inf:  # tolerances are relative to the unit
                unit = self._pieces.unit * self._radius
            elif np.isinf(self._radius) and np.isfinite(self._unproved):
                # nothing within what this unit can resolve
                unit = min(self._pieces.unit * _FURTHER, self._geometry.extent)
                if unit <= self._pieces.unit or (has_grown and self._unproved < _BARELY):
                    return self._found(bound)
                has_grown = True
            else:
                return self._found(bound)
            self._best, self._radius, self._unproved = None, np.inf, np.inf
            self._use_unit(unit)
            self._guess()
        return self._found(min(self._explore(budget), self._unproved))

    def length(self, point: FloatArray) -> float:
        """Return the norm of a perturbation."""
        return self._geometry.length(point)

    def is_nearly_won(self, point: FloatArray) -> bool:
        """Return whether some contest is won or drawn at a perturbation, up to rounding."""
        near = point / self._pieces.unit
        contests = range(len(self._contests))
        return any(self._pieces.wins(i, near, slack=_NEARLY_WON) for i in contests)

    def inner_points(self, point: FloatArray, stretch: float) -> Iterator[FloatArray]:
        """Yield perturbations close to `point` that should win as they are and stretched.

        `point` lies on the boundary. Of the linear pieces that meet there, those that are on a
        little further out are tried first; then those that are on a little to the side.
        """
        pieces = self._pieces
        near = point / pieces.unit
        aside = np.random.default_rng(0).standard_normal((8, len(point)))
        aside *= 1e-6 * max(self._radius, 1.0) / np.sqrt(np.square(aside).sum(axis=1))[:, None]
        won = [i for i in range(len(self._contests)) if pieces.wins(i, near, slack=1e-6)]
        for factor, margin in ((stretch, 1.0), (1.0, 1.0), (1.0, 1e-2), (1.0, 1e-4)):
            for start in (near * stretch, near, *(near + aside)):
                for index, slack in itertools.product(won, (0.0, 1e-6)):
                    on = self._challengers_on(index, start, slack)
                    margins = np.full(len(self._contests[index].leads), margin * MARGIN)
                    total = pieces.total(index, on)
                    win = pieces.nearest_win(index, total, margins=margins, stretch=factor)
                    if win.nearest.point is not None:
                        yield win.nearest.point * pieces.unit

    # --- setting out

    def _use_unit(self, unit: float) -> None:
        self._pieces = Pieces(self._problem, self._geometry, unit)
        self._log: list[ProofNode] = []

    def _rescale(self) -> None:
        """Make the best radius the unit, and look again where it was far from it."""
        if self._best is None or self._radius == 0:
            return
        is_near = _TINY <= self._radius <= _LARGE
        self._use_unit(self._pieces.unit * self._radius)
        if is_near:
            self._best, self._radius = self._best / self._radius, 1.0
        else:  # tolerances are relative to the unit: this may not be a win, nor the nearest one
            self._best, self._radius = None, np.inf
            self._guess()

    def _guess(self) -> None:
        """Look for a first perturbation: all challengers on; else one of them, or none."""
        for index, contest in enumerate(self._contests):
            who = contest.challengers
            self._improve(index, (self._pieces.norms[who] > 0) | (self._problem.z[who] > 0))
        if self._best is None:
            for index, contest in enumerate(self._contests):
                size = len(contest.challengers)
                for on in (*np.eye(size, dtype=bool), np.zeros(size, dtype=bool)):
                    self._improve(index, on)

    # --- exploring

    def _explore(self, budget: Budget) -> float:
        """Work through the nodes and return a bound: the radius itself if all are done."""
        heap: list[Node] = []
        self._log.clear()
        self._proved = np.inf
        self._tries: list[bool] = []
        for index, contest in enumerate(self._contests):
            undecided = np.zeros(len(contest.challengers), dtype=np.int64)
            self._push(heap, index, undecided, None)
        visited = 0
        while heap and heap[0].bound < self._radius * (1 - CLOSED):
            if budget.is_spent(visited):
                break
            visited += 1
            node = heapq.heappop(heap)
            if node.use_patterns and self._worth_patterns(visited):
                heapq.heappush(heap, self._bound_patterns(node))
                continue
            for signs, split in self._branches(node):
                self._push(heap, node.contest, signs, node, split)
        return min(self._proved, heap[0].bound if heap else np.inf)

    def _worth_patterns(self, visited: int) -> bool:
        """Return whether to try the relaxation over all patterns on the next node.

        Not where few nodes will do, nor where it has hardly ever been better of late.
        """
        if not isinstance(self._geometry, Euclidean) or np.isinf(self._radius) or visited < _FEW:
            return False
        recent = self._tries[-20:]
        return len(recent) < 20 or sum(recent) >= 4 or visited % 50 == 0

    def _branches(self, node: Node) -> Iterator[tuple[IntArray, int]]:
        """Yield the parts of a node, after learning what its relaxed solution teaches."""
        index = node.contest
        on = self._challengers_on(index, node.point)
        norm = self._pieces.geometry.length(node.point)
        # where a challenger is at its kink, the node says on which side of it to look
        at_kink = self._challengers_on(index, node.point, slack=_AT_KINK)
        sides = on | (at_kink & (node.signs == 1))
        if self._pieces.wins(index, node.point) and (
            self._pieces.has_interior(index, on) or self._pieces.has_interior(index, sides)
        ):
            if norm < self._radius:
                self._best, self._radius = node.point, norm
            self._close(node.bound)
            return
        self._improve(index, on)
        if not (node.signs == 0).any():
            self._improve(index, node.signs == 1)
            if not self._is_drawn(node):
                self._close(node.bound)
            return
        challengers = self._contests[index].challengers
        now = self._pieces.z[challengers] + self._pieces.V[challengers] @ node.point
        if np.isinf(self._furthest):
            gap: FloatArray = np.ones(len(challengers))
        else:
            reach = self._pieces.reach(challengers, self._cap(node))
            gap = self._pieces.chord_gaps(index, now, *reach)
        gap[node.signs != 0] = -np.inf
        split = int(np.argmax(gap))
        for side in (1, -1):
            signs = node.signs.copy()
            signs[split] = side
            yield signs, split

    def _close(self, bound: float) -> None:
        """Take down what is proved about a node that needs no more work."""
        if bound <= self._pieces.geometry.extent:  # there is nothing further away
            self._proved = min(self._proved, bound)

    def _is_drawn(self, node: Node) -> bool:
        """Return whether a fully decided node, which cannot be won, is at most drawn.

        A node that could be won by less than this arithmetic can tell is not, and counts.
        """
        pieces, index = self._pieces, node.contest
        if not self._contests[index].strict.any():
            return False
        total = pieces.total(index, node.signs == 1)
        win = pieces.nearest_win(index, total, margins=MARGIN * self._contests[index].strict)
        if win.nearest.point is not None:
            return False
        weights = pieces.weights(index, win, np.zeros(0, dtype=np.int64))
        if not pieces.is_thin(total, weights):
            return False
        self._log[node.order].drawn = weights
        return True

    def _push(
        self,
        heap: list[Node],
        index: int,
        signs: IntArray,
        parent: Node | None,
        split: int = -1,
    ) -> None:
        """Bound a node and keep it if it can hold something better than the best.

        Each bound narrows what the challengers can reach, and so gives a better one: the first
        comes from the parent, the others from the node itself.
        """
        pieces, challengers = self._pieces, self._contests[index].challengers
        decided = np.flatnonzero((signs != 0) & (pieces.norms[challengers] > 0))
        extra = pieces.sign_rows(challengers[decided], signs[decided]) if len(decided) else None
        side = 0 if parent is None else int(signs[split])
        log = ProofNode(index, -1 if parent is None else parent.order, split, side)
        order = len(self._log)
        self._log.append(log)
        known, bound, plane = parent, 0.0, 0.0
        if parent is not None:
            bound, plane = parent.bound, parent.distance
        unbounded = np.isinf(self._furthest) and bool((signs == 0).any())
        for _ in range(_ROUNDS):
            if unbounded:  # nothing limits the undecided ones yet: only their signs are known
                answer = pieces.nearest_signs(extra)
                signs_only = pieces.sign_weights(index, answer, decided)
                log.rounds.append(Round(signs_only, np.inf))
            else:
                reach = pieces.reach(challengers, self._cap(known))
                total = pieces.relaxed_total(index, signs, *reach)
                win = pieces.nearest_win(index, total, cutoff=self._radius, extra=extra)
                answer = win.nearest
                log.rounds.append(Round(pieces.weights(index, win, decided), self._furthest))
            if answer.point is None:
                if answer.distance <= pieces.geometry.extent and not answer.is_final:
                    self._unproved = min(self._unproved, answer.distance)
                self._close(max(bound, answer.distance))
                return
            bound = max(bound, answer.distance)
            if bound >= self._radius * (1 - CLOSED):
                self._close(bound)
                return
            known = Node(bound, order, index, signs, answer.point, answer.normal, answer.plane)
            known.patterns = None if parent is None else parent.patterns
            if unbounded or answer.distance < plane * _WORTHWHILE:
                break
            plane = answer.distance
        if known is not None:
            heapq.heappush(heap, known)

    def _bound_patterns(self, node: Node) -> Node:
        """Return a node with the bound over all patterns of its undecided challengers."""
        pieces, index = self._pieces, node.contest
        reach = pieces.reach(self._contests[index].challengers, self._cap(node))
        free = (node.signs == 0) & (reach[0] < 0) & (reach[1] > 0)
        log = self._log[node.order]
        if free.sum() < _MANY or not log.rounds:
            return replace(node, use_patterns=False)
        starts: list[PatternState | Weights] = [log.rounds[-1].weights]
        if node.patterns is not None:
            starts = [node.patterns]
        elif self._best is not None:
            starts.append(weights_at(pieces, index, self._best))
        goal = self._radius * (1 - CLOSED / 4)
        found = best_patterns(pieces, index, node.signs, reach, starts, self._furthest, goal)
        if found is None:
            self._tries.append(False)
            return replace(node, use_patterns=False)
        self._improve(index, found.on)
        self._tries.append(found.bound > node.bound)
        if found.bound > node.bound:
            log.patterns = found.proof
        bound = max(found.bound, node.bound)
        return replace(node, bound=bound, patterns=found.state, use_patterns=False)

    def _improve(self, index: int, on: BoolArray) -> None:
        """Look for a better perturbation, given a guess of which challengers are on.

        Repeat with those that are on where it ends, until nothing changes.
        """
        while True:
            total = self._pieces.total(index, on)
            point = self._pieces.nearest_win(index, total, cutoff=self._radius).nearest.point
            if point is None:
                return
            norm = self._pieces.geometry.length(point)
            if norm >= self._radius or not self._pieces.has_interior(index, on):
                return
            # what is far away is looked for again in a unit in which this can be told
            if norm <= _LARGE and not self._pieces.wins(index, point, slack=_NEARLY_WON):
                return
            self._best, self._radius = point, norm
            now = self._challengers_on(index, point)
            if (now == on).all():
                return
            on = now

    def _challengers_on(self, index: int, point: FloatArray, slack: float = 0.0) -> BoolArray:
        """Return which challengers are on at a point, or (with slack) nearly so."""
        challengers = self._contests[index].challengers
        now = self._pieces.z[challengers] + self._pieces.V[challengers] @ point
        return now > -slack * self._pieces.norms[challengers]

    def _cap(self, node: Node | None) -> Cap:
        """Return where something better than the best can be, in a node."""
        if node is None or node.normal is None or self._furthest > FAR:
            return Cap(self._furthest)
        return Cap(self._furthest, node.normal, node.distance)

    @property
    def _furthest(self) -> float:
        """The norm of the furthest perturbation of interest: allowed, and better than the best."""
        return min(self._radius, self._pieces.geometry.extent)

    def _found(self, bound: float) -> Found:
        unit = self._pieces.unit
        point = None if self._best is None else self._best * unit
        proof = Proof(unit, tuple(self._log))
        return Found(min(bound, self._radius) * unit, self._radius * unit, point, proof)


def kink_distance(problem: PointProblem, geometry: Geometry) -> float:
    """Return the typical distance to where a neuron switches on or off."""
    norms = geometry.dual_length(problem.weights)
    live = norms > 0
    distance = float(np.median(np.abs(problem.z[live]) / norms[live])) if live.any() else 1.0
    return distance if distance > 0 else 1.0

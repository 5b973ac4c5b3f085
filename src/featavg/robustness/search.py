"""Branch and bound for the nearest point at which one group of neurons overtakes others."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from featavg._checks import BoolArray, FloatArray, IntArray
from featavg.robustness.leastdistance import NearestPoint, nearest_point

# In units of the radius: how far a strict inequality keeps from equality, how near the bound has
# to come to the best perturbation for the search to end, and what is taken for rounding.
_STRICT = 1e-8
_CLOSED = 1e-9
_ROUNDING = 1e-10
# How often a node's bound is improved, and by which factor each time for another try.
_ROUNDS = 4
_WORTHWHILE = 1.02
# Relative to the largest weight: below this a difference of weights is no difference.
_CONSTANT = 1e-13


@dataclass(frozen=True, eq=False)
class Contest:
    r"""One way for a decision to be turned: a group of neurons overtakes each of its rivals.

    The rivals are groups of neurons too. The contest is won where, with the pre-activations u,

    .. math:: \sum_{r \in G} \mathrm{relu}(u_r) \le \mathrm{lead}
              + \sum_{r \in O} \mathrm{relu}(u_r) \quad\text{for each rival } G

    (with < if `strict`), O being the challengers.
    """

    challengers: IntArray
    rivals: tuple[IntArray, ...]
    strict: bool
    lead: float = 0.0


@dataclass(frozen=True, eq=False)
class Found:
    """The answer of a search: bounds of the radius, and a perturbation of the upper one."""

    lower: float
    upper: float
    point: FloatArray | None


@dataclass(order=True)
class _Node:
    """A part of the search space: challengers that are on (+1), off (-1) or undecided (0)."""

    bound: float
    order: int
    contest: int = field(compare=False)
    signs: IntArray = field(compare=False)
    point: FloatArray = field(compare=False)


class ContestSearch:
    r"""Find the nearest point at which some contest is won.

    Paper: none, an extension.

    The relus of the rivals are convex: :math:`\sum_G \mathrm{relu}(u_r)` is the largest of the
    linear sums :math:`\sum_T u_r` over subsets T of G, added as cuts when they are violated. The
    relus of the challengers are on the wrong side for convexity; each is on, off or undecided. An
    undecided one is replaced by the chord of the relu over what it can reach within the radius of
    the best perturbation so far, which is a relaxation and gives a bound. The node of the smallest
    bound is split at the challenger whose chord is furthest from its relu.

    Distances are in a unit that makes the radius of order 1, so the answer does not depend on the
    scale of the weights.

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
        norms = np.linalg.norm(weights, axis=1)
        self._z, self._contests = z, contests
        self._best: FloatArray | None = None
        self._radius = np.inf
        if incumbent is not None:
            self._use_unit(weights, norms, float(np.linalg.norm(incumbent)))
            self._best, self._radius = incumbent / self._unit, 1.0
            self._polish(self._best)
            return
        self._use_unit(weights, norms, _kink_distance(z, norms))
        self._guess()
        if self._best is not None and self._radius > 0:
            self._use_unit(weights, norms, self._unit * self._radius)
            self._best, self._radius = self._best / self._radius, 1.0

    def run(self, max_nodes: int) -> Found:
        """Return the radius: both bounds equal, unless more than `max_nodes` would be needed."""
        counter = itertools.count()
        heap: list[_Node] = []
        for index, contest in enumerate(self._contests):
            undecided = np.zeros(len(contest.challengers), dtype=np.int64)
            self._push(heap, counter, index, undecided, None)
        for visited in itertools.count():
            if not heap or heap[0].bound >= self._radius * (1 - _CLOSED):
                return self._found(self._radius)
            if visited >= max_nodes:
                return self._found(heap[0].bound)
            node = heapq.heappop(heap)
            for signs in self._branches(node):
                self._push(heap, counter, node.contest, signs, node)
        raise AssertionError  # the loop above has no other end

    def inner_point(self, point: FloatArray, stretch: float) -> FloatArray | None:
        """Return the nearest perturbation that wins as it is and stretched, close to `point`.

        `point` lies on the boundary. Of the linear pieces that meet there, those that are on a
        little further out are tried first.
        """
        for factor in (stretch, 1.0):
            u = self._z + self._V @ (point * factor / self._unit)
            for index, contest in enumerate(self._contests):
                if not self._won(contest, u, slack=1e-7):
                    continue
                slope, offset = self._total(contest.challengers[u[contest.challengers] > 0])
                answer = self._nearest_win(index, slope, offset, stretch=stretch)
                if answer.point is not None:
                    return answer.point * self._unit
        return None

    # --- setting out

    def _use_unit(self, weights: FloatArray, norms: FloatArray, unit: float) -> None:
        self._unit = unit
        self._V, self._norms = weights * unit, norms * unit
        # to begin with, no neuron of a rival, and those that are on at the point itself
        self._cuts: list[list[BoolArray]] = [
            [np.stack([np.zeros(len(g), dtype=bool), self._z[g] > 0]) for g in contest.rivals]
            for contest in self._contests
        ]

    def _guess(self) -> None:
        """Look for a first perturbation: all challengers on; else one of them, or none."""
        for index, contest in enumerate(self._contests):
            self._improve(index, np.ones(len(contest.challengers), dtype=bool))
        if self._best is None:
            for index, contest in enumerate(self._contests):
                size = len(contest.challengers)
                for on in (*np.eye(size, dtype=bool), np.zeros(size, dtype=bool)):
                    self._improve(index, on)

    def _polish(self, best: FloatArray) -> None:
        """Move the best perturbation to the nearest point of its own linear piece."""
        u = self._z + self._V @ best
        for index, contest in enumerate(self._contests):
            if self._won(contest, u, slack=1e-7):
                self._improve(index, u[contest.challengers] > 0)

    # --- nodes

    def _branches(self, node: _Node) -> Iterator[IntArray]:
        """Yield the parts of a node, after learning what its relaxed solution teaches."""
        contest = self._contests[node.contest]
        u = self._z + self._V @ node.point
        if self._won(contest, u):
            self._best, self._radius = node.point, node.bound
            return
        now = u[contest.challengers]
        self._improve(node.contest, now > 0)
        gap = self._chords(contest.challengers, now, node) - np.maximum(now, 0)
        gap[node.signs != 0] = -np.inf
        split = int(np.argmax(gap))
        if node.signs[split] != 0:
            return
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
        challengers = self._contests[index].challengers
        decided = (signs != 0) & (self._norms[challengers] > 0)
        side = signs[decided]
        limits = side * self._z[challengers[decided]]
        extra = (-side[:, None] * self._V[challengers[decided]], limits)
        if np.isinf(self._radius) and (signs == 0).any():  # nothing bounds the undecided ones yet
            answer = _nearest(extra[0][:0], limits[:0], np.inf, extra=extra)
            if answer.point is not None:
                node = _Node(answer.distance, next(counter), index, signs, answer.point)
                heapq.heappush(heap, node)
            return
        known = parent
        for _ in range(_ROUNDS):
            slope, offset = self._relaxed_total(challengers, signs, known)
            answer = self._nearest_win(index, slope, offset, extra=extra)
            if answer.point is None or answer.distance >= self._radius * (1 - _CLOSED):
                return
            before = 0.0 if known is None else known.bound
            node = _Node(max(answer.distance, before), next(counter), index, signs, answer.point)
            known = node
            if node.bound < before * _WORTHWHILE:
                break
        heapq.heappush(heap, node)

    def _improve(self, index: int, on: BoolArray) -> None:
        """Look for a better perturbation, given a guess of which challengers are on.

        Repeat with those that are on where it ends, until nothing changes.
        """
        contest = self._contests[index]
        while True:
            slope, offset = self._total(contest.challengers[on])
            answer = self._nearest_win(index, slope, offset)
            if answer.point is None or np.linalg.norm(answer.point) >= self._radius:
                return
            self._best, self._radius = answer.point, float(np.linalg.norm(answer.point))
            now = self._z[contest.challengers] + self._V[contest.challengers] @ answer.point > 0
            if (now == on).all():
                return
            on = now

    # --- the relus of the challengers

    def _total(self, on: IntArray) -> tuple[FloatArray, float]:
        """Return the sum of these pre-activations as a linear function: slope and offset."""
        return self._V[on].sum(axis=0), float(self._z[on].sum())

    def _reach(self, challengers: IntArray, node: _Node | None) -> tuple[FloatArray, FloatArray]:
        r"""Return the smallest and largest pre-activation of anything better in a node.

        It lies in the ball of the best radius R, and beyond the plane that proves the node's
        bound :math:`\varrho`: :math:`\langle g, v\rangle \ge \varrho` with g the direction of the
        node's solution. Over this cap, with :math:`a = \langle w, g\rangle` and b the norm of the
        rest of w, the largest :math:`\langle w, v\rangle` is that of
        :math:`a t + b\sqrt{R^2 - t^2}` over :math:`\varrho \le t \le R`.
        """
        z, V, norms = self._z[challengers], self._V[challengers], self._norms[challengers]
        R = self._radius
        length = 0.0 if node is None else float(np.linalg.norm(node.point))
        if node is None or length == 0:
            return z - R * norms, z + R * norms
        a = V @ (node.point / length)
        b = np.sqrt(np.maximum(np.square(norms) - np.square(a), 0))
        nearest = min(node.bound, R)
        safe = np.where(norms > 0, norms, 1.0)
        ends = []
        for sign in (-1, 1):
            t = np.clip(R * sign * a / safe, nearest, R)
            ends.append(sign * (sign * a * t + b * np.sqrt(np.maximum(R**2 - t**2, 0))))
        return z + ends[0], z + ends[1]

    def _relaxed_total(
        self, challengers: IntArray, signs: IntArray, node: _Node | None
    ) -> tuple[FloatArray, float]:
        """Return a linear function that is nowhere in the node below the challengers' total."""
        if np.isinf(self._radius):  # every challenger is decided
            return self._total(challengers[signs == 1])
        low, high = self._reach(challengers, node)
        on = (signs == 1) | ((signs == 0) & (low >= 0))
        chord = (signs == 0) & (low < 0) & (high > 0)
        factor = on.astype(np.float64)
        factor[chord] = high[chord] / (high[chord] - low[chord])
        offset = float(factor @ self._z[challengers] - factor[chord] @ low[chord])
        return factor @ self._V[challengers], offset

    def _chords(self, challengers: IntArray, now: FloatArray, node: _Node) -> FloatArray:
        """Return the chord of each challenger's relu at its pre-activation."""
        if np.isinf(self._radius):
            return np.full(len(challengers), np.inf)
        low, high = self._reach(challengers, node)
        value = np.maximum(now, 0)
        chord = (low < 0) & (high > 0)
        value[chord] = (high * (now - low))[chord] / (high - low)[chord]
        return value

    # --- the relus of the rivals

    def _nearest_win(
        self,
        index: int,
        slope: FloatArray,
        offset: float,
        *,
        extra: tuple[FloatArray, FloatArray] | None = None,
        stretch: float | None = None,
    ) -> NearestPoint:
        """Minimise the norm where each rival's total is at most lead + slope·v + offset.

        With `stretch`, the inequalities are strict and hold for the stretched point too.
        """
        contest, cuts = self._contests[index], self._cuts[index]
        while True:
            rows = [c @ self._V[g] - slope for c, g in zip(cuts, contest.rivals, strict=True)]
            limits = [
                contest.lead + offset - c @ self._z[g]
                for c, g in zip(cuts, contest.rivals, strict=True)
            ]
            answer = _nearest(
                np.concatenate(rows),
                np.concatenate(limits),
                self._radius if stretch is None else np.inf,
                strict=contest.strict,
                extra=extra,
                stretch=stretch,
            )
            if answer.point is None:
                return answer
            added = self._add_cuts(index, answer.point, slope, offset)
            if stretch is not None:
                added |= self._add_cuts(index, answer.point * stretch, slope, offset)
            if not added:
                return answer

    def _add_cuts(self, index: int, point: FloatArray, slope: FloatArray, offset: float) -> bool:
        """Add the sum of each rival's active neurons where it is violated and new."""
        contest, cuts = self._contests[index], self._cuts[index]
        u = self._z + self._V @ point
        total = contest.lead + offset + float(slope @ point)
        added = False
        for g, group in enumerate(contest.rivals):
            active = u[group] > 0
            excess = float(u[group][active].sum()) - total
            norm = float(np.linalg.norm(active @ self._V[group] - slope))
            allowed = _ROUNDING * norm
            if contest.strict:
                allowed = -_STRICT / 2 * norm - _CONSTANT * float(self._norms.max())
            if excess > allowed and not (cuts[g] == active).all(axis=1).any():
                cuts[g] = np.vstack([cuts[g], active])
                added = True
        return added

    def _won(self, contest: Contest, u: FloatArray, slack: float | None = None) -> bool:
        """Return whether a contest is won at u: strictly if it has to be, else up to rounding."""
        if slack is None:
            slack = -_STRICT / 2 if contest.strict else _ROUNDING
        on = contest.challengers[u[contest.challengers] > 0]
        for group in contest.rivals:
            active = group[u[group] > 0]
            row = self._V[active].sum(axis=0) - self._V[on].sum(axis=0)
            excess = float(u[active].sum() - u[on].sum()) - contest.lead
            if excess > slack * float(np.linalg.norm(row)) or (slack < 0 and excess >= 0):
                return False
        return True

    def _found(self, bound: float) -> Found:
        point = None if self._best is None else self._best * self._unit
        return Found(min(bound, self._radius) * self._unit, self._radius * self._unit, point)


def _kink_distance(z: FloatArray, norms: FloatArray) -> float:
    """Return the typical distance to where a neuron switches on or off."""
    live = norms > 0
    distance = float(np.median(np.abs(z[live]) / norms[live])) if live.any() else 1.0
    return distance if distance > 0 else 1.0


def _nearest(
    rows: FloatArray,
    limits: FloatArray,
    cutoff: float,
    *,
    strict: bool = False,
    extra: tuple[FloatArray, FloatArray] | None = None,
    stretch: float | None = None,
) -> NearestPoint:
    """Scale the rows to norm 1, tighten the limits of all but the extra ones, and solve."""
    norms = np.linalg.norm(rows, axis=1)
    largest = norms.max(initial=0.0)
    constant = norms <= _CONSTANT * largest
    least = _CONSTANT * largest if strict else -_CONSTANT * largest
    if (limits[constant] < least).any() or (strict and (limits[constant] <= 0).any()):
        return NearestPoint(None, np.inf)
    kept = ~constant
    rows, limits = rows[kept] / norms[kept, None], limits[kept] / norms[kept]
    if stretch is not None:
        limits = np.minimum(limits, limits / stretch)
    if strict or stretch is not None:
        limits = limits - _STRICT
    if extra is not None:
        norms = np.linalg.norm(extra[0], axis=1)
        rows = np.concatenate([rows, extra[0] / norms[:, None]])
        limits = np.concatenate([limits, extra[1] / norms])
    return nearest_point(rows, limits, cutoff)

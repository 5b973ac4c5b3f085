"""The smallest adversarial perturbation itself, by branch and bound over linear pieces."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field

import numpy as np

from featavg._checks import FloatArray, IntArray
from featavg.robustness.leastdistance import NearestPoint, nearest_point

# In units of the radius: how far a strict inequality keeps from equality, and how near the bound
# has to come to the best perturbation for the search to end.
_STRICT = 1e-9
_CLOSED = 1e-9
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Contest:
    r"""One way for a decision to be turned: a group of neurons overtakes every one of its rivals.

    The rivals are groups of neurons too. The contest is won where, with the pre-activations u,

    .. math:: \sum_{r \in G} \mathrm{relu}(u_r) \le \sum_{r \in O} \mathrm{relu}(u_r)
              \quad\text{for each rival } G

    (with < if `strict`), O being the challengers.
    """

    challengers: IntArray
    rivals: tuple[IntArray, ...]
    strict: bool


@dataclass(frozen=True)
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

    Parameters
    ----------
    weights : array of shape (neurons, span)
        The weights in an orthonormal basis of their span.
    contests : sequence of Contest
        The ways to turn the decision.
    max_nodes : int
        After how many nodes to give up on closing the gap between the bounds.
    """

    def __init__(self, weights: FloatArray, contests: tuple[Contest, ...], max_nodes: int) -> None:
        self._weights = weights
        self._norms = np.linalg.norm(weights, axis=1)
        self._contests = contests
        self._max_nodes = max_nodes

    def run(self, z: FloatArray) -> Found:
        """Search around a point with the pre-activations z."""
        known = self._norms > 0
        distances = np.abs(z[known]) / self._norms[known]
        unit = float(np.median(distances)) if known.any() else 1.0
        unit = unit if unit > 0 else 1.0
        guess = _PointSearch(self, z, unit).incumbent()
        if guess is not None:  # from now on the radius is of order 1
            unit *= float(np.linalg.norm(guess))
        return _PointSearch(self, z, unit).run()


class _PointSearch:
    """The search around one point, with distances in a unit that makes them of order 1."""

    def __init__(self, search: ContestSearch, z: FloatArray, unit: float) -> None:
        self._contests, self._max_nodes = search._contests, search._max_nodes
        self._unit = unit
        self._V = search._weights * unit
        self._norms = search._norms * unit
        self._z = z
        self._best: FloatArray | None = None
        self._radius = np.inf
        self._cuts = [
            [np.zeros((1, len(group)), dtype=bool) for group in contest.rivals]
            for contest in self._contests
        ]

    def incumbent(self) -> FloatArray | None:
        """Return a perturbation that wins some contest, if simple guesses find one."""
        for index, contest in enumerate(self._contests):
            everyone = np.ones(len(contest.challengers), dtype=bool)
            self._improve(index, everyone)
        if self._best is None:
            for index, contest in enumerate(self._contests):
                for one in np.eye(len(contest.challengers), dtype=bool):
                    self._improve(index, one)
                if not contest.strict:
                    self._improve(index, np.zeros(len(contest.challengers), dtype=bool))
        return self._best

    def run(self) -> Found:
        """Return the radius: both bounds equal, unless the search was cut short."""
        self.incumbent()
        counter = itertools.count()
        heap: list[_Node] = []
        for index, contest in enumerate(self._contests):
            signs = np.zeros(len(contest.challengers), dtype=np.int64)
            self._push(heap, counter, index, signs)
        nodes = 0
        while heap and heap[0].bound < self._radius * (1 - _CLOSED):
            if nodes >= self._max_nodes:
                return self._found(heap[0].bound)
            nodes += 1
            node = heapq.heappop(heap)
            contest = self._contests[node.contest]
            u = self._z + self._V @ node.point
            if self._won(contest, u):
                self._best, self._radius = node.point, node.bound
                continue
            challengers = contest.challengers
            self._improve(node.contest, u[challengers] > 0)
            undecided = node.signs == 0
            gap = self._upper_relu(challengers, u) - np.maximum(u[challengers], 0)
            split = int(np.argmax(np.where(undecided, gap, -np.inf)))
            if not undecided[split]:
                continue
            for sign in (1, -1):
                signs = node.signs.copy()
                signs[split] = sign
                self._push(heap, counter, node.contest, signs)
        return self._found(self._radius)

    def _found(self, bound: float) -> Found:
        lower = min(bound, self._radius) * self._unit
        point = None if self._best is None else self._best * self._unit
        return Found(lower, self._radius * self._unit, point)

    def _push(
        self, heap: list[_Node], counter: itertools.count[int], index: int, signs: IntArray
    ) -> None:
        """Bound a node and keep it if it can hold something better than the best."""
        challengers = self._contests[index].challengers
        sign_rows = -signs[signs != 0, None] * self._V[challengers[signs != 0]]
        sign_limits = signs[signs != 0] * self._z[challengers[signs != 0]]
        if np.isinf(self._radius) and (signs == 0).any():
            answer = _nearest(sign_rows, sign_limits, self._radius)
        else:
            slope, offset = self._relaxed_total(challengers, signs)
            answer = self._nearest_win(index, slope, offset, (sign_rows, sign_limits))
        if answer.point is not None and answer.distance < self._radius * (1 - _CLOSED):
            heapq.heappush(heap, _Node(answer.distance, next(counter), index, signs, answer.point))

    def _relaxed_total(self, challengers: IntArray, signs: IntArray) -> tuple[FloatArray, float]:
        """Return a linear function that is nowhere in the node below the challengers' total."""
        z, V, norms = self._z[challengers], self._V[challengers], self._norms[challengers]
        reach = np.where(norms > 0, norms * min(self._radius, 1e12), 0.0)
        low, high = z - reach, z + reach
        on = (signs == 1) | ((signs == 0) & (low >= 0))
        chord = (signs == 0) & (low < 0) & (high > 0)
        factor = np.where(on, 1.0, np.where(chord, high / np.where(chord, high - low, 1.0), 0.0))
        offset = np.where(chord, -factor * low, 0.0)
        return factor @ V, float(factor @ z + offset.sum())

    def _upper_relu(self, challengers: IntArray, u: FloatArray) -> FloatArray:
        """Return the chord of each challenger's relu, at u."""
        if np.isinf(self._radius):
            return np.full(len(challengers), np.inf)
        z, reach = self._z[challengers], self._norms[challengers] * self._radius
        low, high = z - reach, z + reach
        chord = (low < 0) & (high > 0)
        values = high * (u[challengers] - low) / np.where(chord, high - low, 1.0)
        return np.where(chord, values, np.maximum(u[challengers], 0))

    def _improve(self, index: int, on: np.ndarray) -> None:
        """Look for a better perturbation, given a guess of which challengers are on.

        Repeat with those that are on where it ends, until nothing changes.
        """
        contest = self._contests[index]
        while True:
            if contest.strict and not on.any():
                return
            chosen = contest.challengers[on]
            slope, offset = self._V[chosen].sum(axis=0), float(self._z[chosen].sum())
            answer = self._nearest_win(index, slope, offset, None)
            if answer.point is None or answer.distance >= self._radius * (1 - _CLOSED):
                return
            self._best, self._radius = answer.point, float(np.linalg.norm(answer.point))
            now = self._z[contest.challengers] + self._V[contest.challengers] @ answer.point > 0
            if (now == on).all():
                return
            on = now

    def _nearest_win(
        self,
        index: int,
        slope: FloatArray,
        offset: float,
        extra: tuple[FloatArray, FloatArray] | None,
    ) -> NearestPoint:
        """Minimise the norm where each rival's total is at most slope·v + offset."""
        contest, cuts = self._contests[index], self._cuts[index]
        margin = _STRICT if contest.strict else 0.0
        while True:
            rows = [
                subset @ self._V[group] - slope
                for subset, group in zip(cuts, contest.rivals, strict=True)
            ]
            limits = [
                offset - subset @ self._z[group]
                for subset, group in zip(cuts, contest.rivals, strict=True)
            ]
            fixed = 0
            if extra is not None:
                rows.append(extra[0])
                limits.append(extra[1])
                fixed = len(extra[1])
            answer = _nearest(
                np.concatenate(rows), np.concatenate(limits), self._radius, margin, fixed
            )
            if answer.point is None:
                return answer
            u = self._z + self._V @ answer.point
            total = offset + float(slope @ answer.point)
            violated = False
            for g, group in enumerate(contest.rivals):
                active = u[group] > 0
                row = active @ self._V[group] - slope
                excess = float(u[group][active].sum()) - total
                if (
                    excess > _ROUNDING * float(np.linalg.norm(row))
                    and not (cuts[g] == active).all(axis=1).any()
                ):
                    cuts[g] = np.vstack([cuts[g], active])
                    violated = True
            if not violated:
                return answer

    def _won(self, contest: Contest, u: FloatArray) -> bool:
        """Return whether the contest is won at u, up to rounding (and strictly if it has to be)."""
        on = contest.challengers[u[contest.challengers] > 0]
        for group in contest.rivals:
            active = group[u[group] > 0]
            row = self._V[active].sum(axis=0) - self._V[on].sum(axis=0)
            excess = float(u[active].sum() - u[on].sum())
            slack = -_STRICT / 2 if contest.strict else _ROUNDING
            limit = slack * float(np.linalg.norm(row))
            if excess > limit or (contest.strict and excess >= 0):
                return False
        return True


def _nearest(
    rows: FloatArray, limits: FloatArray, cutoff: float, margin: float = 0.0, fixed: int = 0
) -> NearestPoint:
    """Scale the rows to norm 1, keep the first ones off equality by `margin`, and solve."""
    norms = np.linalg.norm(rows, axis=1)
    empty = norms <= 1e-14 * (norms.max() if len(norms) else 0.0)
    safe = np.where(empty, 1.0, norms)
    scaled = limits / safe
    scaled[: len(scaled) - fixed] -= margin
    if (limits[empty] < 0).any() or (
        margin > 0 and (limits[: len(limits) - fixed][empty[: len(limits) - fixed]] <= 0).any()
    ):
        return NearestPoint(None, np.inf)
    return nearest_point(
        np.ascontiguousarray((rows / safe[:, None])[~empty]), scaled[~empty], cutoff
    )

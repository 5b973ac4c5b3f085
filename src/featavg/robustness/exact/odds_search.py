"""Branch and bound for the nearest point at which the log-odds of two groups of outputs turn."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.robustness.exact.geometry import Cap, Euclidean
from featavg.robustness.exact.nearest import FAR, NearestPoint, Rows
from featavg.robustness.exact.nodes import Budget, Found
from featavg.robustness.exact.odds_parts import NO_BOUND, Cuts, OddsProblem, Part, Relaxation
from featavg.robustness.exact.odds_rows import LogOdds
from featavg.robustness.exact.odds_turns import nearest_silence, nearest_turn

# How near the bound has to come to the best perturbation for the search to end.
CLOSED = 1e-4
# How often a node's bound is improved, and by which part of the gap each time for another try.
_ROUNDS = 4
_WORTHWHILE = 0.2
# So many times cuts are added to a node, and so many are remembered for an opposing output.
_CUT_ROUNDS = 12
_MOST_CUTS = 48
# In units of the radius: by how much a cut has to be violated to be added, and what is at a kink.
_VIOLATED = 1e-6
_AT_KINK = 1e-9
# A set that is thinner than this is rounding, and one with a margin is thicker than that.
_DRAWN = 1e-12
_MARGIN = 1e-8
# A difference is split at the relaxed solution, but not nearer to an end than this part of it.
_END = 0.1
# What is lost by chords, in log-odds, that is nothing.
_TIGHT = 1e-12
# A radius smaller than this, in its unit, is looked at again with a smaller unit.
_TINY = 1e-3
_UNITS = 4


@dataclass(order=True)
class _Node:
    """A part of the space with a bound, where its relaxation is nearest, and a plane before it."""

    bound: float
    order: int
    part: Part = field(compare=False)
    relaxation: Relaxation = field(compare=False)
    point: FloatArray = field(compare=False)
    normal: FloatArray | None = field(compare=False)
    distance: float = field(compare=False)


class OddsSearch:
    r"""Find the nearest point at which :math:`\sum_P e^{f_j} \le \sum_Q e^{f_l}`.

    Paper: none, an extension.

    There is a first part of the space for each opposing output that may be the strongest one. Its
    relaxation, see `LogOdds`, is improved by cuts where its nearest point violates what it stands
    for. The bound narrows what can be reached within the ball of the best perturbation so far, and
    so improves the chords. The part of the smallest bound is split where its chords lose the most:
    into a neuron being on or off, or at a difference of two opposing outputs.

    Parameters
    ----------
    problem : OddsProblem
        The point, and the two groups of outputs.
    incumbent : array of shape (coordinates,), optional
        A perturbation that is known to turn the decision.
    """

    def __init__(self, problem: OddsProblem, incumbent: FloatArray | None = None) -> None:
        self._problem, self._best = problem, incumbent
        self._use_unit(kink_distance(problem) if incumbent is None else _length(incumbent))

    def run(self, budget: Budget) -> Found:
        """Return bounds of the radius, nearly equal unless the budget is spent."""
        lower, self._visited = 0.0, 0
        if self._best is None:
            lower = self._explore(budget) * self._odds.unit
            if self._best is None:
                return Found(lower, np.inf, None)
            if self._radius == 0:  # silence at the point itself
                return Found(0.0, 0.0, self._best)
            self._use_unit(_length(self._best))
        for _ in range(_UNITS):
            lower = max(lower, min(self._explore(budget), self._radius) * self._odds.unit)
            if self._radius > _TINY or budget.is_spent(self._visited):
                break
            self._use_unit(_length(self._best))  # with digits for a radius as small as that
        return Found(lower, _length(self._best), self._best)

    def _use_unit(self, unit: float) -> None:
        self._odds = LogOdds(self._problem, unit)
        self._radius = np.inf if self._best is None else 1.0
        self._cuts: dict[int, Cuts] = {}
        self._order = itertools.count()

    # --- exploring

    def _explore(self, budget: Budget) -> float:
        """Work through the parts of the ball and return a bound."""
        heap: list[_Node] = []
        self._proved = np.inf
        self._improve_silence()
        if self._best is not None:
            self._improve(self._best / self._odds.unit)
        for part in self._first_parts():
            self._push(heap, part, None)
        looked, searching = 0, self._best is None
        while heap and heap[0].bound < self._radius * (1 - CLOSED):
            if budget.is_spent(self._visited):
                break
            self._visited += 1
            looked += 1
            node = heapq.heappop(heap)
            odds, rounding = self._odds.margin(node.point)
            early = searching or looked <= 2 * len(self._odds.opposing)
            if early or odds > -rounding or looked % 16 == 0:
                self._improve(node.point, node.part.signs)
            if node.bound >= self._radius * (1 - CLOSED) or (searching and self._best is not None):
                self._close(node.bound)
                break
            for part in self._branches(node):
                self._push(heap, part, node)
        return min(self._proved, heap[0].bound if heap else np.inf)

    def _close(self, bound: float) -> None:
        """Take down what is proved about a part that needs no more work."""
        self._proved = min(self._proved, bound)

    def _first_parts(self) -> Iterator[Part]:
        """Yield parts that hold everything that turns the decision.

        Unless silence turns it, some neuron of the strongest opposing output is on: the first one
        of them in each part, those before it being off.
        """
        odds, problem = self._odds, self._problem
        more = len(odds.opposing) > len(odds.own)
        same = len(odds.opposing) == len(odds.own)
        silence_turns = more or (same and problem.draw_turns)
        lo, hi = np.zeros(len(odds.A)), np.zeros(len(odds.A))
        lo[odds.opposing] = NO_BOUND
        for s in odds.opposing:
            below = lo.copy()
            below[s] = 0
            signs = np.zeros(len(odds.z), dtype=np.int64)
            if silence_turns:
                yield Part(int(s), signs, below, hi)
                continue
            for r in np.flatnonzero((problem.A[s] > 0) & ((odds.norms > 0) | (odds.z > 0))):
                first = signs.copy()
                first[r] = 1
                yield Part(int(s), first, below, hi)
                signs[r] = -1

    def _push(self, heap: list[_Node], part: Part, parent: _Node | None) -> None:
        """Bound a part and keep it if it can hold something better than the best."""
        bound, plane, cap = 0.0, 0.0, Cap(self._radius)
        if parent is not None:
            bound, plane = parent.bound, parent.distance
            cap = Cap(self._radius, parent.normal, parent.distance)
        node = None
        for _ in range(_ROUNDS):
            relaxation = self._odds.relax(part, cap)
            if relaxation is None:  # nothing within the ball
                self._close(self._radius)
                return
            answer = self._nearest(relaxation)
            bound = max(bound, answer.distance)
            if answer.point is None or bound >= self._radius * (1 - CLOSED):
                self._close(bound)
                return
            part = relaxation.part
            node = _Node(
                bound,
                next(self._order),
                part,
                relaxation,
                answer.point,
                answer.normal,
                answer.plane,
            )
            gap, gain = self._radius - answer.distance, answer.distance - plane
            if np.isinf(gap) or answer.normal is None or gain < _WORTHWHILE * gap:
                break
            plane = answer.distance
            cap = Cap(self._radius, answer.normal, answer.plane)
        if node is not None:
            heapq.heappush(heap, node)

    def _nearest(self, relaxation: Relaxation) -> NearestPoint:
        """Return the nearest point of a relaxation, up to cuts."""
        odds, s = self._odds, relaxation.part.strongest
        signs = odds.sign_rows(relaxation.part.signs)
        if not relaxation.has_lines:
            return Euclidean().nearest(signs, self._radius)
        if s not in self._cuts:
            self._cuts[s] = odds.cuts_at(np.zeros(odds.V.shape[1]), relaxation)
        best = NearestPoint(None, 0.0, np.zeros(0))
        for _ in range(_CUT_ROUNDS):
            spaces = odds.cut_half_spaces(self._cuts[s], relaxation)
            if spaces.constant_distance >= min(self._radius, FAR):
                return NearestPoint(None, spaces.constant_distance, np.zeros(0))
            answer = Euclidean().nearest(spaces.rows().and_also(signs), self._radius)
            if answer.distance >= best.distance:
                best = answer
            if answer.point is None or answer.distance >= self._radius * (1 - CLOSED):
                return answer
            more = odds.cuts_at(answer.point, relaxation)
            values = odds.cut_half_spaces(more, relaxation)
            violated = values.values(answer.point) < -_VIOLATED * values.norms
            if not violated.any():
                break
            self._add(s, more.chosen(violated))
        return best

    def _add(self, s: int, more: Cuts) -> None:
        """Remember cuts, and forget old ones but for the first."""
        cuts = self._cuts[s].and_also(more)
        first = 1 + 2 * (len(self._odds.opposing) - 1)
        if len(cuts.beta) > _MOST_CUTS:
            recent = np.arange(len(cuts.beta) - _MOST_CUTS // 2, len(cuts.beta))
            cuts = cuts.chosen(np.concatenate([np.arange(first), recent]))
        self._cuts[s] = cuts

    def _branches(self, node: _Node) -> Iterator[Part]:
        """Yield two parts of a part, split where chords lose the most at its nearest point."""
        odds, part, relaxation = self._odds, node.part, node.relaxation
        s, c = part.strongest, relaxation.slopes
        if not relaxation.has_lines:
            undecided = odds.challengers & (relaxation.low < 0) & (relaxation.high > 0)
            yield from _by_sign(part, int(np.argmax(undecided * (1 + odds.A[s]))))
            return
        u = odds.z + odds.V @ node.point
        relu = np.maximum(u, 0)
        f = odds.A @ relu
        delta = np.clip(f - f[s], part.lo, part.hi)
        chords = np.where(c > 0, np.exp(part.hi) + c * (delta - part.hi), 0)
        total = 1 + chords.sum()
        lost = np.where(c > 0, chords - np.exp(delta), 0) / total
        gains = c / total
        gains[s] = 1 - gains.sum()
        over = relaxation.lines.factor * u + relaxation.lines.shift - relu
        neurons = (gains @ odds.A) * over
        if max(lost.max(), neurons.max()) <= _TIGHT:
            # nothing is lost at this point: the log-odds are 0 there, and possibly nowhere more
            if not self._problem.draw_turns and self._is_drawn(node):
                return
            width = part.hi - part.lo
            lost = np.exp(part.hi) * np.square(np.minimum(width, 1)) / 8
            neurons = (gains @ odds.A) * relaxation.lines.shift
            if self._problem.draw_turns or max(lost.max(), neurons.max()) <= _TIGHT:
                self._close(node.bound)
                return
            delta = (part.lo + part.hi) / 2
        if neurons.max() >= lost.max():
            yield from _by_sign(part, int(neurons.argmax()))
            return
        weaker = int(lost.argmax())
        below, above = part.lo[weaker], part.hi[weaker]
        margin = min(_END * (above - below), 1.0)
        lo, hi = part.lo.copy(), part.hi.copy()
        lo[weaker] = hi[weaker] = np.clip(delta[weaker], below + margin, above - margin)
        yield replace(part, lo=lo)
        yield replace(part, hi=hi)

    def _is_drawn(self, node: _Node) -> bool:
        """Return whether a part has room for no more than log-odds of 0.

        With a margin it is empty, and the multipliers that prove it bound how thick the set can be
        in which the log-odds are turned.
        """
        odds, s = self._odds, node.part.strongest
        signs = odds.sign_rows(node.part.signs)
        for _ in range(_CUT_ROUNDS):
            cuts = self._cuts[s]
            spaces = odds.cut_half_spaces(cuts, node.relaxation)
            if spaces.constant_distance >= self._radius:
                return True
            rows = spaces.rows().and_also(signs)
            inside = Rows(rows.A, rows.b - _MARGIN, rows.A_errors, rows.b_errors)
            answer = Euclidean().nearest(inside, self._radius)
            if answer.point is None:
                multipliers = answer.multipliers
                return float(rows.b @ multipliers) <= _DRAWN * float(multipliers.sum())
            more = odds.cuts_at(answer.point, node.relaxation)
            values = odds.cut_half_spaces(more, node.relaxation)
            violated = values.values(answer.point) < 0
            if not violated.any():
                self._improve(answer.point)
                return False
            self._add(s, more.chosen(violated))
        return False

    # --- better perturbations

    def _improve(self, v: FloatArray, signs: IntArray | None = None) -> None:
        r"""Look for a better perturbation near v; `signs` say which neurons are on at a kink.

        :math:`\mathrm{LSE}_Q` is nowhere below its tangent with the neurons that are on at v, so
        the nearest point at which the tangent reaches :math:`\mathrm{LSE}_P` turns the decision.
        Repeat from there.
        """
        odds = self._odds
        for _ in range(_CUT_ROUNDS):
            u = odds.z + odds.V @ v
            on = u > 0
            if signs is not None:
                on |= (signs == 1) & (u > -_AT_KINK * odds.norms)
                signs = None
            better = nearest_turn(odds, v, on, self._radius, self._problem.draw_turns)
            if better is None or not self._offer(better):
                return
            if _length(better) > _length(v) * (1 - 1e-7) and _length(v) <= self._radius * 1.001:
                return
            v = better

    def _improve_silence(self) -> None:
        """Take the nearest point at which all neurons are off, if that turns the decision."""
        if not self._problem.draw_turns or len(self._odds.own) != len(self._odds.opposing):
            return
        v = nearest_silence(self._odds, self._radius)
        if v is not None and _length(v) < self._radius:
            self._best, self._radius = v * self._odds.unit, _length(v)

    def _offer(self, v: FloatArray) -> bool:
        """Take a perturbation that turns the decision if it is better than the best."""
        if _length(v) >= self._radius:
            return False
        self._best, self._radius = v * self._odds.unit, _length(v)
        return True


def _length(v: FloatArray) -> float:
    return float(np.sqrt(v @ v))


def _by_sign(part: Part, r: int) -> Iterator[Part]:
    """Yield the parts in which a neuron is on or off."""
    for side in (1, -1):
        signs = part.signs.copy()
        signs[r] = side
        yield replace(part, signs=signs)


def kink_distance(problem: OddsProblem) -> float:
    """Return the typical distance to where a neuron switches on or off."""
    norms = Euclidean().dual_length(problem.weights)
    live = (norms > 0) & (problem.z != 0)
    return float(np.median(np.abs(problem.z[live]) / norms[live])) if live.any() else 1.0

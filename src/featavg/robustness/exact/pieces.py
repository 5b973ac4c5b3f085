"""Contests between groups of neurons, one linear piece or relaxation of them at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.robustness.exact.nearest import NearestPoint, nearest_point

# In units of the radius: how far a strict inequality keeps from equality, and what is rounding.
_STRICT = 1e-8
_ROUNDING = 1e-10
# Relative to all weights: below this a difference of weights, or of sums of them, is none.
_NOISE = 1e-13


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
class Cap:
    """Where something better can still be: within a ball, and beyond a plane if there is one."""

    radius: float
    normal: FloatArray | None = None
    distance: float = 0.0


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear function of the perturbation, and the sizes of what was summed up in it.

    What is smaller than rounding makes of these sizes is nothing.
    """

    slope: FloatArray
    offset: float
    slope_size: float
    offset_size: float


class Pieces:
    r"""A point and its contests, with distances in a unit that makes the radius of order 1.

    The relus of the rivals are convex: :math:`\sum_G \mathrm{relu}(u_r)` is the largest of the
    linear sums :math:`\sum_T u_r` over subsets T of G, which are added as cuts when they are
    violated. The challengers' total is given as a linear function: that of those that are on, which
    is nowhere above the relus, or a relaxation with chords, which is nowhere below.
    """

    def __init__(
        self, weights: FloatArray, z: FloatArray, contests: tuple[Contest, ...], unit: float
    ) -> None:
        self.unit, self.z, self.contests = unit, z, contests
        self.V = weights * unit
        self.norms = np.linalg.norm(self.V, axis=1)
        self._abs_z = np.abs(z)
        # which neurons are in each rival, and the cuts: some of the neurons of one rival; to begin
        # with none of them, and of each rival those that are on at the point itself
        self._members = [_membership(contest.rivals, len(z)) for contest in contests]
        none = np.zeros((1, len(z)), dtype=bool)
        self._cuts = [np.concatenate([none, m & (z > 0)]) for m in self._members]

    # --- the challengers

    def total(self, on: IntArray) -> Linear:
        """Return the sum of these pre-activations."""
        return self._weighted(on, np.ones(len(on)))

    def _weighted(self, neurons: IntArray, factor: FloatArray, constant: float = 0.0) -> Linear:
        """Return the sum of pre-activations with non-negative factors, and a constant."""
        z = self.z[neurons]
        return Linear(
            factor @ self.V[neurons],
            float(factor @ z) + constant,
            float(factor @ self.norms[neurons]),
            float(factor @ np.abs(z)) + abs(constant),
        )

    def reach(self, challengers: IntArray, cap: Cap) -> tuple[FloatArray, FloatArray]:
        r"""Return the smallest and largest pre-activation of each challenger over a cap.

        With R the radius, g the normal and :math:`\varrho` the distance of the plane, a the part
        of w along g and b the norm of the rest, the largest :math:`\langle w, v\rangle` is that of
        :math:`a t + b\sqrt{R^2 - t^2}` over :math:`\varrho \le t \le R`.
        """
        z, V, norms = self.z[challengers], self.V[challengers], self.norms[challengers]
        R = cap.radius
        if cap.normal is None:
            return z - R * norms, z + R * norms
        a = V @ cap.normal
        b = np.sqrt(np.maximum(np.square(norms) - np.square(a), 0))
        safe = np.where(norms > 0, norms, 1.0)
        ends = []
        for sign in (-1, 1):
            t = np.clip(R * sign * a / safe, min(cap.distance, R), R)
            ends.append(sign * (sign * a * t + b * np.sqrt(np.maximum(R**2 - t**2, 0))))
        return z + ends[0], z + ends[1]

    def relaxed_total(self, challengers: IntArray, signs: IntArray, cap: Cap) -> Linear:
        """Return a linear function that is nowhere in a node below the challengers' total.

        An undecided relu is replaced by its chord over what it can reach.
        """
        if np.isinf(cap.radius):  # every challenger is decided
            return self.total(challengers[signs == 1])
        low, high = self.reach(challengers, cap)
        on = (signs == 1) | ((signs == 0) & (low >= 0))
        chord = (signs == 0) & (low < 0) & (high > 0)
        factor = on.astype(np.float64)
        factor[chord] = high[chord] / (high[chord] - low[chord])
        return self._weighted(challengers, factor, -float(factor[chord] @ low[chord]))

    def chord_gaps(self, challengers: IntArray, now: FloatArray, cap: Cap) -> FloatArray:
        """Return how far each challenger's chord is above its relu, at these pre-activations."""
        if np.isinf(cap.radius):
            return np.full(len(challengers), np.inf)
        low, high = self.reach(challengers, cap)
        chord = (low < 0) & (high > 0)
        gaps = np.zeros(len(challengers))
        gaps[chord] = (high * (now - low))[chord] / (high - low)[chord] - np.maximum(now, 0)[chord]
        return gaps

    # --- the rivals

    def nearest_win(
        self,
        index: int,
        total: Linear,
        *,
        cutoff: float = np.inf,
        extra: tuple[FloatArray, FloatArray] | None = None,
        strict: bool = False,
        stretch: float = 1.0,
    ) -> NearestPoint:
        """Minimise the norm where each rival's total is at most the lead and a linear total.

        With `strict` the inequalities hold with a margin, and with `stretch` they hold for the
        stretched point as well.
        """
        contest = self.contests[index]
        while True:
            cuts = self._cuts[index]
            rows = cuts @ self.V - total.slope
            limits = contest.lead + total.offset - cuts @ self.z
            norms = np.sqrt(np.square(rows).sum(axis=1))
            # rows that are zero up to rounding say nothing about the point
            constant = norms <= _NOISE * (cuts @ self.norms + total.slope_size)
            if constant.any():
                size = cuts[constant] @ self._abs_z + total.offset_size + abs(contest.lead)
                least = limits[constant]
                fails = (
                    least <= _NOISE * size if strict and contest.strict else least < -_NOISE * size
                )
                if fails.any():
                    return NearestPoint(None, np.inf)
                rows, limits, norms = rows[~constant], limits[~constant], norms[~constant]
            limits = limits / norms
            limits = np.minimum(limits, limits / stretch) - (_STRICT if strict else 0.0)
            answer = self._nearest(rows / norms[:, None], limits, cutoff, extra)
            if answer.point is None:
                return answer
            added = self._add_cuts(index, answer.point, total, strict)
            if stretch != 1:
                added |= self._add_cuts(index, stretch * answer.point, total, strict)
            if not added:
                return answer

    def nearest_signs(self, extra: tuple[FloatArray, FloatArray]) -> NearestPoint:
        """Minimise the norm where some neurons have given signs."""
        return self._nearest(np.zeros((0, self.V.shape[1])), np.zeros(0), np.inf, extra)

    def has_interior(self, index: int, on: BoolArray) -> bool:
        """Return whether a strict contest can be won with these challengers on."""
        contest = self.contests[index]
        if not contest.strict:
            return True
        total = self.total(contest.challengers[on])
        return self.nearest_win(index, total, strict=True).point is not None

    def wins(self, index: int, point: FloatArray, slack: float = _ROUNDING) -> bool:
        """Return whether a contest is won or drawn at a point, up to rounding."""
        contest, members = self.contests[index], self._members[index]
        u = self.z + self.V @ point
        on = contest.challengers[u[contest.challengers] > 0]
        active = members & (u > 0)
        rows = active @ self.V - self.V[on].sum(axis=0)
        excess = active @ u - u[on].sum() - contest.lead
        rounding = self._rounding(active, point) + self._rounding(on, point)
        allowed = slack * np.sqrt(np.square(rows).sum(axis=1)) + rounding
        return bool((excess <= allowed + _NOISE * abs(contest.lead)).all())

    def _add_cuts(self, index: int, point: FloatArray, total: Linear, strict: bool) -> bool:
        """Add the sum of each rival's active neurons where it is violated and new."""
        contest = self.contests[index]
        u = self.z + self.V @ point
        limit = contest.lead + total.offset + float(total.slope @ point)
        length = float(np.linalg.norm(point))
        size = total.offset_size + total.slope_size * length + abs(contest.lead)
        active = self._members[index] & (u > 0)
        excess = active @ u - limit
        rounding = _NOISE * size + self._rounding(active, point)
        rows = active @ self.V - total.slope
        norms = np.sqrt(np.square(rows).sum(axis=1))
        allowed = -_STRICT / 2 * norms - rounding if strict else _ROUNDING * norms + rounding
        added = False
        for cut in active[excess > allowed]:
            if not (self._cuts[index] == cut).all(axis=1).any():
                self._cuts[index] = np.vstack([self._cuts[index], cut])
                added = True
        return added

    def _rounding(self, neurons: IntArray | BoolArray, point: FloatArray) -> FloatArray:
        """Return what rounding makes of sums of pre-activations at a point.

        `neurons` is a list of them, or a row of booleans for each sum.
        """
        size = self._abs_z + self.norms * float(np.linalg.norm(point))
        return _NOISE * (neurons @ size if neurons.dtype == bool else size[neurons].sum())

    @staticmethod
    def _nearest(
        rows: FloatArray,
        limits: FloatArray,
        cutoff: float,
        extra: tuple[FloatArray, FloatArray] | None,
    ) -> NearestPoint:
        """Solve with rows of norm 1 and extra rows of any norm."""
        if extra is not None:
            lengths = np.linalg.norm(extra[0], axis=1)
            rows = np.concatenate([rows, extra[0] / lengths[:, None]])
            limits = np.concatenate([limits, extra[1] / lengths])
        return nearest_point(rows, limits, cutoff)


def _membership(groups: tuple[IntArray, ...], neurons: int) -> BoolArray:
    """Return which neurons are in each group, shape (groups, neurons)."""
    members = np.zeros((len(groups), neurons), dtype=bool)
    for row, group in zip(members, groups, strict=True):
        row[group] = True
    return members

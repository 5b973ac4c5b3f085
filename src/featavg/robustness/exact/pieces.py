"""Contests between outputs, one linear piece or relaxation of them at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.robustness.exact.contest import Contest, PointProblem
from featavg.robustness.exact.geometry import Cap, Geometry
from featavg.robustness.exact.nearest import NearestPoint, Rows
from featavg.robustness.exact.proof import Weights

# In units of the radius: how far an inequality with a margin keeps from equality, and rounding.
MARGIN = 1e-8
_ROUNDING = 1e-10
# Relative to all weights: below this a difference of weights, or of sums of them, is none.
_NOISE = 1e-13
# So many cuts of a contest are remembered.
_MOST_CUTS = 64


@dataclass(frozen=True, eq=False)
class Totals:
    """For each rival a linear function of the perturbation, and the sizes of what it sums up.

    What is smaller than rounding makes of these sizes is nothing.
    """

    slopes: FloatArray
    offsets: FloatArray
    slope_sizes: FloatArray
    offset_sizes: FloatArray
    on: BoolArray | None = None
    """The neurons that are on, where the functions are those of a linear piece."""


@dataclass(frozen=True, eq=False)
class Win:
    """The nearest win, and what its first rows were: cuts, with the lengths of their slopes."""

    nearest: NearestPoint
    rivals: IntArray
    masks: BoolArray
    lengths: FloatArray


@dataclass(eq=False)
class Cuts:
    """Sums of hindering neurons of one rival each, and when each was last of use."""

    rivals: IntArray
    masks: BoolArray
    slopes: FloatArray
    offsets: FloatArray
    slope_sizes: FloatArray
    offset_sizes: FloatArray
    used: IntArray

    def keep(self, which: IntArray) -> None:
        """Forget the others."""
        for name in vars(self):
            setattr(self, name, getattr(self, name)[which])


class Pieces:
    r"""A point and its contests, with distances in a unit that makes the radius of order 1.

    The hindering relus are on the convex side: :math:`\sum_r h_r \mathrm{relu}(u_r)` is the largest
    of the linear sums :math:`\sum_T h_r u_r` over subsets T, which are added as cuts when they
    are violated. The helping ones are given as a linear function: the sum of those that are on,
    which is nowhere above the relus, or a relaxation with chords, which is nowhere below.
    """

    def __init__(self, problem: PointProblem, geometry: Geometry, unit: float) -> None:
        self.unit, self.geometry, self.contests = unit, geometry.scaled(unit), problem.contests
        self.z, self.rounding, self.z_sizes = problem.z, problem.rounding, problem.z_sizes
        self.V = problem.weights * unit
        self.norms = self.geometry.dual_length(self.V)
        self.slopes = [contest.slopes * unit for contest in self.contests]
        self.slope_sizes = [self.geometry.dual_length(slopes) for slopes in self.slopes]
        self._cuts = [self._first_cuts(contest) for contest in self.contests]
        self._clock = 0
        self._exact = problem.pieces

    # --- the helping neurons

    def total(self, index: int, on: BoolArray) -> Totals:
        """Return the sums of the challengers that are on, for each rival."""
        factor = np.zeros(len(self.z))
        factor[self.contests[index].challengers[on]] = 1.0
        return replace(self._totals(index, factor, np.zeros(len(self.z))), on=factor > 0)

    def _totals(self, index: int, factor: FloatArray, shift: FloatArray) -> Totals:
        """Return the sums of gains times factor u + shift, and what has no relu."""
        contest = self.contests[index]
        scaled = contest.helping * factor
        moved = contest.helping @ shift
        return Totals(
            self.slopes[index] + scaled @ self.V,
            contest.leads + scaled @ self.z + moved,
            self.slope_sizes[index] + scaled @ self.norms,
            contest.lead_sizes + scaled @ self.z_sizes + moved,
        )

    def reach(self, neurons: IntArray, cap: Cap) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest pre-activation of neurons over a cap."""
        V, norms = self.V[neurons], self.norms[neurons]
        if np.isinf(min(cap.radius, self.geometry.extent)):
            far = np.where(norms > 0, np.inf, 0.0)
            return self.z[neurons] - far, self.z[neurons] + far
        low, high = self.geometry.reach(V, norms, cap)
        furthest = min(cap.radius, self.geometry.extent)
        error = self.rounding * (self.z_sizes[neurons] + norms * furthest)
        return self.z[neurons] + low - error, self.z[neurons] + high + error

    def relaxed_total(
        self, index: int, signs: IntArray, low: FloatArray, high: FloatArray
    ) -> Totals:
        """Return linear functions that are nowhere in a node below the helping relus.

        An undecided relu is replaced by its chord over what it can reach, from low to high.
        """
        challengers = self.contests[index].challengers
        factor, shift = np.zeros(len(self.z)), np.zeros(len(self.z))
        factor[challengers[(signs == 1) | ((signs == 0) & (low >= 0))]] = 1.0
        chord = (signs == 0) & (low < 0) & (high > 0)
        slope = high[chord] / (high[chord] - low[chord])
        factor[challengers[chord]] = slope
        shift[challengers[chord]] = -slope * low[chord]
        total = self._totals(index, factor, shift)
        return total if chord.any() else replace(total, on=factor > 0)

    def chord_gaps(
        self, index: int, now: FloatArray, low: FloatArray, high: FloatArray
    ) -> FloatArray:
        """Return how much each challenger's chord is above its relu, at these pre-activations."""
        contest = self.contests[index]
        chord = (low < 0) & (high > 0)
        gaps = np.zeros(len(low))
        gaps[chord] = (high * (now - low))[chord] / (high - low)[chord] - np.maximum(now, 0)[chord]
        return gaps * contest.helping[:, contest.challengers].max(axis=0)

    # --- the hindering neurons

    def _first_cuts(self, contest: Contest) -> Cuts:
        """Return for each rival the cut of none, and of those that are on at the point itself."""
        on = self.z > 0
        masks = np.concatenate([np.zeros((len(contest.leads), len(on)), bool), contest.gains < 0])
        masks &= on
        rivals = np.tile(np.arange(len(contest.leads)), 2)
        return self._make_cuts(contest, rivals, masks)

    def _make_cuts(self, contest: Contest, rivals: IntArray, masks: BoolArray) -> Cuts:
        rows = contest.hindering[rivals] * masks
        return Cuts(
            rivals,
            masks,
            rows @ self.V,
            rows @ self.z,
            rows @ self.norms,
            rows @ self.z_sizes,
            np.zeros(len(rivals), dtype=np.int64),
        )

    def nearest_win(
        self,
        index: int,
        total: Totals,
        *,
        cutoff: float = np.inf,
        extra: Rows | None = None,
        margins: FloatArray | None = None,
        stretch: float = 1.0,
    ) -> Win:
        """Minimise the norm where the hindering neurons are at most a linear total.

        The inequalities of each rival hold with a margin, in units of the radius, and with
        `stretch` they hold for the stretched point as well.
        """
        contest = self.contests[index]
        margins = np.zeros(len(contest.leads)) if margins is None else margins
        while True:
            cuts = self._cuts[index]
            k = cuts.rivals
            rows = cuts.slopes - total.slopes[k]
            limits = total.offsets[k] - cuts.offsets
            slope_sizes = cuts.slope_sizes + total.slope_sizes[k]
            offset_sizes = cuts.offset_sizes + total.offset_sizes[k]
            norms = self.geometry.dual_length(rows)
            # rows that are zero up to rounding say nothing about the point
            constant = norms <= self.rounding * slope_sizes
            for row in np.flatnonzero(constant):
                strict = bool(margins[k[row]] > 0 and contest.strict[k[row]])
                if self._is_lost(index, total, cuts, int(row), strict):
                    multipliers = np.zeros(1 + (0 if extra is None else len(extra.b)))
                    multipliers[0] = 1.0
                    impossible = NearestPoint(None, np.inf, multipliers)
                    return Win(impossible, k[[row]], cuts.masks[[row]], np.ones(1))
            which = np.flatnonzero(~constant)
            norms = norms[which]
            b = limits[which] / norms
            if stretch != 1:
                b = np.minimum(b, b / stretch)
            b = b - margins[k[which]]
            polyhedron = Rows(
                rows[which] / norms[:, None],
                b,
                self.rounding * slope_sizes[which] / norms,
                self.rounding * offset_sizes[which] / norms,
            )
            if extra is not None:
                polyhedron = polyhedron.and_also(extra)
            answer = self.geometry.nearest(polyhedron, cutoff)
            if answer.point is None:
                return Win(answer, k[which], cuts.masks[which], norms)
            self._clock += 1
            cuts.used[which[answer.multipliers[: len(which)] > 0]] = self._clock
            added = self._add_cuts(index, answer.point, total, margins)
            if stretch != 1:
                added |= self._add_cuts(index, stretch * answer.point, total, margins)
            if not added:
                return Win(answer, k[which], cuts.masks[which], norms)

    def _is_lost(self, index: int, total: Totals, cuts: Cuts, row: int, strict: bool) -> bool:
        """Return whether a linear piece that is constant is lost, or drawn where that is lost."""
        if total.on is None or self._exact is None:
            return False
        helping = total.on & (self.contests[index].gains[cuts.rivals[row]] > 0)
        ahead = self._exact.constant(index, int(cuts.rivals[row]), helping | cuts.masks[row])
        return ahead is not None and (ahead < 0 or (strict and ahead == 0))

    def weights(self, index: int, win: Win, neurons: IntArray) -> Weights:
        """Return the multipliers of a win as those of what they stand for.

        `neurons` are those whose signs were the extra rows, as numbers of challengers.
        """
        contest = self.contests[index]
        count = len(win.rivals)
        by_cut = win.nearest.multipliers[:count] / win.lengths
        rivals = np.zeros(len(contest.leads))
        np.add.at(rivals, win.rivals, by_cut)
        hindering = by_cut @ (contest.hindering[win.rivals] * win.masks)
        signs = self.sign_weights(index, win.nearest, neurons)
        return replace(signs, rivals=rivals, hindering=hindering)

    def sign_weights(self, index: int, nearest: NearestPoint, neurons: IntArray) -> Weights:
        """Return the multipliers of the last rows, which are signs of challengers."""
        contest = self.contests[index]
        decided = np.zeros(len(contest.challengers))
        if len(neurons):
            last = nearest.multipliers[-len(neurons) :]
            decided[neurons] = last / self.norms[contest.challengers[neurons]]
        return Weights(np.zeros(len(contest.leads)), np.zeros(len(self.z)), decided)

    def sign_rows(self, neurons: IntArray, sides: IntArray) -> Rows:
        """Return the half-spaces in which neurons are on (+1) or off (-1)."""
        norms = self.norms[neurons]
        return Rows(
            -sides[:, None] * self.V[neurons] / norms[:, None],
            sides * self.z[neurons] / norms,
            np.full(len(neurons), self.rounding),
            self.rounding * self.z_sizes[neurons] / norms,
        )

    def nearest_signs(self, extra: Rows | None) -> NearestPoint:
        """Minimise the norm where some neurons have given signs."""
        if extra is None:
            return NearestPoint(np.zeros(self.V.shape[1]), 0.0, np.zeros(0))
        return self.geometry.nearest(extra, np.inf)

    def has_interior(self, index: int, on: BoolArray) -> bool:
        """Return whether a contest with a strict rival can be won with these challengers on."""
        if not self.contests[index].strict.any():
            return True
        margins = MARGIN * self.contests[index].strict
        win = self.nearest_win(index, self.total(index, on), margins=margins)
        return win.nearest.point is not None

    def is_thin(self, total: Totals, weights: Weights) -> bool:
        """Return whether a win that is impossible with a margin is a draw up to rounding.

        The weights that prove it impossible say, without the margins, that a win has
        slope v <= room. In a box, the lowest value of slope v counts: there may be no room left at
        the end of the box. Without one, the slope has to be zero, which is left to the caller.
        """
        slope, slope_size = self.weighted_slope(total, weights)
        room = float(weights.rivals @ total.offsets - weights.hindering @ self.z)
        size = float(weights.rivals @ total.offset_sizes + weights.hindering @ self.z_sizes)
        extent = self.geometry.extent
        if np.isfinite(extent):
            norms = self.geometry.dual_length(slope[None])
            lowest, _ = self.geometry.reach(slope[None], norms, Cap(extent))
            room -= float(lowest[0])
            size += slope_size * extent
        return room <= self.rounding * size

    def weighted_slope(self, total: Totals, weights: Weights) -> tuple[FloatArray, float]:
        """Return the slope of a sum of inequalities, and the size of what was summed up in it."""
        slope = weights.hindering @ self.V - weights.rivals @ total.slopes
        size = weights.hindering @ self.norms + weights.rivals @ total.slope_sizes
        return slope, float(size)

    def wins(self, index: int, point: FloatArray, slack: float = _ROUNDING) -> bool:
        """Return whether a contest is won or drawn at a point, up to rounding."""
        contest = self.contests[index]
        u = self.z + self.V @ point
        on = contest.gains * (u > 0)
        rows = on @ self.V + self.slopes[index]
        excess = on @ u + contest.leads + self.slopes[index] @ point
        sizes = np.abs(on) @ (np.abs(self.z) + self.norms * self.geometry.length(point))
        sizes += np.abs(contest.leads) + np.abs(self.slopes[index] @ point)
        allowed = slack * self.geometry.dual_length(rows) + _NOISE * sizes
        return bool((excess >= -allowed).all())

    def _add_cuts(self, index: int, point: FloatArray, total: Totals, margins: FloatArray) -> bool:
        """Add the sum of each rival's active neurons where it is violated and new."""
        contest, cuts = self.contests[index], self._cuts[index]
        u = self.z + self.V @ point
        limit = total.offsets + total.slopes @ point
        length = self.geometry.length(point)
        active = (contest.gains < 0) & (u > 0)
        weighted = contest.hindering * active
        excess = weighted @ u - limit
        sizes = weighted @ (np.abs(self.z) + self.norms * length)
        sizes = sizes + np.abs(total.offsets) + total.slope_sizes * length
        norms = self.geometry.dual_length(weighted @ self.V - total.slopes)
        noise = _NOISE * sizes
        inside = -margins / 2 * norms - noise
        allowed = np.where(margins > 0, inside, _ROUNDING * norms + noise)
        violated = np.flatnonzero(excess > allowed)
        new = [
            k
            for k in violated
            if not ((cuts.rivals == k) & (cuts.masks == active[k]).all(axis=1)).any()
        ]
        if not new:
            return False
        if len(cuts.rivals) + len(new) > _MOST_CUTS:
            first = 2 * len(contest.leads)  # these stay
            recent = first + np.argsort(cuts.used[first:])[-_MOST_CUTS // 2 :]
            cuts.keep(np.concatenate([np.arange(first), recent]))
        more = self._make_cuts(contest, np.array(new), active[new])
        more.used[:] = self._clock
        for name, value in vars(more).items():
            setattr(cuts, name, np.concatenate([getattr(cuts, name), value]))
        return True

"""The maximum norm, with or without a box that perturbations must stay in."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from featavg.arrays import FloatArray
from featavg.robustness.exact.geometry import Cap, Geometry
from featavg.robustness.exact.nearest import FAR, NearestPoint, Rows
from featavg.robustness.exact.simplex import Simplex, bound_of

ROUNDOFF = 2.3e-16
# Relative to what was summed up: below this a slope is zero.
ZERO = 1e-13
# In units of the distance: by how much rows may be violated, and a bound fall short of its point.
VIOLATED = 1e-10
SHORT = 1e-8


def knapsack(
    rows: FloatArray, low: FloatArray, high: FloatArray, normal: FloatArray, distance: float
) -> FloatArray:
    r"""Return the largest value of linear functions over a part of a box.

    Paper: none, an extension.

    The largest :math:`\langle w, v\rangle` over :math:`l \le v \le u`,
    :math:`\langle n, v\rangle \ge \varrho` is the smallest over :math:`\mu \ge 0` of

    .. math:: \sum_j \max_{l_j \le v_j \le u_j} (w_j + \mu n_j) v_j - \mu \varrho,

    and every :math:`\mu` is a bound. The best one is where :math:`\langle n, v\rangle` of the
    maximiser reaches :math:`\varrho`: one of the :math:`-w_j / n_j`, found by sorting them. Where
    it is so large that rounding matters, the bound is raised by that.

    Parameters
    ----------
    rows : array of shape (functions, coordinates)
        w, one in each row.
    low, high : arrays of shape (coordinates,)
        l and u.
    normal, distance : array of shape (coordinates,) and float
        n and :math:`\varrho`.

    Examples
    --------
    >>> low, high = np.zeros(2), np.ones(2)
    >>> knapsack(np.array([[-1.0, -2.0]]), low, high, np.array([1.0, 1.0]), 1.5)
    array([-2.])
    """
    here = np.where(rows > 0, high, low) @ normal
    short = np.flatnonzero(here < distance)
    best = (np.maximum(rows * low, rows * high)).sum(axis=1)
    if not len(short):
        return best
    w = rows[short]
    with np.errstate(divide="ignore", invalid="ignore"):
        mu = -w / normal
    mu[~(mu > 0)] = np.inf
    order = np.argsort(mu, axis=1)
    gains = np.abs(normal) * (high - low)
    reached = here[short, None] + np.cumsum(gains[order], axis=1) >= distance
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), -1)
    place = np.take_along_axis(order, first[:, None], axis=1)
    chosen = np.take_along_axis(mu, place, axis=1)
    chosen[np.isinf(chosen)] = 0.0
    tilted = w + chosen * normal
    bounds = np.maximum(tilted * low, tilted * high).sum(axis=1) - chosen[:, 0] * distance
    furthest = np.maximum(-low, high)
    sizes = chosen[:, 0] * (np.abs(normal) @ furthest + abs(distance))
    bounds += (len(low) + 4) * ROUNDOFF * (sizes + np.abs(w) @ furthest)
    best[short] = np.minimum(best[short], bounds)
    return best


class MaxNorm(Geometry):
    """The largest absolute coordinate, with or without a box.

    Paper: none, an extension.

    Parameters
    ----------
    low, high : arrays of shape (coordinates,)
        What each coordinate of a perturbation must be within: low <= 0 <= high, or infinite.

    Examples
    --------
    >>> box = MaxNorm(np.array([-1.0, -1.0]), np.array([0.25, 1.0]))
    >>> rows = Rows.of(np.array([[-0.5, -0.5]]), np.array([-0.5]))  # v1 + v2 >= 1
    >>> box.nearest(rows, np.inf).point
    array([0.25, 0.75])
    """

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        self.low, self.high = low, high
        self.extent = float(np.maximum(-low, high).max(initial=0.0))

    def scaled(self, unit: float) -> MaxNorm:
        """Return the geometry of perturbations in another unit."""
        return MaxNorm(self.low / unit, self.high / unit)

    def length(self, point: FloatArray) -> float:
        """Return the largest absolute coordinate."""
        return float(np.abs(point).max(initial=0.0))

    def dual_length(self, rows: FloatArray) -> FloatArray:
        """Return the sums of the absolute values."""
        return np.abs(rows).sum(axis=1)

    def reach(
        self,
        rows: FloatArray,
        norms: FloatArray,  # noqa: ARG002  the box says more
        cap: Cap,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest value of each row over a cap within the box."""
        low, high = np.maximum(self.low, -cap.radius), np.minimum(self.high, cap.radius)
        if cap.normal is None:
            ends = rows * low, rows * high
            return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
        both = knapsack(np.concatenate([-rows, rows]), low, high, cap.normal, cap.distance)
        return -both[: len(rows)], both[len(rows) :]

    def nearest(self, rows: Rows, cutoff: float) -> NearestPoint:
        """Return the nearest point, by a linear program."""
        A, b = rows.A, rows.b
        if not len(b) or b.min() >= 0:
            return NearestPoint(np.zeros(A.shape[1]), 0.0, np.zeros(len(b)))
        answer = Simplex(A, b, self.low, self.high).solve(min(cutoff, FAR))
        found = self._checked(rows, answer.point, answer.multipliers, cutoff)
        if found is None or not answer.solved:
            found = self._second_opinion(rows, cutoff)
        return found

    def _checked(
        self, rows: Rows, point: FloatArray | None, multipliers: FloatArray, cutoff: float
    ) -> NearestPoint | None:
        """Return an answer whose multipliers prove what it says; None if they do not."""
        found = self._found(rows, point, multipliers, cutoff)
        if point is None:
            proved = found.distance >= min(cutoff, self.extent, FAR) * (1 - SHORT)
        else:
            proved = self.length(point) <= found.distance + SHORT
            proved = proved and bool((rows.A @ point <= rows.b + VIOLATED).all())
        return found if proved else None

    def _second_opinion(self, rows: Rows, cutoff: float) -> NearestPoint:
        """Solve by two other linear programs, with the violation and the norm as variables.

        The first one says whether there is anything to be found; its multipliers prove it.
        """
        A, b = rows.A, rows.b
        count, size = A.shape
        goal = np.append(np.zeros(size), 1.0)
        furthest = min(cutoff, self.extent, FAR)
        ball = np.clip(np.column_stack([self.low, self.high]), -furthest, furthest)
        least = linprog(
            goal,
            np.column_stack([A, -np.ones(count)]),
            b,
            bounds=np.vstack([ball, [-np.inf, np.inf]]),
        )
        point, program = None, least
        if least.status == 0 and least.fun <= 0:
            identity, ones = np.eye(size), np.ones((size, 1))
            program = linprog(
                goal,
                np.block([[A, np.zeros((count, 1))], [identity, -ones], [-identity, -ones]]),
                np.concatenate([b, np.zeros(2 * size)]),
                bounds=np.vstack([ball, [0.0, np.inf]]),
            )
            point = program.x[:-1] if program.status == 0 else None
        multipliers = np.zeros(count)
        if program.status == 0:
            multipliers = np.maximum(-program.ineqlin.marginals[:count], 0)
        return self._found(rows, point, multipliers, cutoff)

    def _found(
        self, rows: Rows, point: FloatArray | None, multipliers: FloatArray, cutoff: float
    ) -> NearestPoint:
        """Return an answer with what its multipliers prove."""
        distance, normal, plane = self.proved(rows, multipliers, cutoff)
        is_final = point is None and normal is None and distance >= FAR
        return NearestPoint(point, distance, multipliers, normal, plane, is_final)

    def proved(
        self, rows: Rows, multipliers: FloatArray, cutoff: float
    ) -> tuple[float, FloatArray | None, float]:
        r"""Return the distance that multipliers prove, and a half-space that all points are in.

        With :math:`g = A^\top\lambda`, a point of norm t has :math:`\lambda^\top A v \ge
        -\sum_j |g_j| \min(t, h_j)`, where h is the room from 0 to the bound that lowers
        :math:`g_j v_j`; so t is at least where that sum reaches :math:`-\lambda^\top b`.
        """
        gain = -float(rows.b @ multipliers) - float(rows.b_errors @ multipliers)
        gain -= len(multipliers) * ROUNDOFF * float(np.abs(rows.b) @ multipliers)
        if gain <= 0:
            return 0.0, None, 0.0
        g = multipliers @ rows.A
        error = float(rows.A_errors @ multipliers)
        error += (len(multipliers) + 2 * len(g)) * ROUNDOFF * float(multipliers.sum())
        room = np.where(g > 0, -self.low, self.high)
        distance = bound_of(g, gain, room * (1 + 4 * ROUNDOFF), error=error)
        distance *= 1 - 8 * ROUNDOFF
        norm = float(np.abs(g).sum())
        if norm == 0 or (np.isinf(self.extent) and norm <= ZERO * float(multipliers.sum())):
            return distance, None, 0.0
        # the plane is for points within the cutoff
        plane = (gain - error * min(cutoff, self.extent, FAR)) / norm
        return distance, -g / norm, plane

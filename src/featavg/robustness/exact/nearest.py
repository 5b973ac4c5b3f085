"""The point of a polyhedron that is nearest to the origin, with a proof."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import daqp
import numpy as np
from scipy.optimize import nnls

from featavg.arrays import FloatArray

# Distances are handed over in units of the one that is looked for, so absolute tolerances do.
_TOLERANCE = 1e-11
_NO_LOWER_BOUND = 1e30
# What is further away than this is looked for in a larger unit.
FAR = 1e6
# Nothing nearer than so many times all lengths of a point counts as nothing at all.
_HORIZON = 1e6


@dataclass(frozen=True, eq=False)
class Rows:
    """Half-spaces A v <= b with rows of norm 1, and how far rounding may have moved them."""

    A: FloatArray
    b: FloatArray
    A_errors: FloatArray
    b_errors: FloatArray

    @classmethod
    def of(cls, A: FloatArray, b: FloatArray) -> Rows:
        """Return half-spaces that are taken to be free of errors."""
        return cls(A, b, np.zeros(len(b)), np.zeros(len(b)))

    def and_also(self, other: Rows) -> Rows:
        """Return the half-spaces of both."""
        return Rows(
            np.concatenate([self.A, other.A]),
            np.concatenate([self.b, other.b]),
            np.concatenate([self.A_errors, other.A_errors]),
            np.concatenate([self.b_errors, other.b_errors]),
        )


@dataclass(frozen=True, eq=False)
class NearestPoint:
    """The answer to `nearest_point`.

    Attributes
    ----------
    point : array or None
        The nearest point; None if there is none nearer than the cutoff.
    distance : float
        A distance that no point of the polyhedron falls short of, proved by duality. It is finite
        even where the polyhedron is empty: rounding limits what can be proved. Infinity is for
        those who know it from rational arithmetic, or from a box.
    multipliers : array of shape (rows,)
        What proves it.
    normal : array or None
        A direction of dual length 1.
    plane : float
        How far all points within the cutoff are along it at least.
    is_final : bool
        Whether there is no point and rounding alone limits the distance (the slope is zero up to
        its error), so that no more can be proved in another unit.
    """

    point: FloatArray | None
    distance: float
    multipliers: FloatArray
    normal: FloatArray | None = None
    plane: float = 0.0
    is_final: bool = False


def nearest_point(rows: Rows, cutoff: float = np.inf) -> NearestPoint:
    r"""Minimise :math:`\|v\|` subject to :math:`A v \le b`.

    Paper: none, an extension.

    Every :math:`\lambda \ge 0` proves :math:`\|v\| \ge -b^\top\lambda / \|A^\top\lambda\|`, because
    :math:`\|v\|\,\|A^\top\lambda\| \ge -\lambda^\top A v \ge -\lambda^\top b`. That bound, at the
    solver's multipliers and with rounding allowed for, is what is reported, so nothing rests on
    the solver's word: if the bound does not back what it says, a second solver is asked.

    Parameters
    ----------
    rows : Rows
        The polyhedron.
    cutoff : float
        The search may stop as soon as the distance is known to be larger than this.
    """
    A, b = rows.A, rows.b
    if not len(b) or b.min() >= 0:
        return NearestPoint(np.zeros(A.shape[1]), 0.0, np.zeros(len(b)))
    bound = _NO_LOWER_BOUND if np.isinf(cutoff) else 0.5 * cutoff**2
    count, dimensions = A.shape
    identity, zero = _constants(dimensions)
    point, _, flag, info = daqp.solve(
        identity,
        zero,
        A,
        b,
        np.full(count, -_NO_LOWER_BOUND),
        np.zeros(count, dtype=np.int32),
        primal_tol=_TOLERANCE,
        fval_bound=bound,
    )
    multipliers = np.maximum(info["lam"], 0)
    distance = proved_distance(rows, multipliers)
    if flag == 1 and (A @ point <= b + 1e-10).all() and _length(point) <= distance + 1e-8:
        return NearestPoint(point, distance, multipliers, *proved_plane(rows, multipliers, cutoff))
    if flag == -1 and distance >= min(cutoff, FAR):
        return _no_point(rows, multipliers)
    return second_opinion(rows, cutoff)


def unless_beyond_reach(lower: float, *lengths: float) -> float:
    """Return a bound of the radius of a point for which no perturbation was found.

    It becomes infinity where it is a million times as large as the lengths that matter to the
    point, all in the units of the user. Rounding lets no larger number be proved in general.

    Examples
    --------
    >>> unless_beyond_reach(3e6, 2.0, 5.0), unless_beyond_reach(6e6, 2.0, 5.0)
    (3000000.0, inf)
    """
    return np.inf if lower >= _HORIZON * max(lengths) else lower


@lru_cache(maxsize=16)
def _constants(dimensions: int) -> tuple[FloatArray, FloatArray]:
    return np.eye(dimensions), np.zeros(dimensions)


def _no_point(rows: Rows, multipliers: FloatArray) -> NearestPoint:
    distance = proved_distance(rows, multipliers)
    _, error = _gain_and_error(rows, multipliers)
    is_final = distance >= FAR and _length(multipliers @ rows.A) <= error
    return NearestPoint(None, distance, multipliers, is_final=is_final)


def _length(point: FloatArray) -> float:
    return float(np.sqrt(point @ point))


def proved_distance(rows: Rows, multipliers: FloatArray) -> float:
    """Return the distance that multipliers prove.

    A slope that is zero up to its error (Farkas) proves a large distance, but not that the
    polyhedron is empty: the true slope may be as long as the error.
    """
    gain, error = _gain_and_error(rows, multipliers)
    steepest = _length(multipliers @ rows.A) + error
    return gain / steepest if gain > 0 and steepest > 0 else 0.0


def _gain_and_error(rows: Rows, multipliers: FloatArray) -> tuple[float, float]:
    """Return a lower bound of the offset of a sum of rows, and a bound of its slope's error."""
    roundoff = len(multipliers) * 2.3e-16
    gain = -float(rows.b @ multipliers) - float(rows.b_errors @ multipliers)
    gain -= roundoff * float(np.abs(rows.b) @ multipliers)
    return gain, float(rows.A_errors @ multipliers) + 2 * roundoff * float(multipliers.sum())


def second_opinion(rows: Rows, cutoff: float) -> NearestPoint:
    """Solve by non-negative least squares (Lawson and Hanson): slower, and hard to confuse."""
    stacked = -np.vstack([rows.A.T, rows.b])
    target = np.zeros(len(stacked))
    target[-1] = 1
    multipliers, residual = nnls(stacked, target, maxiter=100 * len(rows.b))
    distance = proved_distance(rows, multipliers)
    remainder = stacked @ multipliers - target
    # the nearest point would be at a distance of 1/residual, in units of the last remainder
    rounding = len(rows.b) * np.finfo(np.float64).eps * (np.abs(rows.b) @ multipliers + 1)
    if residual * FAR < 0.1 or -remainder[-1] <= rounding:
        return _no_point(rows, multipliers)
    multipliers = multipliers / -remainder[-1]
    point = -remainder[:-1] / remainder[-1]
    if _length(point) > cutoff:
        return NearestPoint(None, distance, multipliers)
    return NearestPoint(point, distance, multipliers, *proved_plane(rows, multipliers, cutoff))


def proved_plane(
    rows: Rows, multipliers: FloatArray, cutoff: float
) -> tuple[FloatArray | None, float]:
    """Return a direction of length 1, and how far points within the cutoff are along it at least.

    An error of the slope counts in proportion to the norm of a point, so a plane beyond which all
    of them are is nearer than the distance that is proved.
    """
    slope = multipliers @ rows.A
    length = _length(slope)
    if length == 0:
        return None, 0.0
    gain, error = _gain_and_error(rows, multipliers)
    return -slope / length, (gain - error * min(cutoff, FAR)) / length

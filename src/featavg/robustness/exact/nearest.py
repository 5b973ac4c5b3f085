"""The point of a polyhedron that is nearest to the origin, with a proof."""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import numpy as np
from scipy.optimize import nnls

from featavg.arrays import FloatArray

# Distances are handed over in units of the one that is looked for, so absolute tolerances do.
_TOLERANCE = 1e-11
_NO_LOWER_BOUND = 1e30
# What is further away than this cannot be told from what is not there.
_FAR = 1e6


@dataclass(frozen=True, eq=False)
class NearestPoint:
    """The answer to `nearest_point`.

    Attributes
    ----------
    point : array or None
        The nearest point; None if there is none nearer than the cutoff.
    distance : float
        A distance that no point of the polyhedron falls short of, proved by duality; infinity
        where it is proved to be empty.
    """

    point: FloatArray | None
    distance: float


def nearest_point(A: FloatArray, b: FloatArray, cutoff: float = np.inf) -> NearestPoint:
    r"""Minimise :math:`\|v\|` subject to :math:`A v \le b`.

    Paper: none, an extension.

    The rows of A have norm 1. Every :math:`\lambda \ge 0` proves
    :math:`\|v\| \ge -b^\top\lambda / \|A^\top\lambda\|`, because
    :math:`\|v\|\,\|A^\top\lambda\| \ge -\lambda^\top A v \ge -\lambda^\top b`. That bound, at the
    solver's multipliers, is what is reported, so nothing rests on the solver's word: if the bound
    does not back what it says, a second solver is asked.

    Parameters
    ----------
    A, b : arrays of shape (rows, dimensions) and (rows,)
        The polyhedron.
    cutoff : float
        The search may stop as soon as the distance is known to be larger than this.
    """
    if not len(b) or b.min() >= 0:
        return NearestPoint(np.zeros(A.shape[1]), 0.0)
    bound = _NO_LOWER_BOUND if np.isinf(cutoff) else 0.5 * cutoff**2
    rows, dimensions = A.shape
    point, _, flag, info = daqp.solve(
        np.eye(dimensions),
        np.zeros(dimensions),
        A,
        b,
        np.full(rows, -_NO_LOWER_BOUND),
        np.zeros(rows, dtype=np.int32),
        primal_tol=_TOLERANCE,
        fval_bound=bound,
    )
    distance = _proved_distance(A, b, np.maximum(info["lam"], 0))
    if flag == 1 and (A @ point <= b + 1e-10).all() and np.linalg.norm(point) <= distance + 1e-8:
        return NearestPoint(point, distance)
    if flag == -1 and distance >= min(cutoff, _FAR):
        return NearestPoint(None, distance)
    return _second_opinion(A, b, cutoff)


def _proved_distance(A: FloatArray, b: FloatArray, multipliers: FloatArray) -> float:
    """Return the distance that multipliers prove; infinity where they prove that there is none."""
    gain, size = -float(b @ multipliers), float(multipliers.sum())
    if gain <= 0:
        return 0.0
    norm = float(np.linalg.norm(multipliers @ A))
    if norm <= 1e-13 * size:  # zero up to rounding (Farkas), if the gain is not rounding as well
        return np.inf if gain > 1e-12 * float(np.abs(b) @ multipliers) else 0.0
    return gain / norm


def _second_opinion(A: FloatArray, b: FloatArray, cutoff: float) -> NearestPoint:
    """Solve by non-negative least squares (Lawson and Hanson): slower, and hard to confuse."""
    stacked = -np.vstack([A.T, b])
    target = np.zeros(len(stacked))
    target[-1] = 1
    multipliers, residual = nnls(stacked, target, maxiter=100 * A.shape[0])
    distance = _proved_distance(A, b, multipliers)
    if residual * _FAR < 0.1:  # the nearest point would be at a distance of 1/residual
        return NearestPoint(None, distance)
    remainder = stacked @ multipliers - target
    point = -remainder[:-1] / remainder[-1]
    if np.linalg.norm(point) > cutoff:
        return NearestPoint(None, distance)
    return NearestPoint(point, distance)

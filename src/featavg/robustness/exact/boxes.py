"""The Euclidean norm in a box that perturbations must stay in."""

from __future__ import annotations

from dataclasses import replace

import daqp
import numpy as np

from featavg.arrays import FloatArray
from featavg.robustness.exact.geometry import Cap, Euclidean
from featavg.robustness.exact.max_norm import ROUNDOFF, SHORT, VIOLATED, MaxNorm
from featavg.robustness.exact.nearest import NearestPoint, Rows, second_opinion

_NO_BOUND = 1e30


class BoxedEuclidean(Euclidean):
    """The Euclidean norm, in a box.

    Paper: none, an extension.

    Parameters
    ----------
    low, high : arrays of shape (coordinates,)
        What each coordinate of a perturbation must be within: low <= 0 <= high.

    Examples
    --------
    >>> box = BoxedEuclidean(np.array([-1.0, -1.0]), np.array([0.25, 1.0]))
    >>> rows = Rows.of(np.array([[-0.6, -0.8]]), np.array([-0.5]))  # 0.6 v1 + 0.8 v2 >= 0.5
    >>> box.nearest(rows, np.inf).point
    array([0.25  , 0.4375])
    """

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        self.low, self.high = low, high
        self.extent = self.length(np.maximum(-low, high))
        self._box = MaxNorm(low, high)
        self._identity = np.eye(len(low))

    def scaled(self, unit: float) -> BoxedEuclidean:
        """Return the geometry of perturbations in another unit."""
        return BoxedEuclidean(self.low / unit, self.high / unit)

    def reach(self, rows: FloatArray, norms: FloatArray, cap: Cap) -> tuple[FloatArray, FloatArray]:
        """Return the better bounds of the cap, and of the box beyond the cap's plane."""
        low, high = super().reach(rows, norms, cap)
        inside = self._box.reach(rows, norms, cap)
        return np.maximum(low, inside[0]), np.minimum(high, inside[1])

    def nearest(self, rows: Rows, cutoff: float) -> NearestPoint:
        """Return the nearest point, by a quadratic program."""
        A, b = rows.A, rows.b
        count, size = A.shape
        if not count or b.min() >= 0:
            return NearestPoint(np.zeros(size), 0.0, np.zeros(count))
        point, _, flag, info = daqp.solve(
            self._identity,
            np.zeros(size),
            A,
            np.concatenate([self.high, b]),
            np.concatenate([self.low, np.full(count, -_NO_BOUND)]),
            np.zeros(size + count, dtype=np.int32),
            primal_tol=1e-11,
            fval_bound=_NO_BOUND if np.isinf(cutoff) else 0.5 * cutoff**2,
        )
        multipliers = np.maximum(info["lam"][size:], 0)
        distance, normal, plane = self.proved(rows, multipliers, cutoff)
        if flag == 1 and (A @ point <= b + VIOLATED).all():
            point = np.clip(point, self.low, self.high)
            if self.length(point) <= distance + SHORT:
                return NearestPoint(point, distance, multipliers, normal, plane)
        if flag == -1:
            for factor in (1.0, 1e2, 1e4, 1e6):  # multiples of a ray prove ever more
                distance, _, _ = self.proved(rows, factor * multipliers, cutoff)
                if distance >= min(cutoff, self.extent):
                    return NearestPoint(None, distance, factor * multipliers)
        return self._second_opinion(rows, cutoff)

    def _second_opinion(self, rows: Rows, cutoff: float) -> NearestPoint:
        """Solve with the bounds as rows like the others."""
        sides = Rows.of(
            np.vstack([self._identity, -self._identity]), np.concatenate([self.high, -self.low])
        )
        answer = second_opinion(rows.and_also(sides), cutoff)
        distance = answer.distance if answer.distance <= self.extent else np.inf
        return replace(answer, distance=distance, multipliers=answer.multipliers[: len(rows.b)])

    def proved(
        self,
        rows: Rows,
        multipliers: FloatArray,
        cutoff: float,
    ) -> tuple[float, FloatArray | None, float]:
        r"""Return the distance that multipliers prove, and the direction in which it is.

        With :math:`g = A^\top\lambda`, let v be -g cut off at the bounds and :math:`\mu = -g - v`.
        Each :math:`\mu_j` is a multiplier of the bound that :math:`v_j` is at, so every point p of
        the polyhedron and the box has :math:`-\langle v, p\rangle = \langle g + \mu, p\rangle
        \le \lambda^\top b + \langle \mu, v\rangle`, and :math:`\|p\|\,\|v\|` is no smaller.
        """
        g = multipliers @ rows.A
        v = np.clip(-g, self.low, self.high)
        mu = np.where(v == -g, 0.0, -g - v)
        parts = np.concatenate([rows.b * multipliers, mu * v])
        sizes = float(np.abs(parts).sum())
        gain = -float(parts.sum()) - float(rows.b_errors @ multipliers)
        gain -= (len(parts) + 8) * ROUNDOFF * sizes
        norm, size = self.length(v), float(multipliers.sum() + np.abs(mu).sum())
        if gain <= 0:
            return 0.0, None, 0.0
        error = float(rows.A_errors @ multipliers) + len(parts) * ROUNDOFF * size
        # up to a multiple of the norm that is larger than the extent there is nothing
        distance = np.inf if gain > (norm + error) * self.extent else gain / (norm + error)
        if norm == 0:
            return distance, None, 0.0
        return distance, v / norm, (gain - error * min(cutoff, self.extent)) / norm

"""The point of a polyhedron in a box whose largest coordinate is smallest, by a dual simplex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import FloatArray

# In units of the distance that is looked for: what is violated by no more than this holds.
_TOLERANCE = 1e-12
# A slope below this, of rows whose absolute values add up to 1, is rounding.
_FLAT = 1e-14
_STEPS_A_ROW = 20


@dataclass(frozen=True, eq=False)
class Smallest:
    """The answer of `Simplex.solve`.

    Attributes
    ----------
    point : array or None
        A point whose largest coordinate is smallest; None if there is none within the cutoff.
    multipliers : array of shape (rows,)
        Its proof: weights of the rows, with sum 1.
    solved : bool
        Whether the method came to an end.
    """

    point: FloatArray | None
    multipliers: FloatArray
    solved: bool = True


def bound_of(
    g: FloatArray, beta: float, room: FloatArray, start: float = 0.0, error: float = 0.0
) -> float:
    r"""Return the smallest t with :math:`\sum_j |g_j| \min(t, h_j) + \epsilon t \ge \beta`.

    Newton's method from below: on a concave function it never oversteps. Infinity if there is none
    up to the largest of the h; `start` must be below the answer.

    Examples
    --------
    >>> round(bound_of(np.array([1.0, -2.0]), 2.5, np.array([0.5, 4.0])), 9)  # 0.5 + 2 t = 2.5
    1.0
    """
    size = np.abs(g)
    t, largest = start, float(room.max(initial=0.0))
    while True:
        slope = float(size[room > t].sum()) + error
        missing = beta - float(size @ np.minimum(t, room)) - error * t
        if missing <= 0:
            return t
        if t >= largest or slope <= 0:
            return np.inf
        step = t + missing / slope
        if step <= t:
            return t
        t = min(step, largest)


class Simplex:
    r"""Minimise t subject to :math:`A v \le b`, :math:`l \le v \le u` and :math:`|v_j| \le t`.

    Paper: none, an extension.

    Weights :math:`\lambda` of the rows, of sum 1, prove the smallest t at which
    :math:`\min \lambda^\top (A v - b) \le 0` over the box of that t (`bound_of`). The dual simplex
    method raises it from step to step. Where :math:`g = A^\top \lambda` has a sign the point is at
    a bound; the other coordinates J and the rows I with a weight make a square system

    .. math:: A_{IJ} v_J - w = b_I - A_{IN} v_N,

    as small as the number of rows that matter, so many columns cost little. A step takes the most
    violated row or coordinate, moves the weights along the direction that keeps the rest of the
    system, and lets coordinates jump to their other bound for as long as that pays.

    Parameters
    ----------
    A, b : arrays of shape (rows, columns) and (rows,)
        The polyhedron.
    low, high : arrays of shape (columns,)
        The box, which holds 0 and may be infinite.

    Examples
    --------
    >>> A, b = np.array([[-0.5, -0.5]]), np.array([-0.5])  # v1 + v2 >= 1
    >>> Simplex(A, b, np.array([-1.0, -1.0]), np.array([0.25, 1.0])).solve().point
    array([0.25, 0.75])
    """

    def __init__(self, A: FloatArray, b: FloatArray, low: FloatArray, high: FloatArray) -> None:
        self._A, self._b, self._low, self._high = A, b, low, high
        self.steps = 0

    def solve(self, cutoff: float = np.inf) -> Smallest:
        """Return the answer, or a proof that it is not below the cutoff."""
        self._rows, self._columns = [self._first_row()], list[int]()
        self._solve_system()
        self._side = np.where(self._g > 0, -1, 1)
        self._t = 0.0
        for _ in range(_STEPS_A_ROW * (len(self._b) + 10)):
            self._raise_bound()
            if self._t >= cutoff or np.isinf(self._t):
                return Smallest(None, self._weights())
            try:
                if self._step():
                    return Smallest(self._v, self._weights())
            except np.linalg.LinAlgError:
                break
        return Smallest(None, self._weights(), solved=False)

    def _first_row(self) -> int:
        """Return the row that alone would prove most, if the distance were 1."""
        room = np.minimum(np.where(self._A > 0, -self._low, self._high), 1.0)
        slopes = np.maximum((np.abs(self._A) * room).sum(axis=1), _FLAT)
        return int(np.argmax(-self._b / slopes))

    def _solve_system(self) -> None:
        """Invert [A_IJ, -1] and set the weights and the slopes g."""
        active = self._A[self._rows]
        system = np.empty((len(active), len(active)))
        system[:, :-1] = active[:, self._columns]
        system[:, -1] = -1
        self._inverse = np.linalg.inv(system)
        self._weight = -self._inverse[-1]
        self._g = self._weight @ active
        self._g[self._columns] = 0

    def _weights(self) -> FloatArray:
        weights = np.zeros(len(self._b))
        weights[self._rows] = np.maximum(self._weight, 0)
        return weights

    def _raise_bound(self) -> None:
        """Set t to what the weights prove, and the point to where it says."""
        room = np.where(self._side > 0, self._high, -self._low)
        beta = -float(self._weight @ self._b[self._rows])
        self._t = bound_of(self._g, beta, room, self._t)
        t = self._t
        self._v = self._side * np.minimum(room, t)
        self._v[self._columns] = 0
        self._lower, self._upper = np.maximum(self._low, -t), np.minimum(self._high, t)

    def _step(self) -> bool:
        """Mend the largest violation; return True if there is none."""
        self.steps += 1
        rows, columns = self._rows, self._columns
        excess = self._A @ self._v - self._b
        inner = self._inverse @ -excess[rows]
        w = inner[-1]
        if columns:
            self._v[columns] = inner[:-1]
            excess += self._A[:, columns] @ inner[:-1]
        excess -= w
        excess[rows] = 0
        row = int(np.argmax(excess))
        violation = float(excess[row])
        over = np.maximum(inner[:-1] - self._upper[columns], self._lower[columns] - inner[:-1])
        which = int(np.argmax(over)) if columns else -1
        if columns and over[which] > max(violation, _TOLERANCE):
            column = columns[which]
            side = 1 if inner[which] > self._upper[column] else -1
            direction = -side * self._inverse[which]
            self._move(direction, float(over[which]), leaving=which, side=side)
            return False
        if violation <= _TOLERANCE:
            return True
        entering = np.append(self._A[row, columns], -1.0)
        direction = -(entering @ self._inverse)
        self._move(direction, violation, entering=row)
        return False

    def _move(
        self,
        direction: FloatArray,
        slope: float,
        *,
        entering: int | None = None,
        leaving: int | None = None,
        side: int = 0,
    ) -> None:
        """Move the weights along a direction for as long as that raises the dual objective."""
        rows, columns = self._rows, self._columns
        change = direction @ self._A[rows]
        if entering is not None:
            change += self._A[entering]
        nonbasic = np.ones(len(change), dtype=bool)
        nonbasic[columns] = False
        # the weight that is gone first, which ends the step
        falling = np.flatnonzero(direction < -_FLAT)
        ends = np.maximum(self._weight[falling], 0) / -direction[falling]
        first = int(np.argmin(ends)) if len(ends) else -1
        longest = float(ends[first]) if len(ends) else np.inf
        # the slopes g that change sign on the way; the side is that of -g
        crossing = np.flatnonzero(nonbasic & (self._side * change > _FLAT))
        at = np.maximum(-self._side[crossing] * self._g[crossing], 0)
        at /= np.abs(change[crossing])
        order = np.argsort(at)
        crossing, at = crossing[order], at[order]
        span = self._upper[crossing] - self._lower[crossing]
        left = slope - np.cumsum(np.abs(change[crossing]) * span)
        stop = int(np.searchsorted(-left, 0.0))  # the first at which it does not pay to go on
        blocked = stop >= len(at) or at[stop] >= longest
        if blocked and first < 0:
            raise np.linalg.LinAlgError
        passed = crossing[at < longest] if blocked else crossing[:stop]
        self._side[passed] *= -1
        if leaving is not None:
            self._side[columns[leaving]] = side
            del columns[leaving]
        if blocked:
            del rows[int(falling[first])]
        else:
            columns.append(int(crossing[stop]))
        if entering is not None:
            rows.append(entering)
        self._solve_system()

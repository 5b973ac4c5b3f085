"""Scaling of points by one shift and one factor, under which radii convert exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Scaling:
    r"""The map :math:`x \mapsto s (x - m)` to the scale of the paper, where points have norm √d.

    Paper: none, an extension; embeddings have to be centred for Assumption 3.2, and the scale is
    that of Definition 3.1.

    One factor for all coordinates maps L2 balls to L2 balls: a radius r of scaled points is the
    radius r/s in the units of the input.

    Attributes
    ----------
    shift : array of shape (coordinates,)
        m, the mean of the points.
    factor : float
        s; the mean squared norm of scaled points is the number of coordinates.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[1.0, 0.0], [3.0, 0.0]]))
    >>> scaling.apply(np.array([[3.0, 1.0]])).round(4)
    array([[1.4142, 1.4142]])
    """

    shift: FloatArray
    factor: float

    @classmethod
    def of(cls, x: FloatArray) -> Scaling:
        """Return the scaling of these points; the factor is 1 if all points are equal."""
        shift: FloatArray = x.mean(axis=0, dtype=np.float64)
        spread = x - shift
        largest = max(float(spread.max()), -float(spread.min()))
        # the spread of equal points is rounding error
        if not largest > 1e-12 * float(np.abs(shift).max(initial=0.0)):
            return cls(shift, 1.0)
        spread /= largest  # so that squares stay in range
        return cls(shift, float(1 / (largest * np.sqrt(np.vdot(spread, spread) / spread.size))))

    @property
    def affine(self) -> tuple[FloatArray, FloatArray]:
        """The factor of each coordinate and the offset t of the map s x + t."""
        factors = np.full(len(self.shift), self.factor)
        return factors, -factors * self.shift

    def apply(self, x: FloatArray, dtype: Any = np.float64) -> FloatArray:
        """Return scaled points."""
        moved: FloatArray = (x - self.shift) * self.factor
        return moved.astype(dtype, copy=False)

    def undo(self, x: FloatArray) -> FloatArray:
        """Return the points whose scaled ones these are."""
        return x / self.factor + self.shift

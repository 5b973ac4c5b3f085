"""What a search asks of a norm: lengths, what a ball can reach, and nearest points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from featavg.arrays import FloatArray
from featavg.robustness.exact.nearest import (
    NearestPoint,
    Rows,
    nearest_point,
    proved_distance,
    proved_plane,
)


@dataclass(frozen=True, eq=False)
class Cap:
    """Where something better can still be: within a ball, and beyond a plane if there is one."""

    radius: float
    normal: FloatArray | None = None
    distance: float = 0.0


class Geometry(ABC):
    """How perturbations are measured, and where they may be.

    Attributes
    ----------
    extent : float
        The norm of the largest perturbation that is allowed.
    """

    extent = float("inf")

    def scaled(self, unit: float) -> Geometry:  # noqa: ARG002  norms alone have no scale
        """Return the geometry of perturbations in another unit."""
        return self

    @abstractmethod
    def length(self, point: FloatArray) -> float:
        """Return the norm of a perturbation."""

    @abstractmethod
    def dual_length(self, rows: FloatArray) -> FloatArray:
        """Return how fast each linear function rises along its best direction of norm 1."""

    @abstractmethod
    def reach(self, rows: FloatArray, norms: FloatArray, cap: Cap) -> tuple[FloatArray, FloatArray]:
        """Return bounds of linear functions over a cap; `norms` are their dual lengths."""

    @abstractmethod
    def proved(
        self, rows: Rows, multipliers: FloatArray, cutoff: float
    ) -> tuple[float, FloatArray | None, float]:
        """Return the distance that multipliers prove for a polyhedron, and a half-space.

        Every point of the polyhedron within the cutoff is at least so far along the normal, which
        comes second, as the third number says.
        """

    def half_space(
        self, slope: FloatArray, offset: float, error: float, size: float, cutoff: float
    ) -> tuple[float, FloatArray | None, float]:
        """Return what `proved` does for slope v + offset <= 0.

        The true slope is within `error` of this one, in dual length, and `size` is that of what
        was summed up in it.
        """
        size = size if size > 0 else 1.0
        ends = np.array([-offset / size]), np.array([error / size]), np.zeros(1)
        return self.proved(Rows(slope[None] / size, *ends), np.array([size]), cutoff)

    @abstractmethod
    def nearest(self, rows: Rows, cutoff: float) -> NearestPoint:
        """Return the point of a polyhedron with the smallest norm."""


class Euclidean(Geometry):
    """The Euclidean norm without bounds."""

    def length(self, point: FloatArray) -> float:
        """Return the Euclidean norm."""
        return float(np.sqrt(point @ point))

    def dual_length(self, rows: FloatArray) -> FloatArray:
        """Return the Euclidean norms."""
        return np.sqrt(np.square(rows).sum(axis=1))

    def reach(self, rows: FloatArray, norms: FloatArray, cap: Cap) -> tuple[FloatArray, FloatArray]:
        r"""Return the smallest and largest value of each row over a cap.

        With R the radius, g the normal and :math:`\varrho` the distance of the plane, a the part
        of w along g and b the norm of the rest, the largest :math:`\langle w, v\rangle` is that of
        :math:`a t + b\sqrt{R^2 - t^2}` over :math:`\varrho \le t \le R`.
        """
        R = cap.radius
        if cap.normal is None:
            return -R * norms, R * norms
        a = rows @ cap.normal
        square = np.square(norms) - np.square(a)
        near = square < np.square(norms) / 8  # where the difference has lost digits
        rest = rows[near] - a[near, None] * cap.normal
        square[near] = np.square(rest).sum(axis=1)
        b = np.sqrt(square)
        safe = np.where(norms > 0, norms, 1.0)
        ends = []
        for sign in (-1, 1):
            t = np.clip(R * sign * a / safe, min(cap.distance, R), R)
            ends.append(sign * (sign * a * t + b * np.sqrt(np.maximum((R - t) * (R + t), 0))))
        return ends[0], ends[1]

    def proved(
        self,
        rows: Rows,
        multipliers: FloatArray,
        cutoff: float,
    ) -> tuple[float, FloatArray | None, float]:
        """Return the distance that multipliers prove, and a half-space."""
        distance = proved_distance(rows, multipliers)
        return distance, *proved_plane(rows, multipliers, cutoff)

    def nearest(self, rows: Rows, cutoff: float) -> NearestPoint:
        """Return the nearest point, by a quadratic program."""
        return nearest_point(rows, cutoff)

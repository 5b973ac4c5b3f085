"""What a search asks of a norm: lengths, what a ball can reach, and nearest points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from featavg.arrays import FloatArray
from featavg.robustness.exact.nearest import NearestPoint, Rows, nearest_point


@dataclass(frozen=True, eq=False)
class Cap:
    """Where something better can still be: within a ball, and beyond a plane if there is one."""

    radius: float
    normal: FloatArray | None = None
    distance: float = 0.0


class Geometry(ABC):
    """How perturbations are measured, and where they may be."""

    def scaled(self, unit: float) -> Geometry:
        """Return the geometry of perturbations in another unit."""
        return self

    @abstractmethod
    def length(self, point: FloatArray) -> float:
        """Return the norm of a perturbation."""

    @abstractmethod
    def dual_length(self, rows: FloatArray) -> FloatArray:
        """Return how fast each linear function rises along its best direction of norm 1."""

    @abstractmethod
    def reach(
        self, rows: FloatArray, norms: FloatArray, cap: Cap
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds of linear functions over a cap; `norms` are their dual lengths."""

    @abstractmethod
    def half_space_distance(
        self, slope: FloatArray, offset: float, error: float, nothing: float
    ) -> float:
        """Return how far every point with slope v + offset <= 0 is at least.

        The true slope is within `error` of this one, in dual length; one of length `nothing` or
        less is zero up to rounding, and then there is no such point if the offset is positive.
        """

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

    def reach(
        self, rows: FloatArray, norms: FloatArray, cap: Cap
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return the smallest and largest value of each row over a cap.

        With R the radius, g the normal and :math:`\varrho` the distance of the plane, a the part
        of w along g and b the norm of the rest, the largest :math:`\langle w, v\rangle` is that of
        :math:`a t + b\sqrt{R^2 - t^2}` over :math:`\varrho \le t \le R`.
        """
        R = cap.radius
        if cap.normal is None:
            return -R * norms, R * norms
        a = rows @ cap.normal
        b = np.sqrt(np.maximum(np.square(norms) - np.square(a), 0))
        safe = np.where(norms > 0, norms, 1.0)
        ends = []
        for sign in (-1, 1):
            t = np.clip(R * sign * a / safe, min(cap.distance, R), R)
            ends.append(sign * (sign * a * t + b * np.sqrt(np.maximum(R**2 - t**2, 0))))
        return ends[0], ends[1]

    def half_space_distance(
        self, slope: FloatArray, offset: float, error: float, nothing: float
    ) -> float:
        """Return offset / (|slope| + error)."""
        length = self.length(slope)
        if offset <= 0:
            return 0.0
        return np.inf if length <= nothing else offset / (length + error)

    def nearest(self, rows: Rows, cutoff: float) -> NearestPoint:
        """Return the nearest point, by a quadratic program."""
        return nearest_point(rows, cutoff)

"""Measurements of one network on held-out points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.auditing.geometry import Geometry
from featavg.estimators.heads import CertifiedHead, Head
from featavg.estimators.piece_alignment import deciding_pieces
from featavg.estimators.pieces import PieceHead

_STRIDE = 1.5  # of the universal direction, in median radii of the coarse-label network


@dataclass(frozen=True, eq=False)
class Universal:
    """A universal perturbation: one direction for each class.

    Attributes
    ----------
    directions : array of shape (classes, features)
        Unit vectors, in the coordinates of the input.
    radius : float
        The length of the perturbation, in the units of the input.
    broken : float
        The share of correctly classified held-out points that it makes misclassified.
    """

    directions: FloatArray
    radius: float
    broken: float


@dataclass(frozen=True, eq=False)
class Network:
    """Measurements of one network on held-out points.

    Attributes
    ----------
    accuracy : float
        Clean accuracy.
    averaging_index : float
        1 averaging, 0 decoupled; NaN if no class has two subclasses.
    radii : array of shape (points,)
        The certified radius of each measured point, in the units of the input; 0 if it is
        misclassified.
    exact : array of shape (points,)
        Where the radius is exact; elsewhere it is a lower bound.
    universal : Universal
        The strongest universal perturbation that was found.
    """

    accuracy: float
    averaging_index: float
    radii: FloatArray
    exact: BoolArray
    universal: Universal

    @property
    def median_radius(self) -> float:
        """The median of the radii."""
        return float(np.median(self.radii))

    def kind(self, point: int) -> str:
        """Return whether the radius of a measured point is "exact" or a "lower bound"."""
        return "exact" if self.exact[point] else "lower bound"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out points, the class of each, and the indices of those to measure."""

    x: FloatArray
    codes: IntArray
    chosen: IntArray

    def network(
        self, head: CertifiedHead, geometry: Geometry, coarse: Network | None = None
    ) -> Network:
        """Measure one network of points that are not scaled.

        Universal perturbations are as long as for the coarse-label one.
        """
        right = head.predict(self.x) == self.codes
        found = head.radii(self.x[self.chosen], self.codes[self.chosen], jobs=None)
        median = float(np.median(found.lower)) if coarse is None else coarse.median_radius
        weights, classes = self._neurons(head)
        return Network(
            accuracy=float(right.mean()),
            averaging_index=geometry.averaging_index(weights, classes),
            radii=found.lower,
            exact=found.exact,
            universal=self._universal(head, geometry, right, _STRIDE * median),
        )

    def _neurons(self, head: CertifiedHead) -> tuple[FloatArray, IntArray]:
        """Return weight vectors of a network, and the class of each.

        Of affine pieces it is, for each point, the gradient of its largest own piece minus the mean
        of those of the points of other classes, see
        `featavg.estimators.piece_alignment.piece_averaging_index`.
        """
        if isinstance(head, Head):
            return head.net.weights, head.neuron_classes
        assert isinstance(head, PieceHead)  # noqa: S101  there are no other heads
        weights = head.weights[deciding_pieces(head, self.x, self.codes)]
        if head.features is not None:
            rotated = head.features.rotate(self.x)
            weights = head.features.unsort(rotated, weights) @ head.features.weights
        opposing = np.zeros_like(weights)
        for c in np.unique(self.codes):
            others = weights[self.codes != c]
            opposing[self.codes == c] = others.mean(axis=0) if len(others) else 0
        return weights - opposing, self.codes

    def _universal(
        self, head: CertifiedHead, geometry: Geometry, right: Any, radius: float
    ) -> Universal:
        """Return the best of several directions for each class.

        Candidates: from the mean of the class to that of each other class, and from the sum of the
        weights of its neurons to that of each other class.
        """
        classes = head.classes
        shares = [geometry.sizes * (geometry.class_of == c) for c in range(classes)]
        means = np.stack([np.average(geometry.means, axis=0, weights=share) for share in shares])
        weights, neurons = self._neurons(head)
        sums = np.stack([weights[neurons == c].sum(axis=0) for c in range(classes)])
        directions, broken = np.zeros_like(means), 0
        for c in range(classes):
            own = np.flatnonzero(right & (self.codes == c))
            best = -1
            for points in (means, sums):
                for other in set(range(classes)) - {c}:
                    difference = points[other] - points[c]
                    norm = float(np.linalg.norm(difference))
                    if not norm > 0:
                        continue
                    moved = self.x[own] + radius * difference / norm
                    turned = int((head.predict(moved) != c).sum()) if len(own) else 0
                    if turned > best:
                        best, directions[c] = turned, difference / norm
            broken += max(best, 0)
        return Universal(directions, radius, broken / max(1, int(right.sum())))

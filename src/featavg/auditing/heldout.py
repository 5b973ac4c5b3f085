"""Measurements of one network on held-out points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.auditing.geometry import Geometry
from featavg.estimators.heads import Head
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet

STRIDE = 1.5  # of the universal direction, in median radii of the coarse-label network


@dataclass(frozen=True, eq=False)
class Universal:
    """One direction for each class that changes the decision of as many of its points as possible.

    Attributes
    ----------
    directions : array of shape (classes, features)
        Unit vectors, in the coordinates of the input.
    radius : float
        The distance by which points are moved along them, in the units of the input.
    broken : float
        The share of correctly classified held-out points whose decision this changes.
    """

    directions: FloatArray
    radius: float
    broken: float


@dataclass(frozen=True, eq=False)
class Network:
    """The measurements of one network on held-out points.

    Attributes
    ----------
    accuracy : float
        Clean accuracy.
    averaging_index : float
        1 averaging, 0 decoupled; NaN if no class has two subclasses.
    radii : array of shape (points,)
        The certified radius of each held-out point that was looked at, in the units of the input;
        0 where it is classified wrongly.
    universal : Universal
        The direction that breaks the most points.
    """

    accuracy: float
    averaging_index: float
    radii: FloatArray
    universal: Universal

    @property
    def median_radius(self) -> float:
        """The median of the radii."""
        return float(np.median(self.radii))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out points, scaled, the class of each, and those whose radius is computed."""

    x: FloatArray
    codes: IntArray
    chosen: IntArray
    factor: float

    def network(self, head: Head, geometry: Geometry, stride: float | None) -> Network:
        """Measure one network; `stride` is the length of universal perturbations."""
        right = head.predict(self.x) == self.codes
        radii = np.zeros(len(self.chosen))
        looked = right[self.chosen]
        some = self.chosen[looked]
        radii[looked] = head.radii(self.x[some], self.codes[some], jobs=None) / self.factor
        if stride is None:
            stride = STRIDE * float(np.median(radii))
        return Network(
            accuracy=float(right.mean()),
            averaging_index=geometry.averaging_index(head.net.weights, neuron_classes(head)),
            radii=radii,
            universal=self._universal(head, geometry, right, stride),
        )

    def _universal(self, head: Head, geometry: Geometry, right: Any, radius: float) -> Universal:
        """Return, for each class, the best of some directions that lead out of it.

        Candidates: from the mean of the class to that of each other class, and against the sum of
        its neurons' weights and along that of another class's.
        """
        classes = head.classes
        means = np.stack(
            [
                np.average(
                    geometry.means[geometry.class_of == c],
                    axis=0,
                    weights=geometry.sizes[geometry.class_of == c],
                )
                for c in range(classes)
            ]
        )
        neurons = neuron_classes(head)
        sums = np.stack([head.net.weights[neurons == c].sum(axis=0) for c in range(classes)])
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
                    moved = self.x[own] + radius * self.factor * difference / norm
                    turned = int((head.predict(moved) != c).sum()) if len(own) else 0
                    if turned > best:
                        best, directions[c] = turned, difference / norm
            broken += max(best, 0)
        return Universal(directions, radius, broken / max(1, int(right.sum())))


def neuron_classes(head: Head) -> IntArray:
    """Return the class that each neuron of a head speaks for."""
    net = head.net
    if isinstance(net, BinaryNet):
        return np.where(net.neuron_signs > 0, 1, 0)
    if isinstance(net, MultiClassNet):
        return np.repeat(head.class_of, net.width)
    raise TypeError(f"{net!r} has no classes")

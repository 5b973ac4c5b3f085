"""Robust accuracy as a function of the radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featavg import _checks
from featavg._checks import FloatArray, InputError
from featavg.networks.base import TwoLayerNet
from featavg.progress import counted
from featavg.robustness.attacks import OBJECTIVES, Pgd, check_points, unit_direction

METHODS = ("pgd", "direction")


@dataclass(frozen=True, eq=False, repr=False)
class RobustCurve:
    r"""Robust accuracy over a grid of radii.

    Paper: the curves of Figure 3.

    Attributes
    ----------
    radii : array of shape (radii,)
        The grid.
    broken_at : array of shape (points,)
        For each point the smallest radius at which its decision is known to be wrong: 0 where it
        is wrong without an attack, infinity where no attack succeeded.
    method : str
        How it was found.
    objective : str
        What the attack lowered; "none" for a fixed direction.
    """

    radii: FloatArray
    broken_at: FloatArray
    method: str
    objective: str

    @property
    def accuracy(self) -> FloatArray:
        """The share of points that are still right at each radius; it never rises with it."""
        return np.array([float((self.broken_at > radius).mean()) for radius in self.radii])

    @property
    def half_radius(self) -> float:
        """The radius at which half of the points are broken, interpolated between radii.

        Infinity if the grid ends before; the smallest radius if no more than half are right there.
        """
        return half_radius(self.radii, self.accuracy)

    def __repr__(self) -> str:
        return (
            f"RobustCurve({self.method}, {self.objective}, {len(self.radii)} radii, "
            f"half radius {self.half_radius:.4g})"
        )


def half_radius(radii: ArrayLike, accuracy: ArrayLike) -> float:
    """Return where a curve that never rises crosses one half, by linear interpolation.

    Examples
    --------
    >>> half_radius([0, 1, 2, 3], [1.0, 0.75, 0.25, 0.0])
    1.5
    """
    order = np.argsort(np.asarray(radii))
    r = np.asarray(radii, dtype=np.float64)[order]
    a = np.asarray(accuracy, dtype=np.float64)[order]
    below = np.flatnonzero(a <= 0.5)
    if not len(below):
        return float("inf")
    i = below[0]
    if i == 0:
        return float(r[0])
    return float(r[i - 1] + (a[i - 1] - 0.5) / (a[i - 1] - a[i]) * (r[i] - r[i - 1]))


def robust_curve(
    net: TwoLayerNet,
    x: ArrayLike,
    y: ArrayLike,
    *,
    radii: ArrayLike,
    method: str = "pgd",
    objective: str = "readout",
    rng: np.random.Generator | None = None,
    steps: int = 40,
    restarts: int = 1,
    fine_labels: ArrayLike | None = None,
    direction: ArrayLike | None = None,
    progress: bool = False,
) -> RobustCurve:
    r"""Return the robust accuracy of a network at each radius.

    Paper: Section 3.2 (definition), Figure 3. A perturbation found at one radius lies in every
    larger ball, so a point once broken stays broken and the curve cannot rise.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The network. Robustness is that of its binary decision.
    x, y : arrays of shape (points, coordinates) and (points,)
        The points and their labels in {-1, +1}.
    radii : array-like
        The radii, in any order.
    method : {"pgd", "direction"}
        "pgd" attacks each point by itself and needs `rng`; "direction" moves all of them along one
        `direction`. Both are attacks: they bound robust accuracy from above.
    objective : {"readout", "cross-entropy"}
        What "pgd" lowers, see `pgd`. Report both for a network of many classes, and conclude from
        the `worst` of them.
    rng : numpy.random.Generator
        For "pgd".
    steps, restarts, fine_labels
        For "pgd", see there.
    direction : array of shape (coordinates,)
        For "direction", for example `averaged_direction(sample)`.
    progress : bool
        Whether to report progress on standard error.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> curve = robust_curve(net, [[3.0, 1.0], [2.0, 4.0]], [1, -1], radii=[1.0, 1.5],
    ...                      rng=np.random.default_rng(0))
    >>> curve.accuracy
    array([1., 0.])
    """
    points, labels = check_points(net, x, y)
    grid = _checks.vector("radii", np.atleast_1d(_checks.numbers("radii", radii)))
    if (grid < 0).any():
        raise InputError(f"radii must be at least 0; got {grid.min()}.")
    method = _checks.choice("method", method, METHODS)
    objective = _checks.choice("objective", objective, OBJECTIVES)
    broken_at = np.full(len(points), np.inf)
    broken_at[net.predict(points) != labels] = 0

    if method == "pgd":
        if rng is None:
            raise InputError("method 'pgd' needs rng because it starts at random; got None.")
        generator = _checks.generator(rng)
        attacker = Pgd(net, points, labels, steps, restarts, objective, fine_labels)
    else:
        if direction is None:
            raise InputError("method 'direction' needs a direction; got None.")
        # along the one direction a pre-activation is a straight line in the radius
        slopes = (net.weights @ unit_direction(direction, net.dim))[:, None] * -labels
        z = net.preactivations(points)

    for index in counted(len(grid), "robust curve", enabled=progress):
        radius = np.sort(grid)[index]
        unbroken = broken_at > radius
        if method == "pgd":
            broken, _ = attacker.run(float(radius), generator, unbroken)
        else:
            outputs = net.second_layer @ np.maximum(z + radius * slopes, 0)
            broken = ((net.decision(outputs) > 0) != (labels == 1)) & unbroken
        broken_at[broken] = radius

    return RobustCurve(grid, broken_at, method, objective if method == "pgd" else "none")


def worst(*curves: RobustCurve) -> RobustCurve:
    """Return the curve of a point-wise worst attack: broken as soon as any attack breaks it.

    Examples
    --------
    >>> import numpy as np
    >>> radii = np.array([1.0, 2.0])
    >>> first = RobustCurve(radii, np.array([1.0, np.inf]), "pgd", "readout")
    >>> second = RobustCurve(radii, np.array([np.inf, 2.0]), "pgd", "cross-entropy")
    >>> worst(first, second).accuracy
    array([0.5, 0. ])
    """
    if not curves:
        raise InputError("worst needs at least one curve; got none.")
    first = curves[0]
    for curve in curves[1:]:
        if not np.array_equal(curve.radii, first.radii) or len(curve.broken_at) != len(
            first.broken_at
        ):
            raise InputError("curves must have the same radii and points to be compared.")
    broken_at = np.min([curve.broken_at for curve in curves], axis=0)
    return RobustCurve(first.radii, broken_at, "worst", " and ".join(c.objective for c in curves))


__all__ = ["METHODS", "OBJECTIVES", "RobustCurve", "half_radius", "robust_curve", "worst"]

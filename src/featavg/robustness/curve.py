"""Robust accuracy as a function of the radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.drawing.common import robust_accuracy, shares_above
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import Curves, Line
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.progress import counted
from featavg.robustness.attacks import OBJECTIVES, Pgd, check_points, unit_direction
from featavg.robustness.certify import exact_radii
from featavg.robustness.minimal_norm import minimal_norm
from featavg.robustness.norm import Norm, only_l2
from featavg.robustness.radii import Radii

_ATTACKS = {"pgd": "PGD", "minimal-norm": "a minimal-norm attack", "direction": "one direction"}
METHODS = ("auto", "exact", "bracket", "minimal-norm", "pgd", "direction")


@dataclass(frozen=True, eq=False, repr=False)
class RobustCurve(Pictured):
    r"""Robust accuracy over a grid of radii, between what is known from both sides.

    Paper: the curves of Figure 3.

    Attributes
    ----------
    radii : array of shape (radii,)
        The grid.
    broken_at : array of shape (points,)
        For each point the smallest radius at which its decision is known to be wrong: 0 where it
        is wrong without an attack, infinity where no attack succeeded.
    safe_until : array of shape (points,)
        For each point the radius within which its decision is proved to be right; 0 where nothing
        is proved, as by an attack.
    method : str
        How it was found.
    objective : str
        What an attack lowered; "none" for a proof or a fixed direction.
    norm : str
        The norm that radii are measured in.
    """

    radii: FloatArray
    broken_at: FloatArray
    safe_until: FloatArray
    method: str
    objective: str
    norm: str = "l2"

    @property
    def accuracy(self) -> FloatArray:
        """The share of points not known to be broken at each radius; it never rises.

        Robust accuracy is at most this, and is this where the method is exact.
        """
        return _share_above(self.broken_at, self.radii)

    @property
    def certified(self) -> FloatArray:
        """The share of points proved safe at each radius; robust accuracy is at least this."""
        return _share_above(self.safe_until, self.radii)

    @property
    def half_radius(self) -> float:
        """The radius at which half of the points are broken, interpolated between radii.

        Infinity if the grid ends before; the smallest radius if no more than half are right there.
        """
        return half_radius(self.radii, self.accuracy)

    def lines(self, label: str = "", role: str = "coarse") -> list[Line]:
        """Return what is known of robust accuracy, to be drawn with other curves."""
        attack = _ATTACKS.get(self.method, "attacks")
        how = "" if self.safe_until.any() else f"not broken by {attack}"
        label = ", ".join(filter(None, (label, how)))
        exact = self.method == "exact"
        return shares_above(
            label, self.safe_until, self.broken_at, role, radii=np.sort(self.radii), exact=exact
        )

    def view(self) -> Curves:
        """Return robust accuracy over the radius, from both sides where it is not exact."""
        return robust_accuracy(self.lines(), norm=self.norm)

    def __repr__(self) -> str:
        return (
            f"RobustCurve({self.method}, objective {self.objective}, {len(self.radii)} radii, "
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
    method: str = "auto",
    objective: str = "readout",
    rng: np.random.Generator | None = None,
    steps: int = 40,
    restarts: int = 1,
    fine_labels: ArrayLike | None = None,
    direction: ArrayLike | None = None,
    norm: str | Norm = "l2",
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
    method : {"auto", "exact", "bracket", "minimal-norm", "pgd", "direction"}
        "exact" computes the curve itself, for any readout but "probability"; "bracket"
        certifies it from both sides; "auto" takes "exact" where it is available. Both need a
        piecewise linear activation.
        The others are attacks, which bound it from above only: "minimal-norm" is the best of DDN
        and FMN, "pgd" attacks at each radius and needs `rng`, "direction" moves all points along
        one `direction`.
    objective : {"readout", "cross-entropy"}
        What "pgd" lowers, see `pgd`. Report both for a network of many classes, and conclude from
        the `worst` of them.
    rng : numpy.random.Generator
        For "pgd".
    steps, restarts, fine_labels
        For "pgd", see there.
    direction : array of shape (coordinates,)
        For "direction", for example `averaged_direction(sample)`.
    norm : {"l2"}
        The norm that radii are measured in.
    progress : bool
        Whether to report progress on standard error.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> curve = robust_curve(net, [[3.0, 1.0], [2.0, 4.0]], [1, -1], radii=[1.41, 1.42])
    >>> curve.accuracy                   # both points are sqrt(2) = 1.4142 from the boundary
    array([1., 0.])
    """
    points, labels = check_points(net, x, y)
    grid = checks.vector("radii", np.atleast_1d(checks.numbers("radii", radii)))
    if (grid < 0).any():
        raise InputError(f"radii must be at least 0; got {grid.min()}.")
    objective = checks.choice("objective", objective, OBJECTIVES)
    method = _applicable(net, checks.choice("method", method, METHODS))
    size = only_l2(norm, "robust_curve")
    if method in ("exact", "bracket"):
        found = exact_radii(net, points, labels, norm=size, certificates=False, progress=progress)
        return _curve(grid, found, method, "none")
    if method == "minimal-norm":
        return _curve(grid, minimal_norm(net, points, labels, norm=size), method, "readout")
    if method == "direction":
        if direction is None:
            raise InputError("method 'direction' needs a direction; got None.")
        broken_at = _broken_along(net, points, labels, grid, unit_direction(direction, net.dim))
        return RobustCurve(grid, broken_at, np.zeros(len(labels)), method, "none", size.name)
    if rng is None:
        raise InputError("method 'pgd' needs rng because it starts at random; got None.")
    generator = checks.generator(rng)
    attacker = Pgd(net, points, labels, steps, restarts, objective, fine_labels)
    broken_at = _unbroken(net, points, labels)
    for index in counted(len(grid), "robust curve", enabled=progress):
        radius = float(np.sort(grid)[index])
        broken, _ = attacker.run(radius, generator, broken_at > radius)
        broken_at[broken] = radius
    return RobustCurve(grid, broken_at, np.zeros(len(labels)), method, objective, size.name)


def worst(*curves: RobustCurve) -> RobustCurve:
    """Return all that is known: a point is broken, or safe, where any of the curves says so.

    Examples
    --------
    >>> import numpy as np
    >>> radii, nothing = np.array([1.0, 2.0]), np.zeros(2)
    >>> first = RobustCurve(radii, np.array([1.0, np.inf]), nothing, "pgd", "readout")
    >>> second = RobustCurve(radii, np.array([np.inf, 2.0]), nothing, "pgd", "cross-entropy")
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
        if curve.norm != first.norm:
            raise InputError(
                f"curves must have the same norm to be compared; got {first.norm} and {curve.norm}."
            )
    return RobustCurve(
        first.radii,
        np.min([curve.broken_at for curve in curves], axis=0),
        np.max([curve.safe_until for curve in curves], axis=0),
        "worst",
        " and ".join(dict.fromkeys(c.objective for c in curves)),
        first.norm,
    )


def _share_above(values: FloatArray, radii: FloatArray) -> FloatArray:
    return np.array([float((values > radius).mean()) for radius in radii])


def _curve(grid: FloatArray, found: Radii, method: str, objective: str) -> RobustCurve:
    return RobustCurve(grid, found.upper, found.lower, method, objective, found.norm)


def _applicable(net: TwoLayerNet, method: str) -> str:
    """Return the method that "auto" stands for, and refuse "exact" where it is not."""
    inexact = net.readout == "probability"
    if method == "auto":
        return "bracket" if inexact else "exact"
    if method == "exact" and inexact:
        raise InputError(
            "method 'exact' is not available for the probability readout; use method='bracket', "
            "or net.with_readout('argmax')."
        )
    return method


def _unbroken(net: TwoLayerNet, x: FloatArray, y: IntArray) -> FloatArray:
    """Return infinity for every point, and 0 for those that are wrong without an attack."""
    return np.where(net.predict(x) != y, 0.0, np.inf)


def _broken_along(
    net: TwoLayerNet, x: FloatArray, y: IntArray, grid: FloatArray, direction: FloatArray
) -> FloatArray:
    """Return the first radius at which moving along a direction breaks each point."""
    broken_at = _unbroken(net, x, y)
    # along the one direction a pre-activation is a straight line in the radius
    slopes = (net.weights @ direction)[:, None] * -y
    z = net.preactivations(x)
    for radius in np.sort(grid):
        broken = (net.decision(net.outputs_at(z + radius * slopes)) > 0) != (y == 1)
        broken_at[broken & (broken_at > radius)] = radius
    return broken_at

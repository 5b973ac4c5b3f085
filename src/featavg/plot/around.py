"""The picture of what is around a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray
from featavg.drawing.pictured import axes_or_new
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.robustness import exact_radii
from featavg.robustness.models import as_shallow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 161
_REACH = 2.0  # of the picture, in radii


def boundary(
    net: Any,
    x: ArrayLike,
    *,
    toward: ArrayLike | None = None,
    reach: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the decision of a network around a point, in the plane of its shortest way out.

    Paper: Figure 1. The horizontal direction is the smallest perturbation that turns the decision,
    and the circle the ball within which nothing turns it.

    Parameters
    ----------
    net : network
        Anything that `exact_radii` takes.
    x : array of shape (coordinates,)
        The point.
    toward : array of shape (coordinates,), optional
        A direction that the plane is to contain, such as `averaged_direction`; the way out along it
        is drawn too. By default the plane contains the origin.
    reach : float, optional
        How far the picture reaches; twice the radius by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, featavg as fa
    >>> rng = np.random.default_rng(0)
    >>> train = fa.MultiCluster(clusters=6, dim=1000).sample(300, rng=rng)
    >>> net = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng, readout="argmax")
    >>> net = fa.descend(net, train, learning_rate=0.003, steps=100).net
    >>> other_side = -train.y[0] * fa.averaged_direction(train)
    >>> fa.plot.boundary(net, train.x[0], toward=other_side).get_title()
    'the decision turns at a distance of 21.9'
    """
    from featavg.drawing.plane import Way, draw_plane
    from featavg.drawing.style import FINE, style

    point = checks.vector("x", x).astype(np.float64)
    found = exact_radii(net, point[None])
    rho = found.perturbations[0].astype(np.float64)
    radius = float(np.linalg.norm(rho))
    if not (radius > 0 and np.isfinite(found.upper[0])):
        raise InputError("x must be a point whose decision a perturbation turns; none was found.")
    plane = _plane(point, rho, toward)
    far = _REACH * radius if reach is None else checks.scale("reach", reach)
    margin = _margin(net, point)

    def at(steps: FloatArray) -> FloatArray:
        return margin(point + steps @ plane)

    ticks = np.linspace(-far, far, _GRID)
    across, along = np.meshgrid(ticks, ticks, indexing="ij")
    margins = at(np.stack([along.ravel(), across.ravel()], axis=1)).reshape(across.shape)
    ways = [Way(f"shortest way out, {radius:.3g}", (radius, 0.0))]
    if toward is not None:
        ways.append(_way_toward(plane, checks.vector("toward", toward), far, at))
    lower = float(found.lower[0])
    title = f"the decision turns at a distance of {radius:.3g}"
    if not found.exact[0]:
        title = f"the decision turns at a distance from {lower:.3g} to {radius:.3g}"
    with style():
        axes = axes_or_new(ax, (5.6, 5.4))
        names = "along the shortest way out", "across it"
        draw_plane(axes, ticks, margins, ways=ways, safe=lower, colour=FINE, labels=names)
        axes.set_title(title)
    return axes


def _plane(x: FloatArray, rho: FloatArray, toward: ArrayLike | None) -> FloatArray:
    """Return two orthonormal directions, the first that of rho; shape (2, coordinates)."""
    first = rho / np.linalg.norm(rho)
    candidates = [x, np.eye(len(x))[np.abs(first).argmin()]]
    if toward is not None:
        given = checks.vector("toward", toward, length=len(x)).astype(np.float64)
        if not given.any():
            raise InputError("toward must not be zero because it is a direction.")
        candidates.insert(0, given)
    for candidate in candidates:
        rest = candidate - (candidate @ first) * first
        size = np.linalg.norm(rest)
        if size > 1e-9 * np.linalg.norm(candidate):
            return np.stack([first, rest / size])
    raise InputError("x must have at least two coordinates because a plane is drawn.")


def _way_toward(
    plane: FloatArray, toward: FloatArray, far: float, at: Callable[[FloatArray], FloatArray]
) -> Any:
    """Return the way out along a direction of the plane, as far as the picture reaches."""
    from featavg.drawing.plane import Way

    direction = plane @ toward / np.linalg.norm(toward)
    lengths = np.linspace(0, far, 20 * _GRID)
    turned = np.flatnonzero(at(lengths[:, None] * direction) < 0)
    end = lengths[turned[0]] if len(turned) else far
    label = f"along the given direction, {end:.3g}" if len(turned) else "the given direction"
    return Way(label, tuple(end * direction), turns=bool(len(turned)), dash="--")


def _margin(net: Any, x: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the margin of the decision at x, as a function of points."""
    if isinstance(net, TwoLayerNet):
        side = int(net.predict(x[None])[0])
        return lambda points: side * net.score(points)
    shallow = as_shallow(net)
    own = shallow.labels == shallow.predict(x[None])[0]

    def margin(points: FloatArray) -> FloatArray:
        outputs = shallow.outputs(points)
        return outputs[own].max(axis=0) - outputs[~own].max(axis=0)

    return margin

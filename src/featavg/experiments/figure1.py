"""Figure 1 made real: a point, its boundary, and the way out that averaging opens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.drawing.views import Curves, Line, Mark, Panel, View
from featavg.lab.expectations import Expectation, at_least, within
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import parameter
from featavg.lab.setting import SyntheticSetting
from featavg.lab.tables import Measurements, Results, Table, prefixed, tidy_rows
from featavg.networks.base import TwoLayerNet
from featavg.robustness import averaged_direction, exact_radii

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GRID = 141  # points of a slice along each side
_NETS = ("coarse", "fine")


@dataclass(frozen=True, kw_only=True)
class Parameters(SyntheticSetting):
    """The synthetic setting; the picture is of the test point with the median radius."""

    test_samples: int = parameter(200, "the number of test points")
    extent: float = parameter(1.4, "how far the picture reaches, in units of √(d/2)")

    @property
    def reach(self) -> float:
        """How far the picture reaches."""
        return self.extent * self.predicted[1]


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks and look around one point of each."""
    pair = parameters.train(seed)
    x, y = pair.test.x, pair.test.y
    nets = {"coarse": pair.coarse.net, "fine": pair.fine.net.with_readout("argmax")}
    towards_other = averaged_direction(pair.train)
    radii = {name: exact_radii(net, x, y) for name, net in nets.items()}
    chosen = int(np.argsort(radii["coarse"].upper)[len(y) // 2])
    found: dict[str, Any] = {}
    for name, net in nets.items():
        rho = radii[name].perturbations
        norms = np.linalg.norm(rho, axis=1)
        cosines = (rho @ towards_other) * -y / np.where(norms > 0, norms, 1)
        found[f"{name}_radius"] = np.median(radii[name].upper)
        found[f"{name}_cosine"] = np.median(cosines)
        point = x[chosen], int(y[chosen]), rho[chosen]
        found |= prefixed(name, _picture(net, *point, towards_other, parameters.reach))
    return found | {"radius_ratio": found["fine_radius"] / found["coarse_radius"]}


def _picture(
    net: TwoLayerNet, x: FloatArray, y: int, rho: FloatArray, averaged: FloatArray, reach: float
) -> Measurements:
    """Return the margin in the plane of two directions, and along each of them.

    The first axis is the averaged direction, the second what the exact perturbation adds to it.
    """
    first = -y * averaged
    rest = rho - (rho @ first) * first
    if np.linalg.norm(rest) < 1e-9 * np.linalg.norm(rho):  # the same direction: any other will do
        rest = x - (x @ first) * first
    second = rest / np.linalg.norm(rest)
    exact = np.array([rho @ first, rho @ second])
    z, slopes = net.preactivations(x[None]), net.weights @ np.stack([first, second], axis=1)

    def margin(steps: FloatArray) -> FloatArray:
        """Return y times the decision after steps (2, points) along the two directions."""
        moved = net.second_layer @ np.maximum(z + slopes @ steps, 0)
        return y * net.decision(moved)

    at_point = margin(np.zeros((2, 1)))[0]
    ticks = np.linspace(-0.35 * reach, reach, _GRID)
    across, along = np.meshgrid(ticks, ticks, indexing="ij")
    plane = margin(np.stack([along.ravel(), across.ravel()])).reshape(_GRID, _GRID)
    lengths = np.linspace(0, reach, _GRID)
    return {
        "plane": plane / at_point,
        "along_averaged": margin(np.outer([1.0, 0.0], lengths)) / at_point,
        "along_exact": margin(np.outer(exact / np.linalg.norm(exact), lengths)) / at_point,
        "exact": exact,
    }


def expects(parameters: Parameters) -> list[Expectation]:
    r"""Return what averaging means for the way out.

    The exact perturbation of the averaging network is the averaged direction, up to the part of it
    that moves along the noise of the point itself; that of the decoupling network leads from one
    centre to one other, which has the cosine :math:`2/\sqrt{2k}` with it.
    """
    k = parameters.clusters
    one_to_one = 2 / np.sqrt(2 * k)
    cosine, ratio = "cosine of exact and averaged direction", np.sqrt(k / 2)
    low, high, theory = one_to_one - 0.1, one_to_one + 0.1, f"{one_to_one:.3f}"
    gain = "radius of the decoupling over the averaging one"
    return [
        at_least(f"2-class: {cosine}", "coarse_cosine", 0.9, "1"),
        Expectation(f"{k}-class: {cosine}", "fine_cosine", low, high, theory),
        within(0.1, gain, "radius_ratio", ratio, f"{ratio:.3f}"),
    ]


def table(parameters: Parameters, results: Results) -> Table:
    """Return the margin along both directions."""
    lengths = np.linspace(0, parameters.reach, _GRID)
    rows: list[tuple[object, ...]] = []
    for name, classes in zip(_NETS, (2, parameters.clusters), strict=True):
        for way in ("averaged", "exact"):
            margins = results[f"{name}_along_{way}"]
            rows += tidy_rows(margins, label=(classes, way), axes=[lengths.tolist()])
    return Table(("seed", "classes", "direction", "radius", "relative_margin"), rows)


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return the score along both directions, a point of each seed."""
    lengths = np.linspace(0, parameters.reach, _GRID)
    lines = [
        Line.over_seeds(
            f"{classes}-class, {text}", lengths, results[f"{net}_along_{way}"], net, dash
        )
        for net, classes in (("coarse", 2), ("fine", parameters.clusters))
        for way, text, dash in (
            ("exact", "along the exact perturbation", "solid"),
            ("averaged", "along the averaged direction", "dashed"),
        )
    ]
    marks = [*parameters.marks(parameters.reach), Mark("", 0.0, "y")]
    title, y = "Score of the true side: wrong below 0", "relative to the score at the point"
    panel = Panel(title, y, lines, marks)
    start = float(parameters.predicted[0])
    return [Curves("Two ways out", "radius (L2)", [panel], start=start)]


def plot(parameters: Parameters, results: Results) -> Figure:
    """Draw the plane of the two directions for both networks, of the first seed, and the views.

    The planes are only in this figure: views have no regions, boundaries or circles.
    """
    from featavg.drawing import draw
    from featavg.drawing.style import ROLES, new_figure, style

    (ways,) = views(parameters, results)
    with style():
        figure, panels = new_figure(15, 5.4, columns=3)
        k = parameters.clusters
        titles = "2-class: the averaging network", f"{k}-class: the decoupling one"
        for panel, name, title in zip(panels, _NETS, titles, strict=False):
            plane, exact = (results[f"{name}_{key}"][0] for key in ("plane", "exact"))
            _plot_plane(panel, parameters.reach, plane, exact, ROLES[name])
            panel.set_title(title)
        draw.onto(ways, panels[2:])
    return figure


def _plot_plane(
    axes: Axes, reach: float, plane: FloatArray, exact: FloatArray, colour: str
) -> None:
    from featavg.drawing.plane import Way, draw_plane

    ticks = np.linspace(-0.35 * reach, reach, _GRID)
    radius = float(np.linalg.norm(exact))
    crossing = np.flatnonzero(plane[np.abs(ticks).argmin()] < 0)
    broken = crossing[ticks[crossing] > 0]
    end = float(ticks[broken[0]]) if len(broken) else np.inf
    averaged = f"{end:.1f}" if len(broken) else "none in sight"
    along = (min(end, reach), 0.0)
    ways = [
        Way(f"averaged direction, {averaged}", along, turns=bool(len(broken)), dash="--"),
        Way(f"exact perturbation, {radius:.1f}", (float(exact[0]), float(exact[1]))),
    ]
    labels = "along the averaged direction", "across it"
    draw_plane(axes, ticks, plane, ways=ways, safe=radius, colour=colour, labels=labels)


EXPERIMENT = Experiment.of_module(
    __name__,
    id="figure1",
    calibrated=True,
    title="Averaging leaves a short way out, the same for every point",
    paper="Figure 1",
    parameters=Parameters(),
    quick=replace(Parameters(), dim=1536, samples=500, test_samples=60),
    series="figures",
)

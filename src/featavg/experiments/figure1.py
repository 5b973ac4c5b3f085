"""Figure 1 made real: a point, its boundary, and the way out that averaging opens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.lab.experiment import (
    Expectation,
    Experiment,
    Measurements,
    Results,
    Table,
    parameter,
)
from featavg.lab.setting import SyntheticSetting
from featavg.networks.base import TwoLayerNet
from featavg.plot.views import Curves, Line, Mark, Panel, View
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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "extent", checks.scale("extent", self.extent))

    @property
    def reach(self) -> float:
        """How far the picture reaches."""
        return self.extent * self.predicted[1]


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks and look around one point of each."""
    pair = parameters.train(seed)
    x, y = pair.test.x, pair.test.y
    nets = {"coarse": pair.coarse.net, "fine": pair.fine_net.with_readout("argmax")}
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
        found |= {
            f"{name}_{key}": value
            for key, value in _picture(
                net, x[chosen], int(y[chosen]), rho[chosen], towards_other, parameters.reach
            ).items()
        }
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
    return [
        Expectation(
            "2-class: cosine of exact and averaged direction", "coarse_cosine", low=0.9, paper="1"
        ),
        Expectation(
            f"{k}-class: cosine of exact and averaged direction",
            "fine_cosine",
            one_to_one - 0.1,
            one_to_one + 0.1,
            paper=f"{one_to_one:.3f}",
        ),
        Expectation(
            "radius of the decoupling over the averaging one",
            "radius_ratio",
            0.9 * np.sqrt(k / 2),
            1.1 * np.sqrt(k / 2),
            paper=f"{np.sqrt(k / 2):.3f}",
        ),
    ]


def table(parameters: Parameters, results: Results) -> Table:
    """Return the margin along both directions."""
    lengths = np.linspace(0, parameters.reach, _GRID)
    rows = [
        (seed, 2 if name == "coarse" else parameters.clusters, way, float(lengths[i]), float(value))
        for name in _NETS
        for way in ("averaged", "exact")
        for (seed, i), value in np.ndenumerate(results[f"{name}_along_{way}"])
    ]
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
    marks = [
        Mark(f"{formula} = {radius:.1f}", radius)
        for formula, radius in zip(parameters.formulas, parameters.predicted, strict=True)
        if radius <= parameters.reach
    ]
    marks.append(Mark("the decision turns", 0.0, "y"))
    panel = Panel("Score of the true side, relative to that at the point", "score", lines, marks)
    start = float(parameters.predicted[0])
    return [Curves("Two ways out", "radius (L2)", [panel], start=start)]


def plot(parameters: Parameters, results: Results) -> Figure:
    """Draw the plane and the two directions for both networks, of the first seed."""
    from featavg.plot import style as plots

    titles = (
        "2-class labels: the averaging network",
        f"{parameters.clusters}-class labels: the decoupling network",
    )
    with plots.style():
        figure, panels = plots.new_figure(11, 8.6, columns=2, rows=2)
        for column, (name, title) in enumerate(zip(_NETS, titles, strict=True)):
            colour = plots.COARSE if name == "coarse" else plots.FINE
            one = {key: results[f"{name}_{key}"][0] for key in ("plane", "exact")}
            lines = {w: results[f"{name}_along_{w}"][0] for w in ("averaged", "exact")}
            _plot_plane(panels[column], parameters.reach, one["plane"], one["exact"], colour)
            panels[column].set_title(title)
            _plot_lines(panels[2 + column], parameters, lines, colour)
    return figure


def _plot_plane(
    axes: Axes, reach: float, plane: FloatArray, exact: FloatArray, colour: str
) -> None:
    from featavg.plot import style as plots

    ticks = np.linspace(-0.35 * reach, reach, _GRID)
    radius = float(np.linalg.norm(exact))
    axes.contourf(ticks, ticks, plane, levels=[-np.inf, 0, np.inf], colors=["#dddddd", "white"])
    axes.contour(ticks, ticks, plane, levels=[0], colors=[colour], linewidths=2)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(radius * np.cos(angle), radius * np.sin(angle), ":", color=plots.QUIET, linewidth=1)
    crossing = np.flatnonzero(plane[np.abs(ticks).argmin()] < 0)
    broken = crossing[ticks[crossing] > 0]
    end = float(ticks[broken[0]]) if len(broken) else np.inf
    averaged = (
        f"averaged direction, {end:.1f}" if len(broken) else "averaged direction, none in sight"
    )
    for tip, style, label in (
        ((min(end, reach), 0.0), "--", averaged),
        (tuple(exact), "-", f"exact perturbation, {radius:.1f}"),
    ):
        axes.plot([0, tip[0]], [0, tip[1]], style, color=plots.PAPER, linewidth=1.3, label=label)
        if tip[0] < reach:
            axes.plot(*tip, "o", color=plots.PAPER, markersize=4)
    axes.plot(0, 0, "*", color=colour, markersize=13, label="the point")
    axes.set(xlabel="along the averaged direction", ylabel="across it", aspect="equal")
    axes.set(xlim=(ticks[0], ticks[-1]), ylim=(ticks[0], ticks[-1]))
    axes.text(
        0.98,
        0.95,
        "grey: the decision is wrong",
        transform=axes.transAxes,
        ha="right",
        fontsize=8.5,
    )
    axes.legend(loc="lower right", fontsize=8.5, frameon=True, framealpha=0.9)


def _plot_lines(
    axes: Axes, parameters: Parameters, lines: dict[str, FloatArray], colour: str
) -> None:
    from featavg.plot import style as plots

    lengths = np.linspace(0, parameters.reach, _GRID)
    axes.plot(lengths, lines["exact"], color=colour, label="along the exact perturbation")
    axes.plot(lengths, lines["averaged"], "--", color=colour, label="along the averaged direction")
    axes.axhline(0, color=plots.QUIET, linewidth=0.8)
    for name, radius in zip(parameters.formulas, parameters.predicted, strict=True):
        plots.mark_radius(axes, f"{name} = {radius:.1f}", radius, limit=parameters.reach)
    axes.set(xlabel="radius (L2)", ylabel="score of the true side, relative")
    axes.set(xlim=(0, parameters.reach))
    axes.legend(loc="lower left", fontsize=8.5)


EXPERIMENT = Experiment(
    id="figure1",
    title="Averaging leaves a short way out, the same for every point",
    paper="Figure 1",
    parameters=Parameters(),
    quick=replace(Parameters(), dim=1536, samples=500, test_samples=60),
    measure=measure,
    expects=expects,
    table=table,
    plot=plot,
    views=views,
)

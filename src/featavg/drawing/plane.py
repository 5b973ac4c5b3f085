"""Pictures that are no view: a plane through a point, and lines between groups of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from featavg.arrays import FloatArray
from featavg.drawing.style import PAPER, QUIET

_WRONG = "#dddddd"


@dataclass(frozen=True)
class Way:
    """A line from the point to a place in the plane, with a dot at its end if it turns there."""

    label: str
    end: tuple[float, float]
    turns: bool = True
    dash: str = "-"


def draw_plane(
    axes: Axes,
    ticks: FloatArray,
    margins: FloatArray,
    *,
    ways: Sequence[Way],
    safe: float,
    colour: str,
    labels: tuple[str, str],
) -> None:
    """Draw the decision around a point, which is at the origin: Figure 1.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    ticks : array of shape (places,)
        The coordinates of the grid along both directions.
    margins : array of shape (places, places)
        The margin of the point's own decision, below 0 where it is turned; the first index goes up.
    ways : sequence of Way
        The perturbations to show.
    safe : float
        The radius of the circle within which nothing turns the decision.
    colour : str
        That of the boundary.
    labels : pair of str
        The names of the two directions.
    """
    axes.contourf(ticks, ticks, margins, levels=[-np.inf, 0, np.inf], colors=[_WRONG, "white"])
    if margins.min() < 0 < margins.max():
        axes.contour(ticks, ticks, margins, levels=[0], colors=[colour], linewidths=2)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(safe * np.cos(angle), safe * np.sin(angle), ":", color=QUIET, linewidth=1)
    for way in ways:
        ends = [0, way.end[0]], [0, way.end[1]]
        axes.plot(*ends, way.dash, color=PAPER, linewidth=1.3, label=way.label)
        if way.turns:
            axes.plot(*way.end, "o", color=PAPER, markersize=4)
    axes.plot(0, 0, "*", color=colour, markersize=13, label="the point")
    axes.set(xlabel=labels[0], ylabel=labels[1], aspect="equal")
    axes.set(xlim=(ticks[0], ticks[-1]), ylim=(ticks[0], ticks[-1]))
    corner = axes.transAxes
    axes.text(0.98, 0.95, "grey: another decision", transform=corner, ha="right", fontsize=8.5)
    axes.legend(loc="lower right", fontsize=8.5, frameon=True, framealpha=0.9)


def divide(axes: Axes, groups: ArrayLike) -> None:
    """Draw lines between the groups of the rows and columns of a matrix."""
    for border in np.flatnonzero(np.diff(np.asarray(groups))) + 0.5:
        axes.axhline(border, color="white", linewidth=1.5)
        axes.axvline(border, color="white", linewidth=1.5)

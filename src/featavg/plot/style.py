"""How featavg's figures look."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featavg.arrays import FloatArray

# Okabe and Ito's colours, which colour-blind readers can tell apart: coarse labels are always
# vermilion, fine labels always blue, the paper's own numbers always black.
COARSE, FINE, PAPER, QUIET = "#D55E00", "#0072B2", "#000000", "#777777"
THIRD = "#009E73"

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "featavg",
    "figure.dpi": 100,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the house style, and leave the user's settings alone."""
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        yield


def new_figure(
    width: float, height: float, *, columns: int = 1, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure of a size in inches and its panels, row by row."""
    figure = Figure(figsize=(width, height), layout="compressed")
    panels = figure.subplots(rows, columns, squeeze=False)
    return figure, list(panels.ravel())


def rendered(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a PNG or SVG file, the same each time."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with style():
        figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
    return buffer.getvalue()


def heat_map(axes: Axes, matrix: FloatArray, *, rows: str, columns: str, title: str) -> Any:
    """Draw a matrix of cosines with its numbers, and return the picture for a colour bar."""
    picture = axes.imshow(matrix, cmap="viridis", vmin=0, vmax=1)
    axes.set(xlabel=columns, ylabel=rows, title=title)
    axes.spines[:].set_visible(False)
    for ticks in (axes.set_xticks, axes.set_yticks):
        size = matrix.shape[1] if ticks == axes.set_xticks else matrix.shape[0]
        spacing = max(1, size // 10)
        ticks(np.arange(0, size, spacing), np.arange(1, size + 1, spacing).astype(str))
    if max(matrix.shape) <= 12:
        for (i, j), value in np.ndenumerate(matrix):
            text = f"{value:.2f}".replace("-0.00", "0.00")
            colour = "black" if value > 0.6 else "white"
            axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color=colour)
    return picture


def mark_radius(axes: Axes, label: str, radius: float, *, limit: float) -> None:
    """Draw a vertical line with its name above it, unless it lies beyond the limit."""
    if radius > limit:
        return
    axes.axvline(radius, color=QUIET, linewidth=0.8)
    axes.annotate(
        label,
        (radius, 1.02),
        xycoords=("data", "axes fraction"),
        ha="center",
        color=QUIET,
        fontsize=9,
    )


def band(axes: Axes, x: FloatArray, curves: FloatArray, **line: Any) -> None:
    """Draw the mean of curves (one for each seed) and their standard deviation around it."""
    mean = curves.mean(axis=0)
    (drawn,) = axes.plot(x, mean, **line)
    if len(curves) > 1:
        spread = curves.std(axis=0, ddof=1)
        axes.fill_between(
            x, mean - spread, mean + spread, color=drawn.get_color(), alpha=0.2, linewidth=0
        )

"""How featavg's figures look."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart: coarse labels are always
# vermilion, fine labels always blue, the paper's own numbers always black.
COARSE, FINE, PAPER, QUIET = "#D55E00", "#0072B2", "#000000", "#777777"
ROLES = {"coarse": COARSE, "fine": FINE, "third": "#009E73", "paper": PAPER, "quiet": QUIET}
"""The colour of a line of each role."""

_POINTS: dict[str, Any] = {"linestyle": "none", "markersize": 3.5, "fillstyle": "none"}
LINE_STYLES: dict[str, dict[str, Any]] = {
    "solid": {"linestyle": "-"},
    "dashed": {"linestyle": "--"},
    "dotted": {"linestyle": ":"},
    "dash-dot": {"linestyle": "-."},
    "points": {"marker": "o", **_POINTS},
    "squares": {"marker": "s", **_POINTS},
}
"""How a line of each dash is drawn."""

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "featavg",
    "figure.dpi": 100,
}


def style() -> AbstractContextManager[None]:
    """Draw in the house style, and leave the user's settings alone."""
    return mpl.rc_context(_STYLE)  # type: ignore[arg-type]


def new_figure(
    width: float, height: float, *, columns: int = 1, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure of a size in inches and its panels, row by row."""
    figure = Figure(figsize=(width, height), layout="compressed")
    panels = figure.subplots(rows, columns, squeeze=False)
    return figure, list(panels.ravel())


def rendered(figure: Figure, kind: str, dpi: int = 200) -> bytes:
    """Return a figure as the bytes of a PNG or SVG file, the same each time."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with style():
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()

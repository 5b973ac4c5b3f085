"""What the panels of all kinds of views are made of: titles, marks, legends, ends of axes."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from featavg.arrays import FloatArray
from featavg.drawing.style import QUIET
from featavg.drawing.views import Mark

MOST_COLUMNS = 4
"""How many panels are side by side at most."""

WIDTHS = {1: 6.2, 2: 6.7, 3: 4.9, 4: 4.3}
"""The width of a panel in inches, by the number of columns."""


def draw_title(axes: Axes, title: str, pad: float = 6) -> None:
    """Write the title; a long one that has a colon is broken there."""
    most = round(8.5 * WIDTHS[min(columns_of(axes), MOST_COLUMNS)])
    parts = title.split(": ", maxsplit=1) if len(title) > most else [title]
    lines = [textwrap.fill(part, most) for part in parts]
    axes.set_title(with_subscripts("\n".join(lines)), pad=pad)


def draw_mark(axes: Axes, mark: Mark) -> None:
    """Draw a line across: the name of a vertical one above it, of a horizontal one at its end."""
    text: dict[str, Any] = {"color": QUIET, "fontsize": 9}
    if mark.axis == "x":
        axes.axvline(mark.at, color=QUIET, linewidth=0.8)
        text |= {"xy": (mark.at, 1.02), "xycoords": ("data", "axes fraction"), "ha": "center"}
    else:
        axes.axhline(mark.at, color=QUIET, linewidth=0.8)
        text |= {"xy": (0.99, mark.at), "xycoords": ("axes fraction", "data"), "ha": "right"}
        text |= {"xytext": (0, 3), "textcoords": "offset points"}
    axes.annotate(with_subscripts(mark.label), **text)


def draw_legend(axes: Axes, **options: Any) -> None:
    """Put the legend below the label of the x axis."""
    inches = axes.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]
    below: dict[str, Any] = {
        "bbox_to_anchor": (0.5, 0),
        "bbox_transform": axes.transAxes + ScaledTranslation(0, -0.5, inches),
    }
    axes.legend(loc="upper center", fontsize=8.5, **below, **options)


def columns_of(axes: Axes) -> int:
    """Return how many panels are side by side in the figure."""
    place = axes.get_subplotspec()
    return 1 if place is None else place.get_gridspec().ncols


def ends(values: FloatArray, scale: str) -> tuple[float, float]:
    """Return the smallest and the largest of the values that an axis can show."""
    usable = values[np.isfinite(values) & ((scale != "log") | (values > 0))]
    if not len(usable):
        return (0.1, 1.0) if scale == "log" else (0.0, 1.0)
    return float(usable.min()), float(usable.max())


def numbers(values: Any) -> FloatArray:
    """Return numbers as an array, with NaN for None."""
    return np.array(values, dtype=np.float64)


def as_it_is(text: str) -> str:
    """Return text for Matplotlib to show as it is."""
    return text.replace("$", r"\$")


def with_subscripts(text: str) -> str:
    """Return text with its subscripts, as in σ_w and f_FA, set as such."""
    return re.sub(r"\b([^\W\d_])_(\w+)", r"$\1_{\\mathrm{\2}}$", as_it_is(text))

"""Draw views with Matplotlib: one function for each kind, and `figure` for several together.

The report's page draws the same views with JavaScript by the same rules: colours, dashes, and
where axes end.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from featavg.arrays import FloatArray
from featavg.plot.style import COARSE, FINE, LINE_STYLES, PAPER, QUIET, ROLES, new_figure, style
from featavg.plot.views import (
    HOLDS,
    NOT_STATED,
    VIOLATED,
    ClaimRow,
    Claims,
    Curves,
    HeatMaps,
    Line,
    Mark,
    Panel,
    View,
)

_MOST_COLUMNS = 4
_WIDTHS = {1: 6.2, 2: 6.7, 3: 4.9, 4: 4.3}  # of a panel in inches, by the number of columns
_WRITTEN = 12  # rows and columns up to which a matrix has its numbers written in it
_NAMED = 24  # rows and columns up to which each has its name
_CLAIM_COLUMNS = 3
_DECADES = 6.0  # how far the bar of a claim reaches to each side
_VERDICTS = {HOLDS: FINE, VIOLATED: COARSE, NOT_STATED: QUIET}


def figure(views: Sequence[View]) -> Figure:
    """Return views as one figure, panels row by row and notes below them.

    Of heat maps with a slider, the last frame is drawn.

    Examples
    --------
    >>> line = Line("exact", [0, 1, 2], [1.0, 0.6, 0.0])
    >>> drawn = figure([Curves("Robustness", "radius", [Panel("Exact", "accuracy", [line])])])
    >>> [axes.get_title() for axes in drawn.axes]
    ['Exact']
    """
    counts = [_CLAIM_COLUMNS if isinstance(view, Claims) else len(view.panels) for view in views]
    if not sum(counts):
        raise ValueError("there must be at least one panel to draw.")
    rows = -(-sum(counts) // _MOST_COLUMNS)
    columns = -(-sum(counts) // rows)
    sizes = [_size(view, columns) for view in views]
    bar = 0.8 * any(isinstance(view, HeatMaps) for view in views)
    width = columns * max(width for width, _ in sizes) + bar
    height = rows * max(height for _, height in sizes) + 0.3
    with style():
        made, panels = new_figure(width, height, columns=columns, rows=rows)
        free = iter(panels)
        for view, count in zip(views, counts, strict=True):
            onto(view, [next(free) for _ in range(count)])
        for unused in free:
            unused.remove()
        note = " ".join(_note(view) for view in views).strip()
        if note:
            wrapped = textwrap.fill(_math(note), round(14 * width))
            made.supxlabel(wrapped, fontsize=9, color=QUIET)
    return made


def onto(view: View, panels: Sequence[Axes]) -> None:
    """Draw the panels of a view onto as many axes; a view of claims is spread evenly."""
    if isinstance(view, Curves):
        for axes, panel in zip(panels, view.panels, strict=True):
            curves(axes, view, panel)
    elif isinstance(view, HeatMaps):
        shared = ("rows", "columns", "low", "high", "row_names", "column_names")
        look = {name: getattr(view, name) for name in shared}
        for axes, matrix in zip(panels, view.panels, strict=True):
            picture = heat_map(axes, _numbers(matrix.mean[-1]), title=matrix.title, **look)
        panels[0].figure.colorbar(picture, ax=list(panels), label=view.value, shrink=0.9)
    else:
        most = -(-len(view.claims) // len(panels))
        for i, axes in enumerate(panels):
            claims(axes, view.claims[i * most : (i + 1) * most], height=most)


def heat_map(
    axes: Axes,
    matrix: ArrayLike,
    *,
    title: str = "",
    rows: str = "",
    columns: str = "",
    low: float = 0.0,
    high: float = 1.0,
    row_names: Sequence[str] = (),
    column_names: Sequence[str] = (),
) -> Any:
    """Draw a matrix, with its numbers if it is small; return the picture for a colour bar."""
    values = np.asarray(matrix, dtype=np.float64)
    picture = axes.imshow(values, cmap="viridis", vmin=low, vmax=high, rasterized=values.size > 1e4)
    axes.set(xlabel=_math(columns), ylabel=_math(rows))
    _title(axes, title)
    axes.spines[:].set_visible(False)
    for ticks, names, size in (
        (axes.set_xticks, column_names, values.shape[1]),
        (axes.set_yticks, row_names, values.shape[0]),
    ):
        if names and size <= _NAMED:
            ticks(range(size), [_plain(name) for name in names], fontsize=8)
        else:
            spacing = max(1, size // 10)
            ticks(range(0, size, spacing), [str(i + 1) for i in range(0, size, spacing)])
    if column_names and values.shape[1] <= _NAMED:
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
    if max(values.shape) <= _WRITTEN:
        for (i, j), value in np.ndenumerate(values):
            text = f"{value:.2f}".replace("-0.00", "0.00")
            colour = "black" if value > low + 0.6 * (high - low) else "white"
            axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color=colour)
    return picture


def curves(axes: Axes, view: Curves, panel: Panel) -> None:
    """Draw one panel of a view of curves, its legend below it."""
    named = any(mark.axis == "x" and mark.label for p in view.panels for mark in p.marks)
    _title(axes, panel.title, pad=20 if named else 6)
    axes.set(xlabel=_math(view.x), xscale=view.x_scale, yscale=panel.y_scale)
    if panel.y != panel.title:
        axes.set_ylabel(_math(panel.y))
    axes.set(xlim=_reach(view), ylim=_range(panel))
    for line in panel.lines:
        _line(axes, line)
    for mark in panel.marks:
        _mark(axes, mark)
    below: dict[str, Any] = {
        "bbox_to_anchor": (0.5, 0),
        "bbox_transform": axes.transAxes
        + ScaledTranslation(0, -0.5, axes.get_figure(root=True).dpi_scale_trans),  # type: ignore[union-attr]
    }
    if any(line.label for line in panel.lines):
        columns = _legend_columns(_columns(axes))
        axes.legend(loc="upper center", fontsize=8.5, ncols=columns, **below)


def claims(axes: Axes, rows: Sequence[ClaimRow], *, height: int | None = None) -> None:
    """Draw the slack of claims on a logarithmic axis: a claim holds to the right of 1."""
    for place, row in enumerate(rows):
        unbounded = np.inf if row.verdict == HOLDS else 1.0
        slack = np.clip(unbounded if row.slack is None else row.slack, 10**-_DECADES, 10**_DECADES)
        colour = _VERDICTS[row.verdict]
        axes.barh(place, slack - 1, left=1, color=colour, height=0.7)
        axes.plot(slack, place, "|", color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), [_plain(row.id) for row in rows], fontsize=7)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(_VERDICTS[row.verdict])
    axes.set(xscale="log", xlim=(10 ** -(_DECADES + 0.3), 10 ** (_DECADES + 0.3)))
    axes.set_ylim((height or len(rows)) - 0.4, -0.6)
    axes.axvline(1, color=PAPER, linewidth=0.8)
    axes.set_xlabel(f"slack: bound over measured (cut at $10^{{\\pm {_DECADES:.0f}}}$)")


def _line(axes: Axes, line: Line) -> None:
    x, mean = _numbers(line.x), _numbers(line.mean)
    colour = ROLES[line.role]
    drawn: dict[str, Any] = {"color": colour, "label": _math(line.label), **LINE_STYLES[line.dash]}
    if "marker" in drawn:  # whole or not at all, also at the ends of the axes
        low, high = axes.get_xlim()
        axes.plot(x, np.where((low <= x) & (x <= high), mean, np.nan), clip_on=False, **drawn)
    else:
        axes.plot(x, mean, **drawn)
    if line.std is not None:
        std = np.nan_to_num(_numbers(line.std))
        axes.fill_between(x, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)


def _mark(axes: Axes, mark: Mark) -> None:
    """Draw a line across: the name of a vertical one above it, of a horizontal one at its end."""
    text: dict[str, Any] = {"color": QUIET, "fontsize": 9}
    if mark.axis == "x":
        axes.axvline(mark.at, color=QUIET, linewidth=0.8)
        text |= {"xy": (mark.at, 1.02), "xycoords": ("data", "axes fraction"), "ha": "center"}
    else:
        axes.axhline(mark.at, color=QUIET, linewidth=0.8)
        text |= {"xy": (0.99, mark.at), "xycoords": ("axes fraction", "data"), "ha": "right"}
        text |= {"xytext": (0, 3), "textcoords": "offset points"}
    axes.annotate(_math(mark.label), **text)


def _reach(view: Curves) -> tuple[float, float]:
    """Return the ends of the x axis: those of our own curves, not of the paper's."""
    ours = [line.x for panel in view.panels for line in panel.lines if line.role != "paper"]
    return _ends(np.concatenate([_numbers(x) for x in ours]), view.x_scale)


def _range(panel: Panel) -> tuple[float, float]:
    """Return the ends of the y axis: with 0 where that costs little, and some space."""
    values = [_numbers(line.mean) for line in panel.lines]
    across = [mark.at for mark in panel.marks if mark.axis == "y"]
    low, high = _ends(np.concatenate([*values, across]), panel.y_scale)
    if panel.y_scale == "log":
        return low / 1.3, high * 1.3
    low = 0.0 if 0 < low < 0.9 * high else low
    space = 0.05 * ((high - low) or abs(high) or 1.0)
    return low - (space if low else 0.4 * space), high + space


def _ends(values: FloatArray, scale: str) -> tuple[float, float]:
    usable = values[np.isfinite(values) & ((scale != "log") | (values > 0))]
    if not len(usable):
        return (0.1, 1.0) if scale == "log" else (0.0, 1.0)
    return float(usable.min()), float(usable.max())


def _size(view: View, columns: int) -> tuple[float, float]:
    """Return the width and height of a panel in inches, with the legend below it."""
    width = _WIDTHS[columns]
    if isinstance(view, Claims):
        return width, 0.21 * -(-len(view.claims) // _CLAIM_COLUMNS) + 1.0
    if isinstance(view, HeatMaps):
        width = min(width, _WIDTHS[3])
        return width, 0.85 * width + 1.0
    entries = max(len(panel.lines) for panel in view.panels)
    return width, 3.6 + 0.19 * -(-entries // _legend_columns(columns))


def _columns(axes: Axes) -> int:
    """Return how many panels are side by side in the figure."""
    place = axes.get_subplotspec()
    return 1 if place is None else place.get_gridspec().ncols


def _legend_columns(columns: int) -> int:
    return 2 if columns <= 2 else 1


def _note(view: View) -> str:
    if not isinstance(view, Claims):
        return view.note
    counts = Counter(row.verdict for row in view.claims)
    return (
        f"{view.title}: {counts[HOLDS]} hold (blue), {counts[VIOLATED]} are violated (orange), "
        f"{counts[NOT_STATED]} are {NOT_STATED} (grey)."
    )


def _title(axes: Axes, title: str, pad: float = 6) -> None:
    """Write the title; a long one that has a colon is broken there."""
    most = round(8.5 * _WIDTHS[min(_columns(axes), _MOST_COLUMNS)])
    parts = title.split(": ", maxsplit=1) if len(title) > most else [title]
    lines = [textwrap.fill(part, most) for part in parts]
    axes.set_title(_math("\n".join(lines)), pad=pad)


def _numbers(values: Any) -> FloatArray:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def _plain(text: str) -> str:
    """Return text for Matplotlib to show as it is."""
    return text.replace("$", r"\$")


def _math(text: str) -> str:
    """Return text with its subscripts, as in σ_w and f_FA, set as such."""
    return re.sub(r"\b([^\W\d_])_(\w+)", r"$\1_{\\mathrm{\2}}$", _plain(text))

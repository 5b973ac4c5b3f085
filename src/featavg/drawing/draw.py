"""Draw views with Matplotlib: one function for each kind, and `figure` for several together.

The report's page draws the same views with JavaScript by the same rules: colours, dashes, and
where axes end.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from featavg.drawing import claims, dots
from featavg.drawing.parts import (
    MOST_COLUMNS,
    WIDTHS,
    as_it_is,
    columns_of,
    draw_legend,
    draw_mark,
    draw_title,
    ends,
    numbers,
    with_subscripts,
)
from featavg.drawing.style import LINE_STYLES, QUIET, ROLES, style
from featavg.drawing.views import (
    HOLDS,
    NOT_STATED,
    VIOLATED,
    Claims,
    Curves,
    Dots,
    HeatMaps,
    Line,
    Panel,
    View,
)

_WRITTEN = 12  # rows and columns up to which a matrix has its numbers written in it
_NAMED = 24  # rows and columns up to which each has its name
_POWERS_OF_TEN = 100  # ratio of the ends of an axis from which its ticks are powers of ten


def figure(views: Sequence[View]) -> Figure:
    """Return views as one figure, panels row by row and notes below them.

    Of heat maps with a slider, the last frame is drawn. Where there are dots, each view has rows of
    its own, below its title.

    Examples
    --------
    >>> line = Line("exact", [0, 1, 2], [1.0, 0.6, 0.0])
    >>> drawn = figure([Curves("Robustness", "radius", [Panel("Exact", "accuracy", [line])])])
    >>> [axes.get_title() for axes in drawn.axes]
    ['Exact']
    """
    if not sum(_panels(view) for view in views):
        raise ValueError("there must be at least one panel to draw.")
    if not any(isinstance(view, Dots) for view in views):
        grids = [_Grid(views)]
    else:
        grids = [_Grid([view]) for view in views if _panels(view)]
    width = max(grid.width for grid in grids)
    heights = [grid.height for grid in grids]
    with style():
        made = Figure(figsize=(width, sum(heights)), layout="compressed")
        for grid, place in zip(grids, _stacked(made, heights), strict=True):
            grid.draw(place)
            if any(isinstance(view, Dots) for view in views):
                place.suptitle(with_subscripts(grid.views[0].title), fontsize=12)
    return made


@dataclass(frozen=True)
class _Grid:
    """Views whose panels fill one grid, row by row."""

    views: Sequence[View]

    @property
    def shape(self) -> tuple[int, int]:
        panels = sum(_panels(view) for view in self.views)
        rows = -(-panels // MOST_COLUMNS)
        return rows, -(-panels // rows)

    @property
    def width(self) -> float:
        columns = self.shape[1]
        bar = 0.8 * any(isinstance(view, HeatMaps) for view in self.views)
        return columns * max(_size(view, columns)[0] for view in self.views) + bar

    @property
    def height(self) -> float:
        rows, columns = self.shape
        return rows * max(_size(view, columns)[1] for view in self.views) + 0.3

    def draw(self, place: FigureBase) -> None:
        free = iter(place.subplots(*self.shape, squeeze=False).ravel())
        for view in self.views:
            onto(view, [next(free) for _ in range(_panels(view))])
        for unused in free:
            unused.remove()
        note = " ".join(_note(view) for view in self.views).strip()
        if note:
            wrapped = textwrap.fill(with_subscripts(note), round(14 * self.width))
            place.supxlabel(wrapped, fontsize=9, color=QUIET)


def _stacked(made: Figure, heights: Sequence[float]) -> Sequence[FigureBase]:
    """Divide a figure into parts of these heights; a single one is the figure itself."""
    if len(heights) == 1:
        return [made]
    return list(made.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])


def _panels(view: View) -> int:
    return claims.COLUMNS if isinstance(view, Claims) else len(view.panels)


def onto(view: View, panels: Sequence[Axes]) -> None:
    """Draw the panels of a view onto as many axes; a view of claims is spread evenly."""
    if isinstance(view, Curves):
        for axes, panel in zip(panels, view.panels, strict=True):
            curves(axes, view, panel)
    elif isinstance(view, HeatMaps):
        shared = ("rows", "columns", "low", "high", "row_names", "column_names")
        look = {name: getattr(view, name) for name in shared}
        for axes, matrix in zip(panels, view.panels, strict=True):
            picture = heat_map(axes, numbers(matrix.mean[-1]), title=matrix.title, **look)
        panels[0].figure.colorbar(picture, ax=list(panels), label=view.value, shrink=0.9)
    elif isinstance(view, Dots):
        known: set[str] = set()
        for axes, dot_panel in zip(panels, view.panels, strict=True):
            dots.dots(axes, view, dot_panel, named=axes is panels[0], known=known)
            known |= {series.label for series in dot_panel.series}
    else:
        parts = claims.spread(view.claims, len(panels))
        for axes, rows in zip(panels, parts, strict=True):
            claims.draw_claims(axes, rows, height=len(parts[0]))


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
    axes.set(xlabel=with_subscripts(columns), ylabel=with_subscripts(rows))
    draw_title(axes, title)
    axes.spines[:].set_visible(False)
    for ticks, names, size in (
        (axes.set_xticks, column_names, values.shape[1]),
        (axes.set_yticks, row_names, values.shape[0]),
    ):
        if names and size <= _NAMED:
            ticks(range(size), [as_it_is(name) for name in names], fontsize=8)
        else:
            spacing = max(1, size // 10)
            ticks(range(0, size, spacing), [str(i + 1) for i in range(0, size, spacing)])
    if column_names and values.shape[1] <= _NAMED:
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
    if max(values.shape) <= _WRITTEN:
        size = _font_of_cells(axes, values.shape)
        for (i, j), value in np.ndenumerate(values):
            text = f"{value:.2f}".replace("-0.00", "0.00")
            colour = "black" if value > low + 0.6 * (high - low) else "white"
            axes.text(j, i, text, ha="center", va="center", fontsize=size, color=colour)
    return picture


def _font_of_cells(axes: Axes, shape: Sequence[int]) -> float:
    """Return the size in points in which -0.00 fits into a cell of a matrix, at most 6.5."""
    width, height = _inches(axes)
    cell = min((width - 1.6) / shape[1], (height - 0.9) / shape[0])
    return float(np.clip(0.85 * 72 * cell / 2.6, 4.0, 6.5))


def curves(axes: Axes, view: Curves, panel: Panel) -> None:
    """Draw one panel of a view of curves, its legend below it."""
    named = any(mark.axis == "x" and mark.label for p in view.panels for mark in p.marks)
    draw_title(axes, panel.title, pad=20 if named else 6)
    axes.set(xlabel=with_subscripts(view.x), xscale=view.x_scale, yscale=panel.y_scale)
    if panel.y != panel.title:
        axes.set_ylabel(with_subscripts(panel.y))
    axes.set(xlim=_reach(view), ylim=_range(view, panel))
    if view.x_scale == "log":
        _plain_ticks(axes)
    for line in panel.lines:
        _line(axes, line)
    for mark in panel.marks:
        draw_mark(axes, mark)
    if any(line.label for line in panel.lines):
        columns = columns_of(axes)
        labels = [line.label for line in panel.lines]
        draw_legend(axes, ncols=_legend_columns(columns, _inches(axes)[0], labels))


def _line(axes: Axes, line: Line) -> None:
    x, mean = numbers(line.x), numbers(line.mean)
    colour = ROLES[line.role]
    label = with_subscripts(line.label)
    drawn: dict[str, Any] = {"color": colour, "label": label, **LINE_STYLES[line.dash]}
    if "marker" in drawn:  # whole or not at all, also at the ends of the axes
        low, high = axes.get_xlim()
        axes.plot(x, np.where((low <= x) & (x <= high), mean, np.nan), clip_on=False, **drawn)
    else:
        axes.plot(x, mean, **drawn)
    if line.band is not None:
        axes.fill_between(x, *line.band, color=colour, alpha=0.2, linewidth=0)


def _plain_ticks(axes: Axes) -> None:
    """Write 2, 5 and 10 instead of powers of ten where an axis has less than two decades."""
    low, high = axes.get_xlim()
    if high < _POWERS_OF_TEN * low:
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _reach(view: Curves) -> tuple[float, float]:
    """Return the ends of the x axis: those of our own curves, not of the paper's."""
    ours = [line.x for panel in view.panels for line in panel.lines if line.role != "paper"]
    low, high = ends(np.concatenate([numbers(x) for x in ours]), view.x_scale)
    if low == high and view.x_scale == "log":
        return low / 1.3, high * 1.3
    space = _space(low, high) if view.paths or low == high else 0.0
    return low - space, high + space


def _range(view: Curves, panel: Panel) -> tuple[float, float]:
    """Return the ends of the y axis: with 0 where that costs little, and some space.

    Panels with the same y have one scale, so that they can be compared.
    """
    same = [p for p in view.panels if p is panel or (p.y and _axis(p) == _axis(panel))]
    lines = [line for p in same for line in p.lines]
    values = [numbers(line.mean) for line in lines]
    values += [numbers(end) for line in lines for end in (line.low, line.high) if end]
    across = [mark.at for p in same for mark in p.marks if mark.axis == "y"]
    low, high = ends(np.concatenate([*values, across]), panel.y_scale)
    if panel.y_scale == "log":
        return low / 1.3, high * 1.3
    low = 0.0 if 0 < low < 0.9 * high and not view.paths else low
    space = _space(low, high)
    return low - (space if low else 0.4 * space), high + space


def _space(low: float, high: float) -> float:
    return 0.05 * ((high - low) or abs(high) or 1.0)


def _axis(panel: Panel) -> tuple[str, str]:
    return panel.y, panel.y_scale


def _size(view: View, columns: int) -> tuple[float, float]:
    """Return the width and height of a panel in inches, with the legend below it."""
    width = WIDTHS[columns]
    if isinstance(view, Claims):
        return claims.size(view)
    if isinstance(view, Dots):
        return dots.size(view, columns)
    if isinstance(view, HeatMaps):
        width = min(width, WIDTHS[3])
        return width, 0.85 * width + 1.0
    legends = [[line.label for line in panel.lines] for panel in view.panels]
    rows = max(-(-len(one) // _legend_columns(columns, width, one)) for one in legends)
    return width, 3.6 + 0.19 * rows


def _legend_columns(columns: int, width: float, labels: Sequence[str]) -> int:
    """Return 2 where two columns of a legend are sure to fit below a panel of a width in inches."""
    longest = 0.5 + 0.067 * max(map(len, labels), default=0)
    return 2 if columns <= 2 and 2 * longest <= width else 1


def _inches(axes: Axes) -> tuple[float, float]:
    """Return the width and height of the part of the figure that axes are in."""
    place = axes.get_subplotspec()
    rows, columns = (1, 1) if place is None else place.get_gridspec().get_geometry()
    width, height = axes.get_figure(root=True).get_size_inches()  # type: ignore[union-attr]
    return float(width) / columns, float(height) / rows


def _note(view: View) -> str:
    if not isinstance(view, Claims):
        return view.note
    counts = Counter(row.verdict for row in view.claims)
    return (
        f"{view.title}: {counts[HOLDS]} hold (blue), {counts[VIOLATED]} are violated (orange), "
        f"{counts[NOT_STATED]} are {NOT_STATED} (grey)."
    )

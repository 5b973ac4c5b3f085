"""Draw views of dots: a panel of named rows with a dot and its deviation in each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from featavg.arrays import FloatArray
from featavg.drawing.parts import (
    as_it_is,
    draw_legend,
    draw_mark,
    draw_title,
    ends,
    numbers,
    with_subscripts,
)
from featavg.drawing.style import ROLES
from featavg.drawing.views import DotPanel, Dots, DotSeries

_WIDTHS = {1: 6.2, 2: 5.0, 3: 4.0, 4: 3.4}  # of a panel in inches, by the number of columns
_SPREAD = 0.4  # the share of a row over which its dots are spread, where it has several
_LOOKS: dict[str, dict[str, Any]] = {
    "dot": {"marker": "o", "markersize": 5},
    "ring": {"marker": "o", "markersize": 5, "markerfacecolor": "white"},
    "square": {"marker": "s", "markersize": 4.5, "markerfacecolor": "white"},
    "bar": {"marker": "|", "markersize": 11, "markeredgewidth": 1.8},
}


def dots(axes: Axes, view: Dots, panel: DotPanel, *, named: bool, known: Collection[str]) -> None:
    """Draw one panel of a view of dots.

    Parameters
    ----------
    named : bool
        Whether to write the names of the rows at the left.
    known : collection of str
        The labels that the legend of another panel explains already.
    """
    places, heights = _places(view)
    has_marks = any(mark.label for one in view.panels for mark in one.marks)
    draw_title(axes, panel.title, pad=20 if has_marks else 6)
    axes.set(xlabel=with_subscripts(panel.x), xscale=panel.scale, xlim=_reach(view, panel))
    if panel.scale == "linear":
        axes.locator_params(axis="x", nbins=4)
    axes.set_ylim(max(heights) + 0.7, min(heights) - 0.7)
    axes.hlines(places, 0, 1, transform=axes.get_yaxis_transform(), color="#e6e6e6", linewidth=0.7)
    axes.spines["left"].set_visible(False)
    _names(axes, heights, named)
    for mark in panel.marks:
        draw_mark(axes, mark)
    spread = [one for one in panel.series if one.marker != "bar"]
    for series in panel.series:
        aside = 0.0
        if series in spread and len(spread) > 1:
            aside = _SPREAD * (spread.index(series) / (len(spread) - 1) - 0.5)
        _dots(axes, series, places + aside, explained=series.label in known)
    if any(series.label and series.label not in known for series in panel.series):
        draw_legend(axes, ncols=1)


def size(view: Dots, columns: int) -> tuple[float, float]:
    """Return the width and height of a panel in inches, with the legend below it."""
    _, heights = _places(view)
    labels = {series.label for panel in view.panels for series in panel.series}
    return _WIDTHS[columns], 0.235 * len(heights) + 1.5 + 0.19 * len(labels - {""})


def _places(view: Dots) -> tuple[FloatArray, dict[float, tuple[str, bool]]]:
    """Return the height of each row, and what is written at each height: a heading or a name."""
    places, written = [], {}
    height, group = 0.0, ""
    for row, name in enumerate(view.rows):
        if view.groups and view.groups[row] != group:
            group = view.groups[row]
            written[height] = group, True
            height += 1
        places.append(height)
        written[height] = name, False
        height += 1
    return np.array(places), written


def _names(axes: Axes, written: dict[float, tuple[str, bool]], named: bool) -> None:
    axes.set_yticks(
        list(written), [as_it_is(name) if named else "" for name, _ in written.values()]
    )
    axes.tick_params(axis="y", length=0)
    for label, (_, heading) in zip(axes.get_yticklabels(), written.values(), strict=True):
        label.set(fontsize=9, weight="bold" if heading else "normal")


def _dots(axes: Axes, series: DotSeries, heights: FloatArray, *, explained: bool) -> None:
    mean, colour = numbers(series.mean), ROLES[series.role]
    if series.std is not None and series.marker != "bar":
        std = np.nan_to_num(numbers(series.std))
        axes.errorbar(mean, heights, xerr=std, fmt="none", ecolor=colour, elinewidth=1.6)
    label = "_" if explained or not series.label else with_subscripts(series.label)
    look = {"color": colour, "linestyle": "none", **_LOOKS[series.marker]}
    axes.plot(mean, heights, label=label, **look)


def _reach(view: Dots, panel: DotPanel) -> tuple[float, float]:
    """Return the ends of the axis: dots, deviations and marks, and some space.

    Panels with the same axis have one scale, so that they can be compared.
    """
    alike = [one for one in view.panels if _axis(one) == _axis(panel)]
    values = [np.array([mark.at for one in alike for mark in one.marks])]
    for series in (series for one in alike for series in one.series):
        std = 0.0 if series.std is None else np.nan_to_num(numbers(series.std))
        values += [numbers(series.mean) - std, numbers(series.mean) + std]
    low, high = ends(np.concatenate(values), panel.scale)
    if panel.scale == "log":
        return low / 1.3, high * 1.3
    low = min(low, 0.0) if panel.zero else low
    space = 0.06 * ((high - low) or abs(high) or 1.0)
    return low - space, high + space


def _axis(panel: DotPanel) -> tuple[str, str, bool]:
    return panel.x, panel.scale, panel.zero

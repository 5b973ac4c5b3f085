"""What networks do through training, as curves to scrub through."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from featavg.arrays import FloatArray
from featavg.lab.tables import Measurements, Results, Table, stacked, tidy_rows
from featavg.plot.views import DASHES, Curves, Line, Mark, Panel
from featavg.progress import counted, wanted


@dataclass(frozen=True)
class Series:
    """A panel of quantities over time: the label of each by its name in the results.

    `y` is the label of the axis, where the title does not say it.
    """

    title: str
    quantities: Mapping[str, str]
    scale: str = "linear"
    marks: Sequence[Mark] = ()
    y: str = ""


def through_training(
    results: Results,
    *,
    networks: Mapping[str, tuple[str, str]],
    times: Mapping[str, FloatArray],
    series: Sequence[Series],
    x: str,
    x_scale: str,
    title: str = "Through training",
    note: str = "",
) -> Curves:
    """Return panels with a curve of each quantity for each network.

    Parameters
    ----------
    results : mapping
        With the quantity ``own_min`` of the network ``coarse`` as ``coarse_own_min``. A curve
        without a point that its axis can show is left out.
    networks : mapping
        The label and the role (the colour) of each.
    times : mapping
        The recorded times of each, a row for each seed.
    series : sequence of Series
        The panels.
    x, x_scale : str
        What time is, and its axis.
    title, note : str
        What the view is called, and what to know of it.
    """
    panels = []
    for panel in series:
        lines = []
        for network, (name, role) in networks.items():
            for (key, text), dash in zip(panel.quantities.items(), DASHES, strict=False):
                label, values = ": ".join(filter(None, (name, text))), results[f"{network}_{key}"]
                lines.append(Line.over_seeds(label, times[network], values, role, dash))
        least = 0.0 if panel.scale == "log" else -math.inf
        shown = [line for line in lines if any(v is not None and v > least for v in line.mean)]
        panels.append(Panel(panel.title, panel.y or panel.title, shown, panel.marks, panel.scale))
    return Curves(title, x, panels, x_scale, note=note)


def over_time(
    times: int, label: str, measure_at: Callable[[int], Measurements]
) -> dict[str, FloatArray]:
    """Return the measurements at every recorded time but the first, as series."""
    later = counted(times - 1, label, enabled=wanted())
    return stacked([measure_at(index + 1) for index in later])


def table_over_time(results: Results, networks: Mapping[str, int]) -> Table:
    """Return every quantity that is a series over time, for networks with these classes."""
    first = f"{next(iter(networks))}_"
    series = [name for name, value in results.items() if value.ndim == 2]
    names = [name.removeprefix(first) for name in series if name.startswith(first)]
    rows: list[tuple[object, ...]] = []
    for network, classes in networks.items():
        values = (results[f"{network}_{name}"] for name in names)
        rows += tidy_rows(*values, label=(classes,), axes=())
    return Table(("seed", "classes", *names), rows)

"""Curves of quantities over the time of training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from featavg.arrays import FloatArray
from featavg.drawing.views import DASHES, Curves, Line, Mark, Panel
from featavg.lab.tables import Measurements, Results, Table, stacked
from featavg.progress import counted, wanted


@dataclass(frozen=True)
class Series:
    """A panel of quantities over time: the label of each by its name in the results.

    `y` is the label of the axis, where the title does not say it. `bands` have the label of a band
    by the names of its lower and upper end. `roles` gives quantities another colour than that of
    the network; those of one colour differ by their dash.
    """

    title: str
    quantities: Mapping[str, str]
    scale: str = "linear"
    marks: Sequence[Mark] = ()
    y: str = ""
    bands: Mapping[tuple[str, str], str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)

    def lines(
        self, results: Results, network: str, name: str, role: str, times: FloatArray
    ) -> list[Line]:
        """Return the bands and curves of a network."""

        def named(text: str) -> str:
            return ": ".join(filter(None, (name, text)))

        lines = []
        for ends, text in self.bands.items():
            values = np.concatenate([results[f"{network}_{end}"] for end in ends])
            lines.append(Line.between(named(text), times.mean(axis=0), values.T, role))
        for key, text in self.quantities.items():
            colour, values = self.roles.get(key, role), results[f"{network}_{key}"]
            dash = DASHES[sum(line.role == colour for line in lines)]
            lines.append(Line.over_seeds(named(text), times, values, colour, dash))
        return lines


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
        The label and the scale of the axis of time.
    title, note : str
        The title of the view, and a note below it.
    """
    panels = []
    for panel in series:
        lines = [
            line
            for network, (name, role) in networks.items()
            for line in panel.lines(results, network, name, role, times[network])
        ]
        least = 0.0 if panel.scale == "log" else -math.inf
        shown = [line for line in lines if any(v is not None and v > least for v in line.mean)]
        panels.append(Panel(panel.title, panel.y or panel.title, shown, panel.marks, panel.scale))
    return Curves(title, x, panels, x_scale, note=note)


def over_time(
    times: Sequence[int], label: str, measure_at: Callable[[int], Measurements]
) -> dict[str, FloatArray]:
    """Return the measurements at the recorded times with these indices, as series."""
    places = counted(len(times), label, enabled=wanted())
    return stacked([measure_at(times[place]) for place in places])


def table_over_time(results: Results, networks: Mapping[str, int]) -> Table:
    """Return every quantity that is a series over time, for networks with these classes."""
    first = f"{next(iter(networks))}_"
    series = [name for name, value in results.items() if value.ndim == 2]
    names = [name.removeprefix(first) for name in series if name.startswith(first)]
    groups = {(k,): [results[f"{net}_{name}"] for name in names] for net, k in networks.items()}
    return Table.of_groups(("seed", "classes", *names), groups, axes=())

"""What networks do through training, as curves to scrub through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from featavg.arrays import FloatArray
from featavg.lab.experiment import Results
from featavg.plot.views import Curves, Line, Mark, Panel


@dataclass(frozen=True)
class Series:
    """A panel of quantities over time: for each, its name in the results, a label and a dash."""

    title: str
    quantities: Sequence[tuple[str, str, str]]
    scale: str = "linear"
    marks: Sequence[Mark] = ()


def through_training(
    results: Results,
    *,
    networks: Mapping[str, tuple[str, str]],
    times: Mapping[str, FloatArray],
    series: Sequence[Series],
    x: str,
    x_scale: str,
) -> Curves:
    """Return panels with a curve of each quantity for each network.

    Parameters
    ----------
    results : mapping
        With the quantity ``own_min`` of the network ``coarse`` as ``coarse_own_min``.
    networks : mapping
        The label and the role (the colour) of each.
    times : mapping
        The recorded times of each, a row for each seed.
    series : sequence of Series
        The panels.
    x, x_scale : str
        What time is, and its axis.
    """
    panels = [
        Panel(
            panel.title,
            panel.title,
            [
                Line.over_seeds(
                    f"{name}: {label}" if label else name,
                    times[network],
                    results[f"{network}_{key}"],
                    role,
                    dash,
                )
                for network, (name, role) in networks.items()
                for key, label, dash in panel.quantities
            ],
            panel.marks,
            panel.scale,
        )
        for panel in series
    ]
    return Curves("Through training", x, panels, x_scale)

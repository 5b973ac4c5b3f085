"""The tables and the figure of `benchmarks/attacks.py`, from the rows of its two CSV files."""

from __future__ import annotations

from typing import Any

import numpy as np

from featavg.drawing.style import new_figure, rendered, style

Array = np.ndarray[Any, Any]
Row = dict[str, Any]

EDGES = (0.01, 0.1, 1.0)
BANDS = ("gap of at most 1 %", "1 to 10 %", "10 to 100 %", "failed: more, or none found")
TOGETHER = "best of Foolbox and ART"
COLOURS = ("#0072B2", "#8FC1E3", "#F0C27A", "#D55E00")


def tables(rows: list[Row], points: list[Row]) -> str:
    """Return Markdown tables: attacks over all networks, then each network by itself."""
    lines = [
        "| attack | points | failed | within 1 % | median gap | 90 % gap | CPU a point "
        "| best step: failed | within 1 % | median gap |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    names = attacks(rows)
    for name in [*names, TOGETHER]:
        default, best = (gaps_of(points, name, steps) for steps in ("default", "best"))
        seconds = [float(row["cpu_seconds"]) for row in chosen(rows, name, "default")]
        cells = [f"{len(default)}", *figures(default), gap(quantile(default, 0.9))]
        cells += [duration(float(np.mean(seconds))) if seconds else "", *figures(best)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    networks = list(dict.fromkeys(row["network"] for row in rows if row["attack"]))
    lines += ["", "Each network by itself, at the default step size:", ""]
    lines += [f"| median gap / 90 % gap | {' | '.join(networks)} |"]
    lines.append("|---|" + "--:|" * len(networks))
    for name in [*names, TOGETHER]:
        cells = []
        for network in networks:
            here = [row for row in points if row["network"] == network]
            found = gaps_of(here, name, "default")
            both = f"{gap(quantile(found, 0.5))} / {gap(quantile(found, 0.9))}"
            cells.append(both if len(found) else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    exact = {row["network"]: row for row in chosen(rows, "featavg.exact_radii", "default")}
    times = [duration(float(exact[network]["cpu_seconds"])) for network in networks]
    lines.append(f"| *CPU of the exact radius, a point* | {' | '.join(times)} |")
    notes = [f"{row['network']}: {row['note']}." for row in rows if not row["attack"]]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def attacks(rows: list[Row]) -> list[str]:
    """Return the attacks that were run, in order."""
    names = dict.fromkeys(row["attack"] for row in rows if row["points"])
    return [name for name in names if name != "featavg.exact_radii"]


def chosen(rows: list[Row], attack: str, steps: str) -> list[Row]:
    return [row for row in rows if (row["attack"], row["steps"]) == (attack, steps)]


def gaps_of(points: list[Row], attack: str, steps: str) -> Array:
    """Return the gaps of the points that an attack was run on."""
    if attack == TOGETHER:
        return np.array([smallest(row, steps) for row in points])
    values = (row[f"{attack}, {steps}"] for row in points)
    return np.array([float(value) for value in values if value])


def smallest(point: Row, steps: str) -> float:
    """Return the smallest gap of a point by any attack of the libraries; "best" is of all steps."""
    ends = (", default",) if steps == "default" else (", default", ", best")
    columns = [key for key in point if key.endswith(ends) and "featavg" not in key]
    return min(float(point[key]) for key in columns if point[key])


def figures(gaps: Array) -> list[str]:
    """Return the failure rate, the share within 1 % and the median gap as they are printed."""
    failed, near = np.mean(gaps > 1), np.mean(gaps <= 0.01)
    return [f"{100 * failed:.1f} %", f"{100 * near:.0f} %", gap(quantile(gaps, 0.5))]


def quantile(gaps: Array, share: float) -> float:
    return float(np.quantile(gaps, share, method="higher")) if len(gaps) else np.nan


def gap(value: float) -> str:
    if value > 1:
        return "> 100 %"
    return "< 0.01 %" if value < 1e-4 else f"{100 * value:.2g} %"


def duration(seconds: float) -> str:
    """Return a time with two digits."""
    value, unit = (1000 * seconds, "ms") if seconds < 0.995 else (seconds, "s")
    return f"{float(f'{value:.2g}'):g} {unit}"


def draw(rows: list[Row], points: list[Row]) -> bytes:
    """Return a picture: for each attack the shares of points in bands of the gap."""
    names = [*attacks(rows), TOGETHER]
    with style():
        figure, panels = new_figure(10, 0.33 * len(names) + 1.4, columns=2)
        for panel, steps, title in zip(
            panels,
            ("default", "best"),
            ("default step size", "best of the step sizes tried, for each network"),
            strict=True,
        ):
            shares = np.array([banded(gaps_of(points, name, steps)) for name in names])
            starts = np.zeros(len(names))
            for band, share, colour in zip(BANDS, 100 * shares.T, COLOURS, strict=True):
                panel.barh(names, share, left=starts, color=colour, label=band, height=0.75)
                starts += share
            panel.margins(y=0.01)
            panel.invert_yaxis()
            panel.set(xticks=range(0, 101, 25), title=title, xlim=(0, 100), xlabel="points, %")
            panel.tick_params(axis="y", length=0)
        panels[1].set_yticklabels([])
        panels[0].get_xticklabels()[-1].set_horizontalalignment("right")
        panels[1].get_xticklabels()[0].set_horizontalalignment("left")
        figure.legend(*panels[0].get_legend_handles_labels(), ncols=4, loc="outside upper center")
    return rendered(figure, "png")


def banded(gaps: Array) -> Array:
    """Return the share of gaps in each band."""
    bands = np.searchsorted(EDGES, gaps, side="left")
    return np.bincount(bands, minlength=len(BANDS)) / len(gaps)

"""The table, the figure and the words of training on the certified radius."""

from __future__ import annotations

import numpy as np

from featavg.drawing.views import Curves, Line, Mark, Panel, View
from featavg.experiments.beyond.piece_objectives import OBJECTIVES
from featavg.experiments.beyond.radius_setting import STARTS, SWEEPS, Parameters
from featavg.lab.tables import Results, Table

_ROLES = {"mean": "quiet", "soft": "third", "max": "coarse", "radius": "fine"}


def table(_: Parameters, results: Results) -> Table:
    """Return the radius and the index at every value of every sweep."""
    groups = {}
    for sweep in SWEEPS:
        for start in STARTS:
            own = [results[f"{sweep}_{start}_{name}"] for name in ("radius", "index")]
            values, learnable = (results[f"{sweep}_{name}"] for name in ("values", "learnable"))
            groups[sweep, start] = [values, *own, learnable]
    columns = ("seed", "varied", "start", "value", "radius", "index", "learnable")
    return Table.of_groups(columns, groups, axes=())


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return descent from averaged features, and the sweeps."""
    return [
        _over_steps(parameters, results),
        _over_margin(parameters, results),
        *(_sweep(parameters, results, sweep) for sweep in SWEEPS),
    ]


def _over_steps(parameters: Parameters, results: Results) -> Curves:
    times = [0.5, *parameters.times]  # the start at 1/2, since the axis is logarithmic
    lines = [
        Line.over_seeds(objective.title, times, results[f"{name}_index"], _ROLES[name], dash)
        for (name, objective), dash in zip(
            OBJECTIVES.items(), ("solid", "dashed", "solid", "solid"), strict=True
        )
    ]
    title = "From averaged features: only the largest piece parts them"
    panel = Panel(title, "averaging index", lines)
    return Curves("Gradient descent from averaged features", "steps", [panel], "log")


def _over_margin(parameters: Parameters, results: Results) -> Curves:
    """Return differences of pieces over the margin, beside the proposition."""
    lines = []
    for name in ("mean", "soft", "max"):
        margins, spreads = results[f"{name}_margin"], results[f"{name}_spread"]
        gained, first = margins - margins[:, :1], spreads[:, :1]
        theory = {
            "mean": first + 0 * gained,
            "soft": first * np.exp(gained / 2),
            "max": first + parameters.parting * gained,
        }[name]
        text, role = OBJECTIVES[name].title, _ROLES[name]
        lines += [
            Line.over_seeds(text, gained, spreads, role, "points"),
            Line.over_seeds(f"{text}, theory", gained, theory, role, "dashed"),
        ]
    title = "Why: differences of pieces stay, grow slowly, or grow at once"
    panel = Panel(title, "difference of pieces along own centres", lines, y_scale="log")
    return Curves("Differences of pieces", "margin gained", [panel])


def _sweep(parameters: Parameters, results: Results, sweep: str) -> Curves:
    values = results[f"{sweep}_values"][0]
    lines = [
        Line.over_seeds(text, values, results[f"{sweep}_{start}_radius"], role)
        for start, (text, role) in STARTS.items()
    ]
    theory = results[f"{sweep}_learnable"][:1]
    lines.append(
        Line.over_seeds("decoupled, from n points: theory", values, theory, "quiet", "dashed")
    )
    marks = [
        Mark(f"{formula} = {radius:.1f}", radius, "y")
        for formula, radius in zip(("√(d/k)", "√(d/2)"), parameters.radii, strict=True)
    ]
    axis = SWEEPS[sweep][0]
    panel = Panel(
        f"Coarse labels, trained on the radius: {axis}", "median radius (L2)", lines, marks
    )
    return Curves(f"Varied: {axis}", axis, [panel])


def conclude(parameters: Parameters, results: Results) -> str:
    """Return the result in words."""
    names = ("default_radius", "default_index", "middle_random_radius", "many_random_radius")
    radius, index, random, many = (results[name].mean() for name in names)
    averaged, decoupled = parameters.radii
    return (
        f"With coarse labels alone, RadiusClassifier has the median radius {radius:.1f} (averaged "
        f"features {averaged:.1f}, decoupled ones {decoupled:.1f}) and the averaging index "
        f"{index:.3f}. From random pieces training on the radius reaches {random:.1f}, and "
        f"{many:.1f} with twice as many pieces: clusters that are won by the same piece stay "
        "together. What parts features is that the largest piece decides alone. The cross-entropy "
        "of the mean of pieces, or of their log-mean-exp, leaves them averaged."
    )

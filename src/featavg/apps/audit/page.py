"""The page that an audit leaves behind: one HTML file, nothing else needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from featavg import __version__
from featavg.apps.html import data_address, render
from featavg.plot import draw
from featavg.plot.style import rendered
from featavg.plot.views import Curves, HeatMaps, Line, Matrix, Panel

if TYPE_CHECKING:
    from featavg.auditing.verdict import Audit


def page(audit: Audit, source: str, hints: Sequence[str] = ()) -> str:
    """Return the audit as an HTML page.

    `source` says where the points came from; `hints` are sentences below the verdict.
    """
    curves, cosines = _certified_accuracy(audit), _cosines(audit)
    matrix = draw.figure([cosines])
    for border in np.flatnonzero(np.diff(audit.geometry.class_of)) + 0.5:  # between classes
        matrix.axes[0].axhline(border, color="white", linewidth=1.5)
        matrix.axes[0].axvline(border, color="white", linewidth=1.5)
    pictures = ((curves.title, draw.figure([curves])), (cosines.title, matrix))
    return render(
        __package__,
        "audit.html",
        audit=audit,
        source=source,
        hints=hints,
        rows=table_rows(audit),
        images=[(title, data_address("image/png", rendered(f, "png"))) for title, f in pictures],
        version=__version__,
    )


def _certified_accuracy(audit: Audit) -> Curves:
    """Return the certified accuracy of both networks over the radius."""
    nets = {"coarse": (audit.coarse, "coarse labels"), "fine": (audit.fine, "subclasses")}
    highest = 1.05 * max(float(net.radii.max()) for net, _ in nets.values())
    radii = np.linspace(0, highest or 1.0, 400)
    lines = []
    for role, (net, labels) in nets.items():
        label = f"trained on {labels}: median {net.median_radius:.3g}"
        lines.append(Line.over_seeds(label, radii, (net.radii[:, None] > radii).mean(axis=0), role))
    title = "Certified accuracy of both networks over the radius"
    panel = Panel("certified accuracy of held-out points", "certified accuracy", lines)
    return Curves(title, "radius, in the units of the features", [panel])


def _cosines(audit: Audit) -> HeatMaps:
    """Return the cosines between the means of subclasses: Figure 10 for your data."""
    title = "Cosines between the means of subclasses"
    pairs = zip(audit.names, audit.geometry.class_of, strict=True)
    names = [f"{audit.classes[c]}: {name}" for name, c in pairs]
    matrix = Matrix.over_seeds(title, audit.geometry.cosines[None, None])
    return HeatMaps(
        title, "", "", "cosine", [matrix], low=-1.0, row_names=names, column_names=names
    )


def table_rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Return what is shown of the two networks: a name and two values in each row."""
    coarse, fine = audit.coarse, audit.fine
    predicted = "–" if audit.predicted_ratio is None else f"{audit.predicted_ratio:.2f}"
    share = f"broken by the universal direction of norm {coarse.universal.radius:.3g}"
    rows = [
        ("clean accuracy", f"{coarse.accuracy:.1%}", f"{fine.accuracy:.1%}"),
        ("averaging index", _known(coarse.averaging_index), _known(fine.averaging_index)),
        ("median certified radius", f"{coarse.median_radius:.3g}", f"{fine.median_radius:.3g}"),
        (
            "over the typical norm",
            f"{coarse.median_radius / audit.norm:.2f}",
            f"{fine.median_radius / audit.norm:.2f}",
        ),
        (share, f"{coarse.universal.broken:.0%}", f"{fine.universal.broken:.0%}"),
    ]
    if audit.divided:
        rows.append(("times as robust (theory)", "1", f"{_known(audit.ratio)} ({predicted})"))
    return rows


def _known(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"

"""The page that an audit leaves behind: one HTML file, nothing else needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from featavg import __version__
from featavg.apps.html import render
from featavg.drawing import draw
from featavg.drawing.pictured import data_address
from featavg.drawing.plane import divide
from featavg.drawing.style import rendered

if TYPE_CHECKING:
    from featavg.auditing.verdict import Audit


def page(audit: Audit, source: str, hints: Sequence[str] = ()) -> str:
    """Return the audit as an HTML page.

    `source` says where the points came from; `hints` are sentences below the verdict.
    """
    curves, cosines = audit.view(), audit.cosines()
    matrix = draw.figure([cosines])
    divide(matrix.axes[0], audit.geometry.class_of)
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

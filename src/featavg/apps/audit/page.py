"""The page that an audit leaves behind: one HTML file, nothing else needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg import __version__
from featavg.apps.html import render
from featavg.drawing import draw
from featavg.drawing.pictured import data_address
from featavg.drawing.plane import divide
from featavg.drawing.style import rendered

if TYPE_CHECKING:
    from featavg.auditing.verdict import Audit

_LISTED = 12  # of points to label next; the file has all


@dataclass(frozen=True, eq=False)
class Source:
    """Where audited points came from.

    Attributes
    ----------
    name, command : str
        The name of the file, and the command line that repeats the audit.
    ids : sequence, optional
        What each point is called; its index by default.
    id_name : {"id", "row", "index"}
        What that is.
    """

    name: str
    command: str
    ids: Sequence[Any] | None = None
    id_name: str = "index"


def page(audit: Audit, source: Source, hints: Sequence[str] = ()) -> str:
    """Return the audit as an HTML page; `hints` are sentences below the verdict."""
    curves, cosines = audit.view(), audit.cosines()
    matrix = draw.figure([_untitled(cosines)])
    divide(matrix.axes[0], audit.geometry.class_of)
    pictures = (
        (curves.title, _SEE_CURVES, draw.figure([_untitled(curves)])),
        (cosines.title, _SEE_COSINES, matrix),
    )
    images = [
        (title, see, data_address("image/png", rendered(figure, "png")))
        for title, see, figure in pictures
    ]
    return render(
        __package__,
        "audit.html",
        audit=audit,
        source=source,
        hints=hints,
        rows=table_rows(audit),
        suggested=audit.suggested.rows(source.ids)[:_LISTED],
        weakest=audit.weakest(source.ids)[1][:_LISTED],
        images=images,
        version=__version__,
    )


def _untitled(view: Any) -> Any:
    """Return a view whose panels have no titles, because the page has them as text."""
    return replace(view, panels=[replace(panel, title="") for panel in view.panels])


_SEE_CURVES = (
    "The share of held-out points that are classified correctly whatever is added to their "
    "features, up to a radius: the further to the right a curve is, the more robust."
)
_SEE_COSINES = (
    "White lines separate the classes. Theory assumes that no two subclasses are alike: all "
    "cosines a little below 0. Where those of a class are near 1, finer labels gain little."
)


def table_rows(audit: Audit) -> list[list[str]]:
    """Return what is shown of the networks: a name and a value for each of them in each row."""
    nets = [net for *_, net in audit.networks]
    coarse = audit.coarse
    share = f"broken by the universal direction of norm {coarse.universal.radius:.3g}"
    rows = [
        ["trained on", *(labels for _, _, labels, _ in audit.networks)],
        ["clean accuracy", *(f"{net.accuracy:.1%}" for net in nets)],
        ["averaging index", *(_known(net.averaging_index) for net in nets)],
        ["median certified radius", *(f"{net.median_radius:.3g}" for net in nets)],
        ["over the typical norm", *(f"{net.median_radius / audit.norm:.2f}" for net in nets)],
        [share, *(f"{net.universal.broken:.0%}" for net in nets)],
        ["exact radii", *(f"{net.exact.sum()} of {audit.measured}" for net in nets)],
    ]
    if coarse.median_radius > 0:
        ratios = [f"{net.median_radius / coarse.median_radius:.2f}" for net in nets]
        if not audit.divided:  # both are trained on the same labels
            ratios[1] = _known(np.nan)
        rows.append(["times as robust", *ratios])
        if audit.predicted_ratio is not None:
            predicted = ["1.00", f"{audit.predicted_ratio:.2f}", *[""] * (len(nets) - 2)]
            rows.append(["times as robust, by theory", *predicted])
    return rows


def _known(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"

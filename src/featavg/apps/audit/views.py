"""The views of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featavg.plot.views import Curves, HeatMaps, Line, Matrix, Panel

if TYPE_CHECKING:
    from featavg.auditing.verdict import Audit


def certified_accuracy(audit: Audit) -> Curves:
    """Return the certified accuracy of both networks over the radius."""
    highest = 1.05 * max(float(net.radii.max()) for net in (audit.coarse, audit.fine))
    radii = np.linspace(0, highest or 1.0, 400)
    lines = [
        Line.over_seeds(
            f"trained on {labels}: median {net.median_radius:.3g}",
            radii,
            (net.radii[:, None] > radii).mean(axis=0),
            role,
        )
        for net, labels, role in (
            (audit.coarse, "coarse labels", "coarse"),
            (audit.fine, "subclasses", "fine"),
        )
    ]
    title = "Certified accuracy of both networks over the radius"
    panel = Panel("certified accuracy of held-out points", "certified accuracy", lines)
    return Curves(title, "radius, in the units of the features", [panel])


def cosines(audit: Audit) -> HeatMaps:
    """Return the cosines between the means of subclasses: Figure 10 for your data."""
    names = [
        f"{audit.classes[c]}: {name}"
        for name, c in zip(audit.names, audit.geometry.class_of, strict=True)
    ]
    return HeatMaps(
        "Cosines between the means of subclasses",
        rows="",
        columns="",
        value="cosine",
        panels=[
            Matrix.over_seeds(
                "cosines between the means of subclasses", audit.geometry.cosines[None, None]
            )
        ],
        low=-1.0,
        row_names=names,
        column_names=names,
    )

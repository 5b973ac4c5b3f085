"""The pictures of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featavg.plot import style as plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from featavg.auditing.audit import Audit

_NAMED = 24  # subclasses up to which each is named on the axes


def cosine_figure(audit: Audit) -> Figure:
    """Draw the cosines between the means of subclasses: Figure 10 for your data."""
    names = [
        f"{audit.classes[c]}: {name}"
        for name, c in zip(audit.names, audit.geometry.class_of, strict=True)
    ]
    size = len(names)
    with plots.style():
        figure, (panel,) = plots.new_figure(6.4, 5.4)
        picture = panel.imshow(audit.geometry.cosines, cmap="cividis", vmin=-1, vmax=1)
        panel.spines[:].set_visible(False)
        if size <= _NAMED:
            panel.set_xticks(range(size), names, rotation=60, ha="right", fontsize=8)
            panel.set_yticks(range(size), names, fontsize=8)
        for border in np.flatnonzero(np.diff(audit.geometry.class_of)) + 0.5:
            panel.axhline(border, color="white", linewidth=1.5)
            panel.axvline(border, color="white", linewidth=1.5)
        panel.set_title("cosines between the means of subclasses")
        figure.colorbar(picture, ax=panel, shrink=0.9)
    return figure


def curve_figure(audit: Audit) -> Figure:
    """Draw the certified accuracy of both networks over the radius."""
    with plots.style():
        figure, (panel,) = plots.new_figure(6.4, 4.6)
        highest = 1.05 * max(float(net.radii.max()) for net in (audit.coarse, audit.fine))
        radii = np.linspace(0, highest or 1.0, 400)
        for net, colour, name in (
            (audit.coarse, plots.COARSE, "coarse labels"),
            (audit.fine, plots.FINE, "subclasses"),
        ):
            accuracy = (net.radii[:, None] > radii).mean(axis=0)
            panel.plot(radii, accuracy, color=colour, label=f"trained on {name}")
            panel.axvline(net.median_radius, color=colour, linewidth=0.8, linestyle=":")
        panel.set(
            xlabel="radius, in the units of the features",
            ylabel="certified accuracy, held-out points",
            ylim=(0, 1.02),
            xlim=(0, radii[-1]),
        )
        panel.legend()
    return figure

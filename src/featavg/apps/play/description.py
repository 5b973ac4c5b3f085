"""What the page is told about its controls and about settings, by the server or by a lesson."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from featavg import __version__
from featavg.apps.play.presets import Preset
from featavg.apps.play.settings import KNOBS, NETWORKS, TEST_POINTS, WHOLE, Settings


def about(menu: Sequence[Preset]) -> dict[str, Any]:
    """Return the sliders and the presets of the menu."""
    return {
        "version": __version__,
        "knobs": {name: vars(knob) | {"whole": name in WHOLE} for name, knob in KNOBS.items()},
        "presets": [
            {"group": p.group, "name": p.name, "query": p.settings.to_query(), "note": p.note}
            for p in menu
        ],
        "points": TEST_POINTS,
    }


def described(settings: Settings) -> dict[str, Any]:
    """Return all settings, and what the page derives from them."""
    return {
        "values": settings.values,
        "query": settings.to_query(),
        "end": settings.end,
        "signs": settings.law.signs.tolist(),
        "networks": settings.networks,
        "predicted": dict(zip(NETWORKS, map(float, settings.predicted), strict=True)),
        "formulas": dict(zip(NETWORKS, settings.formulas, strict=True)),
    }

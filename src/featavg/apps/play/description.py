"""What the page is told about its controls and about settings, by the server or by a lesson."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from featavg import __version__
from featavg.apps.play.presets import Preset
from featavg.apps.play.settings import KNOBS, NETWORKS, TEST_POINTS, WHOLE, Settings
from featavg.apps.play.worlds import CHOICES, GROUPING_HELP


def about(menu: Sequence[Preset]) -> dict[str, Any]:
    """Return the sliders and the presets of the menu."""
    return {
        "version": __version__,
        "choices": {name: asdict(choice) for name, choice in CHOICES.items()},
        "grouping_help": GROUPING_HELP,
        "knobs": {name: vars(knob) | {"whole": name in WHOLE} for name, knob in KNOBS.items()},
        "presets": [
            {"group": p.group, "name": p.name, "query": p.settings.to_query(), "note": p.note}
            for p in menu
        ],
        "points": TEST_POINTS,
    }


def described(settings: Settings) -> dict[str, Any]:
    """Return all settings, and what the page derives from them."""

    def of_networks(pair: tuple[Any, Any]) -> dict[str, Any]:
        return dict(zip(NETWORKS, pair, strict=True))

    coarse, fine = settings.predicted
    return {
        "values": settings.values,
        "query": settings.to_query(),
        "end": settings.end,
        "goals": settings.goals,
        "signs": settings.law.signs.tolist(),
        "networks": settings.networks,
        "predicted": of_networks((float(coarse), float(fine))),
        "formulas": of_networks(settings.formulas),
        "titles": of_networks(settings.titles),
        "headings": of_networks(settings.headings),
        "told": of_networks(settings.told),
        "columns": of_networks(settings.columns),
        "by_side": of_networks((True, settings.on_radius)),
        "can_forward": settings.can_leap,
        "law": settings.granularity() if "fine" in settings.networks else None,
    }

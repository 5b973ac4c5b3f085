"""Classifiers for the user's own data that follow the estimator contract of scikit-learn.

They are imported when they are first used: scikit-learn takes half a second, and experiments on
affine pieces do without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from featavg.estimators.averaging import AveragingClassifier
    from featavg.estimators.certified import certified_radius
    from featavg.estimators.decoupled import DecoupledClassifier
    from featavg.estimators.frontier import Frontier
    from featavg.estimators.persistence import load
    from featavg.estimators.radius import RadiusClassifier
    from featavg.estimators.subclasses import Subclasses

_HOMES = {
    "AveragingClassifier": "averaging",
    "DecoupledClassifier": "decoupled",
    "Frontier": "frontier",
    "RadiusClassifier": "radius",
    "Subclasses": "subclasses",
    "certified_radius": "certified",
    "load": "persistence",
}

__all__ = [
    "AveragingClassifier",
    "DecoupledClassifier",
    "Frontier",
    "RadiusClassifier",
    "Subclasses",
    "certified_radius",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__

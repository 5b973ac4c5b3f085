"""Classifiers for the user's own data that follow the estimator contract of scikit-learn.

They are imported when they are first used: scikit-learn takes half a second, and experiments on
affine pieces do without it.
"""

from typing import TYPE_CHECKING, Any

from featavg.lazy import imported

if TYPE_CHECKING:
    from featavg.estimators.averaging import AveragingClassifier
    from featavg.estimators.certified import certified_radius
    from featavg.estimators.decoupled import DecoupledClassifier
    from featavg.estimators.frontier import Frontier
    from featavg.estimators.persistence import load
    from featavg.estimators.radius import RadiusClassifier
    from featavg.estimators.subclasses import Subclasses

_HOMES = {
    "AveragingClassifier": "featavg.estimators.averaging",
    "DecoupledClassifier": "featavg.estimators.decoupled",
    "Frontier": "featavg.estimators.frontier",
    "RadiusClassifier": "featavg.estimators.radius",
    "Subclasses": "featavg.estimators.subclasses",
    "certified_radius": "featavg.estimators.certified",
    "load": "featavg.estimators.persistence",
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
    """Import a public name, or a module of the package, when it is first used."""
    globals()[name] = value = imported(__name__, name, _HOMES)
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__

"""Classifiers for the user's own data that follow the estimator contract of scikit-learn."""

from featavg.estimators.averaging import AveragingClassifier
from featavg.estimators.certified import certified_radius
from featavg.estimators.decoupled import DecoupledClassifier
from featavg.estimators.frontier import Frontier
from featavg.estimators.persistence import load
from featavg.estimators.radius import RadiusClassifier
from featavg.estimators.subclasses import Subclasses

__all__ = [
    "AveragingClassifier",
    "DecoupledClassifier",
    "Frontier",
    "RadiusClassifier",
    "Subclasses",
    "certified_radius",
    "load",
]

"""Estimators for people with their own data, after scikit-learn's contract."""

from featavg.estimators.averaging import AveragingClassifier
from featavg.estimators.decoupled import DecoupledClassifier
from featavg.estimators.frontier import Frontier
from featavg.estimators.persistence import load
from featavg.estimators.subclasses import Subclasses

__all__ = [
    "AveragingClassifier",
    "DecoupledClassifier",
    "Frontier",
    "Subclasses",
    "load",
]

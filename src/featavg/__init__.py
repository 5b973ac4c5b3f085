"""A laboratory for feature averaging.

Trained by gradient descent on coarse labels, a network learns the average of the features of its
data, which makes it fragile; trained on finer labels it learns them one by one.

>>> import numpy as np, featavg as fa
>>> rng = np.random.default_rng(0)
>>> train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
>>> coarse = fa.BinaryNet.init(train, width=5, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
>>> fine = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng)
>>> for net in (coarse, fine):
...     run = fa.descend(net, train, learning_rate=1e-3, steps=100)
...     print(f"{fa.averaging_index(run.net, train):.2f}")
0.99
0.00
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from featavg.data.grouping import Grouping
from featavg.data.law import Law, MeasuredLaw, Sample
from featavg.data.multicluster import AnisotropicClusters, MultiCluster, XorClusters
from featavg.errors import CertificationWarning, FeatureScaleWarning, InputError
from featavg.measures.alignment import (
    alignment,
    averaging_index,
    averaging_index_per_neuron,
    clean_accuracy,
    equivalent_alignment,
    equivalent_weights,
)
from featavg.measures.kkt import KKTResidual, kkt_residual
from featavg.measures.margins import MarginHistory, Rates, normalized_margin, smoothed_margin
from featavg.networks.activation import Activation, LeakyReLU, ReLU, ReLUPower, Softplus
from featavg.networks.binary import BinaryNet
from featavg.networks.coarse_loss import CoarseCrossEntropy
from featavg.networks.loss import (
    CrossEntropy,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    Square,
)
from featavg.networks.multiclass import MultiClassNet
from featavg.networks.shallow import ShallowNet
from featavg.networks.supplied_labels import SuppliedLabels
from featavg.networks.weighted_loss import Weighted
from featavg.robustness import (
    L2,
    AdversarialTraining,
    AttackResult,
    LInf,
    Norm,
    Radii,
    RobustCurve,
    averaged_direction,
    direction_attack,
    exact_radii,
    minimal_norm,
    pgd,
    robust_curve,
    worst,
)
from featavg.training.descent import descend
from featavg.training.fast_forward import fast_forward
from featavg.training.learning_rate import stable_learning_rate
from featavg.training.rule import (
    SAM,
    SGD,
    Adam,
    GradientDescent,
    Momentum,
    Rule,
    SignDescent,
    WeightDecay,
)
from featavg.training.trajectory import Trajectory
from featavg.training.wrapped_rule import Dropout, LearningRates

if TYPE_CHECKING:
    from featavg import plot
    from featavg.auditing.audit import audit
    from featavg.auditing.model import audit_model
    from featavg.estimators import (
        AveragingClassifier,
        DecoupledClassifier,
        RadiusClassifier,
        certified_radius,
    )
    from featavg.lab.sweeps import sweep

__version__ = version("featavg")

# scikit-learn takes a while to import, and most of what is here does without.
_IMPORTED_ON_USE = {
    "AveragingClassifier": "featavg.estimators",
    "DecoupledClassifier": "featavg.estimators",
    "RadiusClassifier": "featavg.estimators",
    "certified_radius": "featavg.estimators",
    "audit": "featavg.auditing.audit",
    "audit_model": "featavg.auditing.model",
    "sweep": "featavg.lab.sweeps",
}

__all__ = [
    "L2",
    "SAM",
    "SGD",
    "Activation",
    "Adam",
    "AdversarialTraining",
    "AnisotropicClusters",
    "AttackResult",
    "AveragingClassifier",
    "BinaryNet",
    "CertificationWarning",
    "CoarseCrossEntropy",
    "CrossEntropy",
    "DecoupledClassifier",
    "Dropout",
    "Exponential",
    "FeatureScaleWarning",
    "GradientDescent",
    "Grouping",
    "Hinge",
    "InputError",
    "KKTResidual",
    "LInf",
    "Law",
    "LeakyReLU",
    "LearningRates",
    "Logistic",
    "Loss",
    "MarginHistory",
    "MeasuredLaw",
    "Momentum",
    "MultiClassNet",
    "MultiCluster",
    "Norm",
    "Radii",
    "RadiusClassifier",
    "Rates",
    "ReLU",
    "ReLUPower",
    "RobustCurve",
    "Rule",
    "Sample",
    "ShallowNet",
    "SignDescent",
    "Softplus",
    "Square",
    "SuppliedLabels",
    "Trajectory",
    "WeightDecay",
    "Weighted",
    "XorClusters",
    "__version__",
    "alignment",
    "audit",
    "audit_model",
    "averaged_direction",
    "averaging_index",
    "averaging_index_per_neuron",
    "certified_radius",
    "clean_accuracy",
    "descend",
    "direction_attack",
    "equivalent_alignment",
    "equivalent_weights",
    "exact_radii",
    "fast_forward",
    "kkt_residual",
    "minimal_norm",
    "normalized_margin",
    "pgd",
    "plot",
    "robust_curve",
    "smoothed_margin",
    "stable_learning_rate",
    "sweep",
    "worst",
]


def __getattr__(name: str) -> Any:
    """Import estimators, audits, sweeps and pictures when they are first asked for."""
    if name == "plot":
        return import_module("featavg.plot")
    if name in _IMPORTED_ON_USE:
        return getattr(import_module(_IMPORTED_ON_USE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)

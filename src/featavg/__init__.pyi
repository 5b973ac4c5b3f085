# The public names and where they are defined; __init__.py reads this file, too.
from featavg import plot as plot
from featavg.auditing.audit import audit as audit
from featavg.auditing.model import audit_model as audit_model
from featavg.auditing.suggestions import suggest_labels as suggest_labels
from featavg.data.grouping import Grouping as Grouping
from featavg.data.law import Law as Law, MeasuredLaw as MeasuredLaw, Sample as Sample
from featavg.data.multicluster import (
    AnisotropicClusters as AnisotropicClusters,
    MultiCluster as MultiCluster,
    XorClusters as XorClusters,
)
from featavg.errors import (
    CertificationWarning as CertificationWarning,
    DamagedFileWarning as DamagedFileWarning,
    FeatureScaleWarning as FeatureScaleWarning,
    GradientMaskingWarning as GradientMaskingWarning,
    InputError as InputError,
)
from featavg.estimators import (
    AveragingClassifier as AveragingClassifier,
    DecoupledClassifier as DecoupledClassifier,
    RadiusClassifier as RadiusClassifier,
    certified_radius as certified_radius,
)
from featavg.lab.sweeps import sweep as sweep
from featavg.measures.alignment import (
    alignment as alignment,
    averaging_index as averaging_index,
    averaging_index_per_neuron as averaging_index_per_neuron,
    clean_accuracy as clean_accuracy,
    equivalent_alignment as equivalent_alignment,
    equivalent_weights as equivalent_weights,
)
from featavg.measures.kkt import KKTResidual as KKTResidual, kkt_residual as kkt_residual
from featavg.measures.margins import (
    MarginHistory as MarginHistory,
    Rates as Rates,
    normalized_margin as normalized_margin,
    smoothed_margin as smoothed_margin,
)
from featavg.networks.activation import (
    Activation as Activation,
    LeakyReLU as LeakyReLU,
    ReLU as ReLU,
    ReLUPower as ReLUPower,
    Softplus as Softplus,
)
from featavg.networks.binary import BinaryNet as BinaryNet
from featavg.networks.coarse_loss import CoarseCrossEntropy as CoarseCrossEntropy
from featavg.networks.loss import (
    CrossEntropy as CrossEntropy,
    Exponential as Exponential,
    Hinge as Hinge,
    Logistic as Logistic,
    Loss as Loss,
    Square as Square,
)
from featavg.networks.multiclass import MultiClassNet as MultiClassNet
from featavg.networks.shallow import ShallowNet as ShallowNet
from featavg.networks.supplied_labels import SuppliedLabels as SuppliedLabels
from featavg.networks.weighted_loss import Weighted as Weighted
from featavg.robustness import (
    AdversarialTraining as AdversarialTraining,
    AttackResult as AttackResult,
    L2 as L2,
    LInf as LInf,
    Norm as Norm,
    Radii as Radii,
    RobustCurve as RobustCurve,
    averaged_direction as averaged_direction,
    direction_attack as direction_attack,
    exact_radii as exact_radii,
    minimal_norm as minimal_norm,
    pgd as pgd,
    robust_curve as robust_curve,
    worst as worst,
)
from featavg.training.descent import descend as descend
from featavg.training.fast_forward import fast_forward as fast_forward
from featavg.training.learning_rate import stable_learning_rate as stable_learning_rate
from featavg.training.rule import (
    Adam as Adam,
    GradientDescent as GradientDescent,
    Momentum as Momentum,
    Rule as Rule,
    SAM as SAM,
    SGD as SGD,
    SignDescent as SignDescent,
    WeightDecay as WeightDecay,
)
from featavg.training.trajectory import Trajectory as Trajectory
from featavg.training.wrapped_rule import Dropout as Dropout, LearningRates as LearningRates

__version__: str

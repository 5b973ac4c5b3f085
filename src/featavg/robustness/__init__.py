"""How far a point can be moved before the decision changes."""

from featavg.robustness.adversarial_training import AdversarialTraining
from featavg.robustness.attacks import AttackResult, averaged_direction, direction_attack, pgd
from featavg.robustness.certify import exact_radii
from featavg.robustness.curve import RobustCurve, half_radius, robust_curve, worst
from featavg.robustness.minimal_norm import minimal_norm
from featavg.robustness.norm import L2, LInf, Norm
from featavg.robustness.radii import Radii

__all__ = [
    "L2",
    "AdversarialTraining",
    "AttackResult",
    "LInf",
    "Norm",
    "Radii",
    "RobustCurve",
    "averaged_direction",
    "direction_attack",
    "exact_radii",
    "half_radius",
    "minimal_norm",
    "pgd",
    "robust_curve",
    "worst",
]

"""How far a point can be moved before the decision changes."""

from featavg.robustness.attacks import AttackResult, averaged_direction, direction_attack, pgd
from featavg.robustness.curve import RobustCurve, half_radius, robust_curve, worst

__all__ = [
    "AttackResult",
    "RobustCurve",
    "averaged_direction",
    "direction_attack",
    "half_radius",
    "pgd",
    "robust_curve",
    "worst",
]

"""What is known about the smallest perturbation that turns a decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import BoolArray, FloatArray

# Bounds that differ by less than this, relative to the radius, count as one.
EXACT = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Radii:
    r"""Bounds of the smallest adversarial norm of each point.

    Paper: the largest :math:`\delta` at which a point still counts in the :math:`\delta`-robust
    accuracy of Section 3.2.

    Attributes
    ----------
    lower : array of shape (points,)
        No perturbation of a smaller norm turns the decision: a proof, with rounding allowed for.
        0 where nothing is proved.
    upper : array of shape (points,)
        The norm of a perturbation that does; infinity where none exists or none was found. Both
        bounds are 0 where the decision is wrong without an attack, and infinity where nothing can
        turn it.
    perturbations : array of shape (points, coordinates)
        Perturbations that turn the decision. Their norm is `upper`, or a few millionths above
        where `upper` is the limit of such norms. Zero where none is needed or none is known.
    norm : str
        The norm that all of this is measured in.
    turns : array of shape (points,)
        Where the perturbation was seen to turn the decision, or needs not to. It cannot where the
        turned decision has no interior, such as the one silent point of a network without biases.
    """

    lower: FloatArray
    upper: FloatArray
    perturbations: FloatArray
    norm: str
    turns: BoolArray

    @property
    def exact(self) -> BoolArray:
        """Where the bounds agree to a millionth and the perturbation turns the decision."""
        with np.errstate(invalid="ignore"):
            near = self.lower >= self.upper * (1 - EXACT)
        return near & self.turns

    @property
    def gap(self) -> FloatArray:
        """The relative gap (upper - lower) / upper of each point; 0 where the radius is exact."""
        return np.where(self.exact, 0.0, relative_gap(self.lower, self.upper))

    def __len__(self) -> int:
        return len(self.upper)

    def __repr__(self) -> str:
        lower, upper = float(np.median(self.lower)), float(np.median(self.upper))
        one = lower == upper or lower >= upper * (1 - EXACT)
        median = f"{upper:.4g}" if one else f"from {lower:.4g} to {upper:.4g}"
        norm = "" if self.norm == "l2" else f"{self.norm}, "
        exact = int(self.exact.sum())
        return f"Radii({norm}{len(self)} points, {exact} exact, median radius {median})"


def relative_gap(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return (upper - lower) / upper, 0 where they are equal and 1 where upper is infinite.

    Examples
    --------
    >>> relative_gap(np.array([1.0, 0.0, 3.0, np.inf]), np.array([2.0, 0.0, np.inf, np.inf]))
    array([0.5, 0. , 1. , 0. ])
    """
    gap = np.where(lower == upper, 0.0, 1.0)
    finite = np.isfinite(upper) & (upper > 0)
    gap[finite] = 1 - lower[finite] / upper[finite]
    return gap

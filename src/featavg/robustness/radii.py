"""What is known about the smallest perturbation that turns a decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import BoolArray, FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Radii:
    r"""Bounds of the smallest adversarial norm of each point.

    Paper: the largest :math:`\delta` at which a point still counts in the :math:`\delta`-robust
    accuracy of Section 3.2.

    Attributes
    ----------
    lower : array of shape (points,)
        No perturbation of a smaller norm turns the decision: a proof. 0 where nothing is proved.
    upper : array of shape (points,)
        The norm of a perturbation that does; infinity where none exists or none was found. Where
        the radius is exact, equal to `lower`; both 0 where the decision is wrong without an
        attack, both infinity where nothing can turn it.
    perturbations : array of shape (points, coordinates)
        Perturbations that turn the decision, as they are and stretched by up to a millionth. Their
        norm is `upper`, or a few millionths above where `upper` is the limit of such norms. Zero
        where none is needed or none is known. (Where the turned decision has no interior, such as
        the one silent point of a network without biases, it is that point up to rounding.)
    norm : str
        The norm that all of this is measured in.
    """

    lower: FloatArray
    upper: FloatArray
    perturbations: FloatArray
    norm: str = "l2"

    @property
    def exact(self) -> BoolArray:
        """Where the two bounds are one."""
        return self.lower == self.upper

    @property
    def gap(self) -> FloatArray:
        """The relative gap (upper - lower) / upper of each point; 0 where the radius is exact."""
        return relative_gap(self.lower, self.upper)

    def __len__(self) -> int:
        return len(self.upper)

    def __repr__(self) -> str:
        lower, upper = float(np.median(self.lower)), float(np.median(self.upper))
        median = f"{upper:.4g}" if lower == upper else f"from {lower:.4g} to {upper:.4g}"
        return f"Radii({len(self)} points, {int(self.exact.sum())} exact, median radius {median})"


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

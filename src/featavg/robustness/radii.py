"""What is known about the smallest perturbation that turns a decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg._checks import BoolArray, FloatArray


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
        where none is needed or none is known.
    """

    lower: FloatArray
    upper: FloatArray
    perturbations: FloatArray

    @property
    def exact(self) -> BoolArray:
        """Where the two bounds are one."""
        return self.lower == self.upper

    @property
    def gap(self) -> FloatArray:
        """The relative gap (upper - lower) / upper of each point; 0 where the radius is exact."""
        finite = np.isfinite(self.upper) & (self.upper > 0)
        gap = np.where(self.exact, 0.0, 1.0)
        gap[finite] = (self.upper[finite] - self.lower[finite]) / self.upper[finite]
        return gap

    def __len__(self) -> int:
        return len(self.upper)

    def __repr__(self) -> str:
        lower, upper = float(np.median(self.lower)), float(np.median(self.upper))
        median = f"{upper:.4g}" if lower == upper else f"from {lower:.4g} to {upper:.4g}"
        return f"Radii({len(self)} points, {int(self.exact.sum())} exact, median radius {median})"

"""What is known about the smallest perturbation that turns a decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.drawing.common import robust_accuracy, shares_above
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import Curves, Line, Mark
from featavg.errors import InputError

# Bounds that differ by less than this, relative to the radius, count as one.
EXACT = 1e-6


@dataclass(frozen=True, eq=False)
class Verification:
    """What a check of radii has found, without searching.

    Attributes
    ----------
    turned : array of shape (points,)
        Where the perturbation turns the decision in rational arithmetic, or none is claimed to.
    proved : array of shape (points,)
        The radius within which the stored proof shows that nothing turns the decision.
    refuted : array
        The numbers of the points of which something is claimed that was not confirmed.
    """

    turned: BoolArray
    proved: FloatArray
    refuted: IntArray

    @property
    def holds(self) -> bool:
        """Whether everything was confirmed."""
        return not len(self.refuted)


class Certificate(ABC):
    """What it takes to check radii."""

    @abstractmethod
    def check(self, radii: Radii, model: Any, X: ArrayLike) -> tuple[BoolArray, FloatArray]:
        """Return where perturbations turn the decision, and the bounds that are proved."""


@dataclass(frozen=True, eq=False, repr=False)
class Radii(Pictured):
    r"""Bounds of the smallest adversarial norm of each point.

    Paper: the largest :math:`\delta` at which a point still counts in the :math:`\delta`-robust
    accuracy of Section 3.2.

    Attributes
    ----------
    lower : array of shape (points,)
        No perturbation of a smaller norm turns the decision: a proof, with rounding allowed for.
        0 where nothing is proved. Infinity means that nothing was found, and that nothing turns the
        decision within a million times the length of the point and the typical distance to a kink.
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
    certificate : Certificate or None
        What `verify` checks.
    """

    lower: FloatArray
    upper: FloatArray
    perturbations: FloatArray
    norm: str
    turns: BoolArray
    certificate: Certificate | None = None

    def verify(self, model: Any, X: ArrayLike) -> Verification:
        """Check every claim again: perturbations in rational arithmetic, bounds by their proofs.

        Nothing is searched and no solver is trusted: the proofs are multipliers, whose
        inequalities are added up with rounding allowed for.

        Parameters
        ----------
        model, X
            What the radii were computed for.

        Examples
        --------
        >>> from featavg import BinaryNet, exact_radii
        >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
        >>> exact_radii(net, [[3.0, 1.0]]).verify(net, [[3.0, 1.0]]).holds
        True
        """
        if self.certificate is None:
            raise InputError(
                "these radii have no proofs to check: they were computed by an attack, for the "
                "probability readout, or with certificates=False."
            )
        turned, proved = self.certificate.check(self, model, X)
        proved_all = (proved >= self.lower * (1 - 1e-9)) | (self.lower == 0)
        refuted = np.flatnonzero(~proved_all | (self.turns & ~turned))
        return Verification(turned, proved, refuted)

    @property
    def exact(self) -> BoolArray:
        """Where the bounds agree to a millionth and a perturbation turns the decision.

        That perturbation is at most a hundred-thousandth longer than `upper`.
        """
        with np.errstate(invalid="ignore"):
            near = self.lower >= self.upper * (1 - EXACT)
        return near & self.turns

    @property
    def gap(self) -> FloatArray:
        """The relative gap (upper - lower) / upper of each point; 0 where the radius is exact.

        1 where no perturbation was seen to turn the decision, unless it is proved that none does.
        """
        return np.where(self.exact, 0.0, relative_gap(self.lower, self._confirmed))

    @property
    def _confirmed(self) -> FloatArray:
        """The upper bounds; infinity where the perturbation was not seen to turn the decision."""
        return np.where(self.turns, self.upper, np.inf)

    def lines(self, label: str = "", role: str = "fine") -> list[Line]:
        """Return the share of points whose radius is larger than each radius, to be drawn."""
        return shares_above(label, self.lower, self.upper, role, exact=bool(self.exact.all()))

    def view(self) -> Curves:
        """Return the share of points whose decision no perturbation of a norm turns."""
        median = float(np.median(self.lower))
        marks = [Mark(f"median {median:.3g}", median)] if 0 < median < np.inf else []
        title, y = "Points that no perturbation turns", "share of points"
        return robust_accuracy(self.lines(), title=title, norm=self.norm, y=y, marks=marks)

    def __len__(self) -> int:
        return len(self.upper)

    def __repr__(self) -> str:
        lower, upper = float(np.median(self.lower)), float(np.median(self._confirmed))
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

"""The log-odds around a point, parts of the space, and inequalities that hold in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.robustness.exact.geometry import Cap, Euclidean
from featavg.robustness.exact.nearest import Rows

ROUNDOFF = 32 * float(np.finfo(np.float64).eps)
# Relative to what was summed up: a slope smaller than this is none.
_NOISE = 1e-13
# A difference of outputs that has no bound is at least this, and what is larger is no bound.
NO_BOUND = -1e200
_LARGE = 1e150


@dataclass(frozen=True, eq=False)
class OddsProblem:
    r"""The search around one point for where :math:`\sum_P e^{f_j} \le \sum_Q e^{f_l}`.

    The outputs are :math:`f = A\,\mathrm{relu}(z + V v)` at the perturbation v, with
    :math:`A \ge 0`; P is the point's own side and Q the opposing one.

    Attributes
    ----------
    weights : array of shape (neurons, coordinates)
        V, the weights in the coordinates that perturbations are looked for in.
    z, z_sizes : arrays of shape (neurons,)
        The pre-activations of the point, and the sizes of what was summed up in them.
    A : array of shape (classes, neurons)
        The second layer; each neuron feeds one class.
    own : array of shape (classes,)
        Which classes are those of P.
    draw_turns : bool
        Whether the decision is turned where all outputs are silent and both sides have the same
        number of classes.
    rounding : float
        Relative to such sizes, how far a computed sum can be from the true one.
    """

    weights: FloatArray
    z: FloatArray
    z_sizes: FloatArray
    A: FloatArray
    own: BoolArray
    draw_turns: bool
    rounding: float


@dataclass(frozen=True, eq=False)
class Lines:
    """For each neuron a line, factor u + shift, that is nowhere below its relu."""

    factor: FloatArray
    shift: FloatArray


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """Linear functions that are to be at least 0, and how far rounding may have moved them."""

    slopes: FloatArray
    offsets: FloatArray
    slope_errors: FloatArray
    offset_errors: FloatArray
    norms: FloatArray

    def values(self, v: FloatArray) -> FloatArray:
        """Return the functions at a point."""
        return self.offsets + self.slopes @ v

    def largest(self, cap: Cap) -> FloatArray:
        """Return bounds of the functions over a cap, from above."""
        high = Euclidean().reach(self.slopes, self.norms, cap)[1]
        return self.offsets + high + self.offset_errors + self.slope_errors * cap.radius

    @cached_property
    def _flat(self) -> BoolArray:
        """Where a function has no slope but rounding."""
        return self.norms <= _NOISE * self.slope_errors / ROUNDOFF

    @property
    def constant_distance(self) -> float:
        """A distance up to which a function without a slope, and so all of them, holds nowhere."""
        short = -(self.offsets + self.offset_errors)[self._flat]
        steep = (self.norms + self.slope_errors)[self._flat]
        with np.errstate(divide="ignore"):
            return float((short[short > 0] / steep[short > 0]).max(initial=0.0))

    def rows(self) -> Rows:
        """Return those that have a slope, with slopes of norm 1."""
        which = ~self._flat & (self.offsets < _LARGE)
        norms = self.norms[which]
        return Rows(
            -self.slopes[which] / norms[:, None],
            self.offsets[which] / norms,
            self.slope_errors[which] / norms,
            self.offset_errors[which] / norms,
        )


@dataclass(eq=False)
class Cuts:
    r"""Inequalities that hold in every part of the space, up to what a part says of itself.

    A cut is :math:`\mathrm{const} + \sum_l g_l f_l \ge 0`, where negative terms are replaced by
    the sum of the neurons of `masks`. In a part with bounds lo and hi of
    :math:`\delta_l = f_l - f_s`, and chords of slope c of :math:`e^\delta`, see `Part`,

    .. math:: g = \mathrm{gains} + \beta C, \qquad
              \mathrm{const} = \mathrm{consts} + \beta K
              + \langle\mathrm{above}, \mathrm{hi}\rangle
              - \langle\mathrm{below}, \mathrm{lo}\rangle

    with :math:`C_l = c_l`, :math:`C_s = -\sum c_l` and
    :math:`K = \sum_l (e^{\mathrm{hi}_l} - 1 - c_l \mathrm{hi}_l)`.
    """

    gains: FloatArray
    consts: FloatArray
    errors: FloatArray
    beta: FloatArray
    above: FloatArray
    below: FloatArray
    masks: BoolArray

    def and_also(self, other: Cuts) -> Cuts:
        """Return the cuts of both."""
        return Cuts(*(np.concatenate([a, vars(other)[name]]) for name, a in vars(self).items()))

    def chosen(self, which: IntArray | BoolArray) -> Cuts:
        """Return some of the cuts."""
        return Cuts(*(a[which] for a in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Part:
    r"""A part of the space in which the output s is the strongest of Q.

    Attributes
    ----------
    strongest : int
        s.
    signs : array of shape (neurons,)
        Neurons that are on (+1), off (-1) or either (0).
    lo, hi : arrays of shape (classes,)
        Bounds of :math:`\delta_l = f_l - f_s` for l in Q.
    """

    strongest: int
    signs: IntArray
    lo: FloatArray
    hi: FloatArray


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A part of the space within a cap: bounds of each difference, and lines and chords.

    Without a ball there are no lines, and `has_lines` is false, unless all challengers are on or
    off.
    """

    part: Part
    low: FloatArray
    high: FloatArray
    lines: Lines
    slopes: FloatArray
    has_lines: bool = True

"""The log-odds of two groups of outputs, relaxed to half-spaces in one part of the space."""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.robustness.exact.geometry import Cap, Euclidean
from featavg.robustness.exact.nearest import Rows
from featavg.robustness.exact.odds_parts import (
    ROUNDOFF,
    Cuts,
    HalfSpaces,
    Lines,
    OddsProblem,
    Part,
    Relaxation,
)


class LogOdds:
    r"""The log-odds in a unit of length, and what holds wherever they are turned.

    Paper: none, an extension.

    Let s be the strongest output of Q, and :math:`\delta_l = f_l - f_s \le 0`. The decision turns
    where

    .. math:: \mathrm{LSE}_P(f) \le f_s + \log \sum_Q e^{\delta_l} .

    The left side is convex: it is the largest of :math:`\sum_P p_j f_j + H(p)` over all
    distributions p, with :math:`f_j \ge \sum_T a_r u_r` for any set T of its neurons. On the right,
    :math:`e^{\delta_l}` is below its chord over what :math:`\delta_l` can be, a logarithm is below
    its tangents, :math:`\log S \le \log\kappa + S/\kappa - 1`, and each relu is below its chord
    over what it can reach. So each p, T and :math:`\kappa` gives a half-space, and the nearest
    point of all of them bounds the radius. With one opposing class and its neurons decided nothing
    is lost. Constants are sums of what vanishes with the outputs, so that small ones lose no
    digits.
    """

    def __init__(self, problem: OddsProblem, unit: float) -> None:
        self.unit, self.A, self.z, self.z_sizes = unit, problem.A, problem.z, problem.z_sizes
        self.V = problem.weights * unit
        self.norms = Euclidean().dual_length(self.V)
        self.rounding = max(problem.rounding, ROUNDOFF)
        self.own, self.opposing = np.flatnonzero(problem.own), np.flatnonzero(~problem.own)
        self.prior = float(np.log(len(self.opposing) / len(self.own)))
        self.challengers = (self.A[self.opposing] > 0).any(axis=0)
        self._none = np.zeros(len(self.A))

    # --- at a point

    def margin(self, v: FloatArray) -> tuple[float, float]:
        """Return how far the log-odds are turned at a point, and what is rounding of it."""
        u = self.z + self.V @ v
        f = self.A @ np.maximum(u, 0)
        odds = _log_mean_exp(f[self.opposing]) - _log_mean_exp(f[self.own]) + self.prior
        sizes = np.abs(self.z) + self.norms * np.sqrt(v @ v)
        return float(odds), 1e-14 * float((self.A * sizes).sum(axis=1).max())

    def is_silent(self, v: FloatArray) -> bool:
        """Return whether all neurons are off at a point."""
        return bool((self.z + self.V @ v <= 0).all())

    # --- in a part

    def reach(self, cap: Cap) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest pre-activations over a cap."""
        if np.isinf(cap.radius):
            far = np.where(self.norms > 0, np.inf, 0.0)
            return self.z - far, self.z + far
        low, high = Euclidean().reach(self.V, self.norms, cap)
        error = self.rounding * (self.z_sizes + self.norms * cap.radius)
        return self.z + low - error, self.z + high + error

    def relax(self, part: Part, cap: Cap) -> Relaxation | None:
        """Return what a part is within a cap; None if nothing."""
        low, high = self.reach(cap)
        low = np.where(part.signs == 1, np.maximum(low, 0), low)
        high = np.where(part.signs == -1, np.minimum(high, 0), high)
        if (low > high).any():
            return None
        bent = (low < 0) & (high > 0)
        factor, shift = (high > 0).astype(np.float64), np.zeros(len(low))
        if np.isfinite(cap.radius):
            factor[bent] = high[bent] / (high - low)[bent]
            shift[bent] = -factor[bent] * low[bent]
        elif (bent & self.challengers).any():
            return Relaxation(part, low, high, Lines(factor, shift), self._none, has_lines=False)
        lines = Lines(factor, shift)
        others = self.opposing[self.opposing != part.strongest]
        lo, hi, slopes = part.lo.copy(), part.hi.copy(), np.zeros(len(self.A))
        if len(others):
            ahead = np.zeros((len(others), len(self.A)))
            ahead[np.arange(len(others)), others] = 1
            ahead[:, part.strongest] = -1
            if np.isfinite(cap.radius):
                both, zeros = np.vstack([ahead, -ahead]), np.zeros(2 * len(others))
                mostly_on = np.broadcast_to(low + high > 0, (len(both), len(low)))
                most = self.half_spaces(both, zeros, zeros, mostly_on, lines).largest(cap)
                hi[others] = np.minimum(hi[others], most[: len(others)])
                lo[others] = np.maximum(lo[others], -most[len(others) :])
                if (lo > hi).any():
                    return None
            width = (hi - lo)[others]
            rate = np.where(width > 0, -np.expm1(-width) / np.where(width > 0, width, 1), 1.0)
            slopes[others] = np.exp(hi[others]) * rate
        tight = Part(part.strongest, part.signs, lo, hi)
        return Relaxation(tight, low, high, lines, slopes)

    def half_spaces(
        self,
        gains: FloatArray,
        consts: FloatArray,
        errors: FloatArray,
        masks: BoolArray,
        lines: Lines,
    ) -> HalfSpaces:
        """Return const + Σ g f with lines for positive terms and sums of neurons for negative."""
        by_neuron = gains @ self.A
        positive = np.maximum(by_neuron, 0)
        factors = np.where(by_neuron > 0, lines.factor, masks) * by_neuron
        shift = positive @ lines.shift
        slopes, sizes = factors @ self.V, np.abs(factors)
        return HalfSpaces(
            slopes,
            factors @ self.z + shift + consts,
            self.rounding * (sizes @ self.norms),
            self.rounding * (sizes @ self.z_sizes + shift) + errors,
            Euclidean().dual_length(slopes),
        )

    def cut_half_spaces(self, cuts: Cuts, relaxation: Relaxation) -> HalfSpaces:
        """Return what cuts say in a part."""
        part, c = relaxation.part, relaxation.slopes
        C = c.copy()
        C[part.strongest] -= c.sum()
        parts = np.expm1(part.hi) * (c > 0), c * part.hi
        K, K_size = float((parts[0] - parts[1]).sum()), float(np.abs(parts).sum())
        above, below = cuts.above @ part.hi, cuts.below @ part.lo
        return self.half_spaces(
            cuts.gains + cuts.beta[:, None] * C,
            cuts.consts + cuts.beta * K + above - below,
            cuts.errors + ROUNDOFF * (cuts.beta * K_size + np.abs(above) + np.abs(below)),
            cuts.masks,
            relaxation.lines,
        )

    def sign_rows(self, signs: IntArray) -> Rows:
        """Return the half-spaces in which neurons are on or off."""
        which = np.flatnonzero((signs != 0) & (self.norms > 0))
        norms, sides = self.norms[which], signs[which]
        return Rows(
            -sides[:, None] * self.V[which] / norms[:, None],
            sides * self.z[which] / norms,
            np.full(len(which), self.rounding),
            self.rounding * self.z_sizes[which] / norms,
        )

    # --- cuts

    def cuts_at(self, v: FloatArray, relaxation: Relaxation) -> Cuts:
        """Return the cuts that are tight at a point: of the log-odds, and of each difference."""
        s, lines = relaxation.part.strongest, relaxation.lines
        others = self.opposing[self.opposing != s]
        u = self.z + self.V @ v
        f, most = self.A @ np.maximum(u, 0), self.A @ (lines.factor * u + lines.shift)
        hi, c = relaxation.part.hi[others], relaxation.slopes[others]
        count = len(self.opposing)
        # kappa = |Q| (1 + k), the chords of all e^delta, which are at least 1 together
        k = float((np.expm1(hi) + c * (most[others] - f[s] - hi)).sum()) / count
        k = min(max(k, 1 / count - 1), 0.0)
        odds = self.odds_cut(f, u > 0)
        odds.gains[0, s] += 1
        odds.beta[0] = 1 / (count * (1 + k))
        consts = float(np.log1p(k)), -k / (1 + k)
        odds.consts += sum(consts)
        odds.errors += ROUNDOFF * np.abs(consts).sum()
        return odds.and_also(self.difference_cuts(s, others, u > 0))

    def odds_cut(self, f: FloatArray, on: BoolArray) -> Cuts:
        r"""Return :math:`\log|Q| - H(p) - \sum_P p_j f_j` with p the softmax of the own outputs."""
        gains = np.zeros((1, len(self.A)))
        gains[0, self.own], divergence = _shares(f[self.own])
        sizes = abs(self.prior) + divergence + float(f[self.own].max())
        return Cuts(
            -gains,
            np.array([self.prior + divergence]),
            np.array([ROUNDOFF * sizes]),
            np.zeros(1),
            self._none[None],
            self._none[None],
            on[None],
        )

    def difference_cuts(self, s: int, others: IntArray, on: BoolArray) -> Cuts:
        """Return for each other opposing output hi - delta >= 0 and delta - lo >= 0."""
        unit = np.eye(len(self.A))[others]
        ahead, none, zeros = unit.copy(), np.zeros_like(unit), np.zeros(2 * len(others))
        ahead[:, s] = -1
        return Cuts(
            np.vstack([-ahead, ahead]),
            zeros,
            zeros,
            zeros,
            np.vstack([unit, none]),
            np.vstack([none, unit]),
            np.broadcast_to(on, (2 * len(others), len(on))),
        )

    def tangent(self, f: FloatArray) -> tuple[FloatArray, float]:
        r"""Return q and c with :math:`\mathrm{LSE}_Q \ge \log|Q| + c + \langle q, f\rangle`.

        Both sides are equal at the given outputs.
        """
        gains = np.zeros(len(self.A))
        gains[self.opposing], divergence = _shares(f[self.opposing])
        return gains, -divergence


def _log_mean_exp(f: FloatArray) -> float:
    largest = f.max()
    return float(largest + np.log1p(np.expm1(f - largest).mean()))


def _shares(f: FloatArray) -> tuple[FloatArray, float]:
    r"""Return the softmax p of n outputs, and :math:`\log n - H(p)` without cancellation."""
    excess = np.expm1(f - _log_mean_exp(f))  # n p - 1
    divergence = float((xlog1py(1 + excess, excess) - excess).mean())
    return (1 + excess) / len(f), max(divergence, 0.0)

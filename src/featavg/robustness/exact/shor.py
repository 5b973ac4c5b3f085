"""A bound over all patterns of activations at once: Shor's relaxation, and a proof of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import BoolArray, FloatArray

_SWEEPS = 60
_NEWTON_STEPS = 12
_SETTLED = 1e-7
# By how much the relaxation's own value is lowered until its dual proves it.
_SHRINK = (1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.6, 0.9)
_ROUNDOFF = 1e-15


@dataclass(frozen=True, eq=False)
class Patterns:
    r"""Half-spaces, one for each pattern of neurons that are on.

    For :math:`s \in \{0, 1\}^m` the half-space of all v with
    :math:`F(s) + \langle G(s), v\rangle \le 0`, where

    .. math:: F(s) = F_0 - \sum_l s_l F_l, \qquad G(s) = G_0 - \sum_l s_l G_l .

    It is :math:`F(s)/\|G(s)\|` away where F(s) > 0.
    """

    offset: float
    offsets: FloatArray
    slope: FloatArray
    slopes: FloatArray

    @property
    def least_offset(self) -> float:
        """The smallest F(s)."""
        return self.offset - float(np.maximum(self.offsets, 0).sum())


@dataclass(frozen=True, eq=False)
class PatternBound:
    """The answer to `pattern_bound`.

    Attributes
    ----------
    distance : float
        No half-space is nearer than this.
    multipliers : array of shape (neurons + 1,)
        What proves it, see `proves`.
    factor : array of shape (neurons + 1, rank)
        The solution of the relaxation, as rows of norm 1.
    point : array of shape (coordinates,)
        Where its half-space is nearest.
    """

    distance: float
    multipliers: FloatArray
    factor: FloatArray
    point: FloatArray

    @property
    def on(self) -> BoolArray:
        """A pattern that is probably among the nearest."""
        return self.factor[1:] @ self.factor[0] > 0


def pattern_bound(
    patterns: Patterns, goal: float = np.inf, start: FloatArray | None = None
) -> PatternBound | None:
    r"""Return a distance that no half-space of any pattern falls short of.

    Paper: none, an extension; the relaxation is Shor's (as in Goemans and Williamson), solved by
    coordinate ascent on a low-rank factor (Wang and Kolter's mixing method).

    R is such a distance if :math:`R^2 \|G(s)\|^2 \le F(s)^2` for every s. With
    :math:`s = (1 + \sigma)/2` both sides are quadratic forms A, B of :math:`(1, \sigma)` with
    :math:`\sigma_l = \pm 1`, so it suffices that :math:`\langle R^2 A - B, Y\rangle \le 0` for all
    positive semidefinite Y with a diagonal of ones. The best R is the smallest
    :math:`\sqrt{\langle B, Y\rangle/\langle A, Y\rangle}`, found by Dinkelbach's iteration.

    Parameters
    ----------
    patterns : Patterns
        The half-spaces.
    goal : float
        A larger distance is not asked for.
    start : array of shape (neurons + 1, rank), optional
        The solution of a similar problem.

    Returns
    -------
    PatternBound or None
        None where some F(s) may not be positive, so that nothing can be said.
    """
    if patterns.least_offset <= 0:
        return None
    f, g = _centred(patterns)
    A, B = g @ g.T, np.outer(f, f)
    Y = _random_rows(len(f)) if start is None else start
    square = _quotient(f, g, Y)
    for _ in range(_NEWTON_STEPS):
        Y = _mix(min(square, goal**2) * A - B, Y)
        before, square = square, min(square, _quotient(f, g, Y))
        if square > goal**2 or square >= before * (1 - _SETTLED):
            break
    mean = Y @ Y[0]
    point = -(mean @ g) * float(mean @ f) / (float(np.square(g.T @ Y).sum()) or 1.0)
    square = min(square, goal**2)
    for shrink in _SHRINK:
        distance = float(np.sqrt(square)) * (1 - shrink)
        multipliers = (Y * ((distance**2 * A - B) @ Y)).sum(axis=1)
        if proves(patterns, distance, multipliers):
            return PatternBound(distance, multipliers, Y, point)
    return PatternBound(0.0, np.zeros(len(f)), Y, point)


def _random_rows(count: int) -> FloatArray:
    rows = np.random.default_rng(0).standard_normal((count, int(np.ceil(np.sqrt(2 * count))) + 1))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def proves(patterns: Patterns, distance: float, multipliers: FloatArray) -> bool:
    r"""Return whether multipliers y prove that no half-space is nearer than a distance R.

    For :math:`\sigma_l = \pm 1`, :math:`\sigma^\top Q\,\sigma \le \sum_l y_l + n\,\lambda` with
    :math:`Q = R^2 A - B` and :math:`\lambda` the largest eigenvalue of :math:`Q - \mathrm{diag}\,
    y`; the sum has to be at most 0. Rounding is allowed for.
    """
    if patterns.least_offset <= 0:
        return False
    f, g = _centred(patterns)
    Q = distance**2 * (g @ g.T) - np.outer(f, f)
    rest = Q - np.diag(multipliers)
    largest = float(np.linalg.eigvalsh(rest)[-1])
    size = len(f)
    scale = np.abs(rest).sum(axis=1).max() + np.abs(Q).sum(axis=1).max()
    summed = distance**2 * np.linalg.norm(g, axis=1).sum() ** 2 + np.abs(f).sum() ** 2
    rounding = _ROUNDOFF * size * (size * scale + g.shape[1] * float(summed))
    return float(multipliers.sum()) + size * largest + rounding <= 0


def _centred(patterns: Patterns) -> tuple[FloatArray, FloatArray]:
    """Return F and G as linear functions of (1, sigma)."""
    f = np.concatenate([[patterns.offset - patterns.offsets.sum() / 2], -patterns.offsets / 2])
    g = np.vstack([patterns.slope - patterns.slopes.sum(axis=0) / 2, -patterns.slopes / 2])
    return f, g


def _quotient(f: FloatArray, g: FloatArray, Y: FloatArray) -> float:
    below = float(np.square(g.T @ Y).sum())
    return float(np.square(f @ Y).sum()) / below if below > 0 else np.inf


def _mix(Q: FloatArray, Y: FloatArray) -> FloatArray:
    """Return rows of norm 1 that make the sum of Q times their products large."""
    Q = Q / (np.abs(Q).max() or 1.0)
    np.fill_diagonal(Q, 0.0)
    Y = Y.copy()
    last = -np.inf
    for _ in range(_SWEEPS):
        for i, row in enumerate(Q):
            step = row @ Y
            length = float(np.sqrt(step @ step))
            if length > 0:
                Y[i] = step / length
        value = float((Y * (Q @ Y)).sum())
        if value - last <= _SETTLED * abs(value):
            break
        last = value
    return Y

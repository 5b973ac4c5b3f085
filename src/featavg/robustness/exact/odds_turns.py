"""Perturbations that turn the log-odds of two groups of outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from featavg.arrays import BoolArray, FloatArray
from featavg.robustness.exact.geometry import Euclidean
from featavg.robustness.exact.nearest import FAR, Rows
from featavg.robustness.exact.odds_parts import Cuts, Lines
from featavg.robustness.exact.odds_rows import LogOdds

# In units of the radius: how far inside of the turned decision a perturbation has to be; and it
# should turn the decision when it is stretched by this, too.
_INSIDE = 1e-9
_STRETCH = 1 + 1e-6
_CUT_ROUNDS = 48


def nearest_turn(
    odds: LogOdds, v: FloatArray, on: BoolArray, cutoff: float, draw_turns: bool
) -> FloatArray | None:
    r"""Return the nearest perturbation that turns a simpler decision, which is as hard to turn.

    Paper: none, an extension; it is a step of the convex-concave procedure.

    :math:`\mathrm{LSE}_Q` is nowhere below its tangent at v with some of the neurons on. The set
    where the tangent reaches :math:`\mathrm{LSE}_P` is convex, and its nearest point is found by
    cuts.

    Parameters
    ----------
    odds : LogOdds
        The log-odds.
    v : array of shape (coordinates,)
        Where the tangent is taken.
    on : array of shape (neurons,)
        The neurons that are on.
    cutoff : float
        The largest norm that is of use.
    draw_turns : bool
        Whether the decision is turned by silence.
    """
    u = odds.z + odds.V @ v
    q, const = odds.tangent(odds.A @ np.maximum(u, 0))
    lines = Lines(on.astype(np.float64), np.zeros(len(on)))

    def cut_at(point: FloatArray) -> Cuts:
        u = odds.z + odds.V @ point
        cut = odds.odds_cut(odds.A @ np.maximum(u, 0), u > 0)
        return replace(cut, gains=cut.gains + q, consts=cut.consts + const)

    cuts = cut_at(v)
    for _ in range(_CUT_ROUNDS):
        spaces = odds.half_spaces(cuts.gains, cuts.consts, cuts.errors, cuts.masks, lines)
        if spaces.constant_distance >= min(cutoff, FAR):
            return None
        rows = spaces.rows()
        point = Euclidean().nearest(Rows.of(rows.A, _inside(rows.b)), cutoff).point
        if point is None:
            return None
        if all(turns(odds, p, draw_turns) for p in (point, _STRETCH * point)):
            return point
        cuts = cuts.and_also(cut_at(point)).and_also(cut_at(_STRETCH * point))
    return None


def nearest_silence(odds: LogOdds, cutoff: float) -> FloatArray | None:
    """Return the nearest perturbation that switches all neurons off, inside of that set if it can.

    The set may be a single point, such as the origin for a network without biases.
    """
    live = odds.norms > 0
    if (odds.z[~live] > 0).any():
        return None
    A, b = odds.V[live] / odds.norms[live, None], -odds.z[live] / odds.norms[live]
    for limits in (_inside(b), b):
        point = Euclidean().nearest(Rows.of(A, limits), cutoff).point
        if point is not None:
            return point
    return None


def turns(odds: LogOdds, v: FloatArray, draw_turns: bool) -> bool:
    """Return whether a perturbation turns the decision, by more than rounding."""
    margin, rounding = odds.margin(v)
    return margin > rounding or (draw_turns and margin >= 0 and odds.is_silent(v))


def _inside(b: FloatArray) -> FloatArray:
    """Return the limits of A v <= b for points that stay inside when they are stretched."""
    return np.minimum(b, b / _STRETCH) - _INSIDE

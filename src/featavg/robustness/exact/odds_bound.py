"""A bound of the radius for the probability readout in closed form, for many points at once."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw, wrightomega

from featavg.arrays import FloatArray, IntArray
from featavg.networks.base import TwoLayerNet
from featavg.robustness.view import AttackView

_SEGMENTS = 24  # pieces of the range of the strongest opposing class
_MULTIPLIERS = 2.0 ** np.linspace(-1, 1, 17)
_POINTS_AT_ONCE = 256
_ROUNDING = 1e-9


def log_odds_lower_bound(
    net: TwoLayerNet, view: AttackView, upper: FloatArray, u: FloatArray
) -> FloatArray:
    r"""Return radii within which no perturbation turns the log-odds of the two sides.

    Paper: none, an extension.

    The decision turns where :math:`\sum_P e^{f_j} \le \sum_Q e^{f_l}` (P the own side, Q the
    opposing one). Let :math:`d_j` be such that
    :math:`\sum_j d_j (u_j - z_j)^2 \le \|\rho\|^2` for every perturbation, with :math:`u_j` what
    it makes of the pre-activation :math:`z_j`. Where it turns, for every :math:`\lambda \ge 0`,

    .. math:: \|\rho\|^2 \ge \sum_j d_j (u_j - z_j)^2
              + \lambda \Big(\sum_P e^{f_j} - \sum_Q e^{f_l}\Big)
              \ge \sum_P \min_u [\dots] + \sum_Q \min_u [\dots]

    a sum of one-dimensional minima, each known in closed form by Lambert's W. To make the bound
    tight, the minima are taken separately for each opposing class being the strongest, and for
    each piece of the range of its output; the smallest of these bounds is the answer.

    Parameters
    ----------
    net : MultiClassNet
        A network of ReLUs with the probability readout.
    view : AttackView
        The points, all of them classified correctly.
    upper : array of shape (points,)
        Radii of known perturbations: outputs further away need not be looked at.
    u : array of shape (span, points)
        Those perturbations; their multipliers tell where to look for the best :math:`\lambda`.

    Returns
    -------
    array of shape (points,)
    """
    scalars = _ClassScalars.of(net, view)
    guess = _multiplier_guess(net, view, u)
    lower = np.zeros(len(upper))
    for sign in (1, -1):
        own = np.flatnonzero(net.output_signs == sign)
        opposing = np.flatnonzero(net.output_signs == -sign)
        which = np.flatnonzero((view.y == sign) & np.isfinite(upper) & (upper > 0))
        for some in np.array_split(which, max(1, len(which) // _POINTS_AT_ONCE)):
            if len(some):
                lower[some] = _side_bound(scalars, own, opposing, some, upper[some], guess[some])
    return np.minimum(lower * (1 - _ROUNDING), upper)


@dataclass(frozen=True, eq=False)
class _ClassScalars:
    """One number for each class and point, and what it costs to change it.

    With one neuron a class the number is its pre-activation; with more it is the class output, as
    if it were the pre-activation of one neuron.
    """

    z: FloatArray  # (classes, points)
    cost: FloatArray  # d, (classes,)
    slope: FloatArray  # the largest change for a unit of norm, (classes,)

    @classmethod
    def of(cls, net: TwoLayerNet, view: AttackView) -> _ClassScalars:
        V = view.span.weights
        norms = np.linalg.norm(V, axis=1)
        live = norms > 0
        unit = V[live] / norms[live, None]
        crowding = np.linalg.norm(unit @ unit.T, 2) if live.any() else 1.0
        # Σ c² (w·ρ)²/‖w‖² ≤ ‖ρ‖² with c² = 1/crowding; a neuron with no weight never moves
        inverse_cost = np.where(live, norms**2 * crowding, 1e-12 * (norms.max() ** 2 or 1.0))
        classes = len(net.second_layer)
        h = len(norms) // classes
        grouped = inverse_cost.reshape(classes, h).sum(axis=1) / h**2
        slope = norms.reshape(classes, h).sum(axis=1) / h
        z = view.z if h == 1 else view.outputs(view.z)
        return cls(z, 1 / grouped, slope)


def _multiplier_guess(net: TwoLayerNet, view: AttackView, u: FloatArray) -> FloatArray:
    r"""Return the multiplier of the known perturbations, times the size of their exponentials.

    At the nearest turning point :math:`2u = \lambda \nabla(\sum_Q e^{f_l} - \sum_P e^{f_j})`; with
    the log-odds, whose gradient is that one over :math:`\sum_Q e^{f_l} = \sum_P e^{f_j}`, the
    quotient of the norms is :math:`\lambda` times this sum.
    """
    _, gradient = view.margin_and_gradient(u)
    slope = np.linalg.norm(gradient, axis=0)
    outputs = view.outputs(view.preactivations(u))
    shift = outputs.max(axis=0)
    share = np.exp(outputs - shift)[net.output_signs == 1].sum(axis=0)
    scaled = 2 * np.linalg.norm(u, axis=0) / np.where(slope > 0, slope, 1) / share
    return np.log(np.maximum(scaled, 1e-300)) - shift


def _side_bound(
    scalars: _ClassScalars,
    own: IntArray,
    opposing: IntArray,
    points: IntArray,
    radius: FloatArray,
    guess: FloatArray,
) -> FloatArray:
    """Return the bound for points of one side; axes: pieces, multipliers, classes, points."""
    z_own, d_own = scalars.z[own][:, points], scalars.cost[own][:, None]
    z, d = scalars.z[opposing][:, points], scalars.cost[opposing][:, None]
    reach = np.maximum(z + radius * scalars.slope[opposing][:, None], 0)
    top = reach.max(axis=0)
    # the logarithm of the multiplier times the largest exponential in reach
    log_rate = (np.log(_MULTIPLIERS)[:, None] + guess + top)[:, None, :]
    total = _own_minimum(z_own, d_own, log_rate, top).sum(axis=1)
    edges = np.linspace(0, 1, _SEGMENTS + 1)[:, None] * top
    stationary = _stationary(z, d, log_rate, top)
    best = np.full((len(points),), np.inf)
    for below, above in itertools.pairwise(edges):
        ceiling = np.minimum(reach, above)
        others = _opposing_minimum(z, d, log_rate, top, stationary, None, ceiling)
        floor = None if not below.any() else np.broadcast_to(below, ceiling.shape)
        strongest = (
            others
            if floor is None
            else _opposing_minimum(z, d, log_rate, top, stationary, floor, ceiling)
        )
        value = total[:, None] + others.sum(axis=1, keepdims=True) - others + strongest
        impossible = reach < below
        bound = np.where(impossible, np.inf, value.max(axis=0))
        best = np.minimum(best, bound.min(axis=0))
    return np.minimum(np.sqrt(np.maximum(best, 0)), radius)


def _own_minimum(z: FloatArray, d: FloatArray, log_rate: FloatArray, top: FloatArray) -> FloatArray:
    """Return min d (u - z)² + exp(log_rate + relu(u) - top) over u."""
    root = z - wrightomega(log_rate + z - top - np.log(2 * d))  # Lambert's W of an exponential
    u = np.maximum(root, 0)
    moved = d * np.square(u - z) + _exp(log_rate + u - top)
    return np.where(z < 0, np.minimum(moved, _exp(log_rate - top)), moved)


def _stationary(z: FloatArray, d: FloatArray, log_rate: FloatArray, top: FloatArray) -> FloatArray:
    """Return the local minimum of d (u - z)² - exp(log_rate + u - top); infinity without one."""
    exponent = log_rate + z - top - np.log(2 * d)
    exists = exponent <= -1
    return np.where(exists, z - lambertw(-np.exp(np.where(exists, exponent, -np.inf))).real, np.inf)


def _opposing_minimum(
    z: FloatArray,
    d: FloatArray,
    log_rate: FloatArray,
    top: FloatArray,
    stationary: FloatArray,
    floor: FloatArray | None,
    ceiling: FloatArray,
) -> FloatArray:
    """Return min d (u - z)² - exp(log_rate + relu(u) - top) over floor <= u <= ceiling.

    The function is convex up to some u and concave from there on: its minimum is the stationary
    point or an end. Without a floor u may be negative, where the exponential no longer changes.
    """

    def value(u: FloatArray) -> FloatArray:
        return d * np.square(u - z) - _exp(log_rate + np.maximum(u, 0) - top)

    start = np.minimum(z, 0) if floor is None else floor
    inside = np.clip(stationary, np.maximum(start, 0), np.maximum(ceiling, 0))
    return np.minimum(np.minimum(value(start), value(inside)), value(np.maximum(ceiling, start)))


def _exp(exponent: FloatArray) -> FloatArray:
    """Return the exponential, short of overflow: so large a multiplier proves nothing anyway."""
    return np.exp(np.minimum(exponent, 600.0))

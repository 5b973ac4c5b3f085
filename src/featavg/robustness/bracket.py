"""Certified bounds of the radius for the probability readout."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw, wrightomega

from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.robustness.attacks import check_points
from featavg.robustness.exact.contest import Contest, PointProblem
from featavg.robustness.exact.geometry import Euclidean
from featavg.robustness.exact.search import ContestSearch, Found
from featavg.robustness.exact.tasks import Limits, search_all
from featavg.robustness.minimal_norm import attack_all, start_from
from featavg.robustness.radii import Radii
from featavg.robustness.view import AttackView

_SEGMENTS = 12  # pieces of the range of the strongest opposing class
_MULTIPLIERS = 2.0 ** np.linspace(-4, 4, 33)
_POINTS_AT_ONCE = 256
_ROUNDING = 1e-9


# Where the bound of the log-odds leaves more than this, simpler searches are tried as well.
_WIDE_GAP = 0.05
_STARTS = 2
_ATTACK_STEPS = 100
_LARGEST_OUTPUT = 50.0


def probability_radii(
    net: TwoLayerNet,
    x: ArrayLike,
    y: ArrayLike | None,
    limits: Limits,
    jobs: int | None,
    progress: bool,
) -> Radii:
    """Return certified bounds of the radius for the probability readout.

    Where the log-odds bound is not near, searches of simpler contests give other bounds, and the
    perturbations they end with are good places to start an attack from.
    """
    if net.activation.pieces != (0.0, 1.0):
        raise InputError(f"the bracket needs a ReLU; got {net.activation!r}.")
    points, labels = check_points(net, x, net.predict(x) if y is None else y)
    view = AttackView.of(net, points, labels)
    best = attack_all(view, points, _ATTACK_STEPS, _STARTS)
    lower = log_odds_lower_bound(net, view, best.norm, best.u)
    wide = np.flatnonzero((best.norm > 0) & ~(lower >= (1 - _WIDE_GAP) * best.norm))
    if len(wide):
        simpler = _SimplerContests(net, view)
        tasks = [
            *(simpler.argmax(i) for i in wide),
            *(simpler.many_classes(i) for i in wide),
            *(simpler.small_outputs(i, float(best.norm[i])) for i in wide),
        ]
        found = search_all(partial(_search, limits=limits), tasks, jobs, progress)
        turning, many_classes, small_outputs = (
            found[k * len(wide) : (k + 1) * len(wide)] for k in range(3)
        )
        for answers in (turning, small_outputs):
            start_from(view, best, wide, [answer.point for answer in answers])
        proved = log_odds_lower_bound(net, view, best.norm, best.u)
        for answers in (many_classes, small_outputs):
            proved[wide] = np.maximum(proved[wide], [answer.lower for answer in answers])
        lower = np.maximum(proved, lower)
    norms, perturbations = best.turning(view, points)
    turns = (net.predict(points + perturbations) != labels) | np.isinf(norms)
    return Radii(np.minimum(lower, best.norm), norms, perturbations, "l2", turns)


def _search(problem: PointProblem, limits: Limits) -> Found:
    return ContestSearch(problem, Euclidean()).run(limits.budget())


class _SimplerContests:
    """Contests of sums of ReLUs that say something about those of the log-odds."""

    def __init__(self, net: TwoLayerNet, view: AttackView) -> None:
        self._view, self._signs = view, net.output_signs
        norms = np.linalg.norm(view.span.weights, axis=1)
        self._norms = norms
        self._rounding = 1e-15 * (net.dim + len(norms) + 16)

    def argmax(self, i: int, lead: float = 0.0) -> PointProblem:
        """Return the contests of the argmax: one for each opposing class."""
        sign = int(self._view.y[i])
        own, A = np.flatnonzero(self._signs == sign), self._view.A
        contests = [
            self._contest(A[l] - A[own], np.full(len(own), lead), sign)
            for l in np.flatnonzero(self._signs == -sign)
        ]
        return self._problem(i, contests)

    def many_classes(self, i: int) -> PointProblem:
        """Return contests that bound the log-odds from below, tightly where outputs are large.

        Where the log-odds turn, some opposing output plus the logarithm of their number is at
        least every own output.
        """
        return self.argmax(i, float(np.log((self._signs == -self._view.y[i]).sum())))

    def small_outputs(self, i: int, radius: float) -> PointProblem:
        r"""Return a contest that bounds the log-odds from below, tightly where outputs are small.

        For outputs from 0 to F, :math:`1 + f \le e^f \le 1 + s f` with :math:`s = (e^F - 1)/F`, so
        where the log-odds turn, :math:`\sum_P f_j \le s \sum_Q f_l + |Q| - |P|`. F is what can be
        reached within the radius that is known, but no more than 50: where some opposing output
        is larger, the inequality holds all the more, no own output being above it by more than
        log|Q|.
        """
        sign, A = int(self._view.y[i]), self._view.A
        own, opposing = A[self._signs == sign], A[self._signs == -sign]
        largest = _LARGEST_OUTPUT
        if np.isfinite(radius):
            reach = np.maximum(self._view.z[:, i] + radius * self._norms, 0)
            largest = min(float((opposing @ reach).max()), largest)
        factor = np.expm1(largest) / largest if largest > 0 else 1.0
        gains = factor * opposing.sum(axis=0) - own.sum(axis=0)
        lead = np.array([float(len(opposing) - len(own))])
        return self._problem(i, [self._contest(gains[None], lead, sign)])

    def _contest(self, gains: FloatArray, leads: FloatArray, sign: int) -> Contest:
        slopes = np.zeros((len(leads), self._view.span.weights.shape[1]))
        return Contest(gains, slopes, leads, np.abs(leads), np.full(len(leads), sign == -1))

    def _problem(self, i: int, contests: list[Contest]) -> PointProblem:
        z = self._view.z[:, i]
        sizes = self._view.z_sizes[:, i]
        weights = self._view.span.weights
        return PointProblem(weights, z, sizes, tuple(contests), self._rounding)


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

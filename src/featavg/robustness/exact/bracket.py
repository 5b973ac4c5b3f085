"""Certified bounds of the radius for the probability readout."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from featavg.arrays import BoolArray, FloatArray
from featavg.errors import InputError
from featavg.networks.activation import refuse_smooth
from featavg.networks.base import TwoLayerNet
from featavg.robustness.attacks import check_points
from featavg.robustness.exact.nearest import unless_beyond_reach
from featavg.robustness.exact.nodes import Found
from featavg.robustness.exact.odds_bound import log_odds_lower_bound
from featavg.robustness.exact.odds_parts import OddsProblem
from featavg.robustness.exact.odds_search import OddsSearch, kink_distance
from featavg.robustness.exact.tasks import Limits, search_all
from featavg.robustness.minimal_norm import attack_all
from featavg.robustness.radii import Radii
from featavg.robustness.view import AttackView

# Where the bound in closed form leaves more than this, there is a search.
_WIDE_GAP = 0.03
_STARTS = 2
_ATTACK_STEPS = 100


def probability_radii(
    net: TwoLayerNet,
    x: ArrayLike,
    y: ArrayLike | None,
    limits: Limits,
    jobs: int | None,
    progress: bool,
) -> Radii:
    """Return certified bounds of the radius for the probability readout.

    Attacks and a bound in closed form treat all points at once. Where they are not near each
    other, a branch and bound finds a better perturbation and a better bound.
    """
    if refuse_smooth(net.activation, "the bracket") != (0.0, 1.0):
        raise InputError(f"the bracket needs a ReLU; got {net.activation!r}.")
    points, labels = check_points(net, x, net.predict(x) if y is None else y)
    view = AttackView.of(net, points, labels)
    best = attack_all(view, points, _ATTACK_STEPS, _STARTS)
    lower = log_odds_lower_bound(net, view, best.norm, best.u)
    wide = np.flatnonzero((best.norm > 0) & ~(lower >= (1 - _WIDE_GAP) * best.norm))
    kept = _without_equals(net)
    tasks = [
        _task(net, view, kept, i, best.u[:, i] if np.isfinite(best.norm[i]) else None)
        for i in wide.tolist()
    ]
    found = search_all(partial(_search, limits=limits), tasks, jobs, progress)
    for i, task, answer in zip(wide, tasks, found, strict=True):
        lower[i] = max(lower[i], answer.lower)
        if answer.point is None and np.isinf(best.norm[i]):
            lengths = float(np.linalg.norm(points[i])), kink_distance(task.odds)
            lower[i] = unless_beyond_reach(lower[i], *lengths)
        if answer.point is not None and answer.upper < best.norm[i]:
            best.norm[i], best.u[:, i] = answer.upper, answer.point
    norms, perturbations = best.turning(view, points)
    turns = (net.predict(points + perturbations) != labels) | np.isinf(norms)
    return Radii(np.minimum(lower, norms), norms, perturbations, "l2", turns)


@dataclass(frozen=True, eq=False)
class _Task:
    """The log-odds around a point, and a perturbation that turns them, if one is known."""

    odds: OddsProblem
    incumbent: FloatArray | None


def _task(
    net: TwoLayerNet, view: AttackView, kept: BoolArray, i: int, incumbent: FloatArray | None
) -> _Task:
    odds = OddsProblem(
        weights=view.span.weights,
        z=view.z[:, i],
        z_sizes=view.z_sizes[:, i],
        A=view.A[kept],
        own=(net.output_signs == view.y[i])[kept],
        draw_turns=bool(view.y[i] == 1),
        rounding=1e-15 * (net.dim + len(view.z) + 16),
    )
    return _Task(odds, incumbent)


def _without_equals(net: TwoLayerNet) -> BoolArray:
    """Return the outputs that are left when equal ones of the two sides cancel."""
    signs, parameters = net.output_signs, np.column_stack([net.biases, net.weights])
    neurons = []
    for layer in net.second_layer:
        rows = parameters[layer > 0]
        rows = rows[rows.any(axis=1)]  # others are always silent
        neurons.append(rows[np.lexsort(rows.T)])
    kept = np.ones(len(signs), dtype=bool)
    for j, k in itertools.product(np.flatnonzero(signs == 1), np.flatnonzero(signs == -1)):
        if kept[j] and kept[k] and np.array_equal(neurons[j], neurons[k]):
            kept[[j, k]] = False
    return kept


def _search(task: _Task, limits: Limits) -> Found:
    if task.odds.own.all() and task.incumbent is None:  # no opposing output can make a difference
        return Found(np.inf, np.inf, None)
    if task.odds.own.all() or not task.odds.own.any():  # a draw but for rounding
        return Found(0.0, np.inf, None)
    return OddsSearch(task.odds, task.incumbent).run(limits.budget())

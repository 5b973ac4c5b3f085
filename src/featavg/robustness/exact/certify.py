"""The radius itself, not what an attack happened to find."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError
from featavg.networks.base import ReluForm, TwoLayerNet
from featavg.progress import ProgressReporter
from featavg.robustness.attacks import check_points
from featavg.robustness.bracket import log_odds_lower_bound
from featavg.robustness.exact.pieces import Contest
from featavg.robustness.exact.search import ContestSearch, Found
from featavg.robustness.minimal_norm import Best, attack_all, start_from
from featavg.robustness.norm import Norm, as_norm
from featavg.robustness.radii import Radii
from featavg.robustness.view import AttackView

# A perturbation has to turn the decision as it is and when stretched by this.
_STRETCH = 1 + 1e-6
# Work of this many seconds is worth starting other processes for.
_WORTH_SHARING = 1.5
_POINTS_AT_ONCE = 32
_STARTS = 2
_LARGEST_OUTPUT = 50.0
# A radius below this, relative to the pre-activations, is rounding.
_NOTHING = 1e-15
# Where the bound of the log-odds leaves more than this, the plain one is tried as well.
_WIDE_GAP = 0.05


def exact_radii(
    net: TwoLayerNet,
    x: ArrayLike,
    y: ArrayLike,
    *,
    norm: str | Norm = "l2",
    max_nodes: int = 100_000,
    attack_steps: int = 100,
    jobs: int | None = None,
    progress: bool = False,
) -> Radii:
    r"""Return the smallest norm of a perturbation that turns the decision of each point.

    Paper: none, an extension; it is the radius of Section 3.2 for one point.

    For a `BinaryNet` and a point of label +1 it solves

    .. math:: \min \|\rho\| \quad\text{s.t.}\quad
              \sum_{\text{positive}} \mathrm{relu}(z_r + \langle w_r, \rho\rangle)
              \le \sum_{\text{negative}} \mathrm{relu}(z_r + \langle w_r, \rho\rangle)

    exactly, by branch and bound over the activations of the negative neurons with a convex
    quadratic program in each node, in the span of the weights; for a label of -1 the other way
    round, with < (a score of 0 is the decision -1). For a `MultiClassNet` with the argmax readout
    the same is done for each opposing class, and is exact too. For the probability readout the
    bounds are a certified bracket, `lower` by duality and `upper` by an actual perturbation.

    The activation has to be piecewise linear; a leaky ReLU is two ReLUs, :math:`\mathrm{relu}(z) -
    a\,\mathrm{relu}(-z)`, and is exact for a `BinaryNet`.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The network.
    x, y : arrays of shape (points, coordinates) and (points,)
        The points and their labels in {-1, +1}.
    norm : {"l2"}
        The norm of perturbations.
    max_nodes : int
        When to give up on a point; it then has bounds that are not equal.
    attack_steps : int
        Steps of the attacks whose perturbations the searches start from. Exact radii do not
        depend on it; without attacks (0) a few points take less time.
    jobs : int, optional
        The number of processes; by default one for each core where the work is worth it.
    progress : bool
        Whether to report progress on standard error.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> radii = exact_radii(net, [[3.0, 1.0], [0.0, 2.0], [1.0, 2.0]], [1, -1, 1])
    >>> radii.upper.round(6)             # to x1 = x2; and the last one is wrong already
    array([1.414214, 1.414214, 0.      ])
    >>> radii.exact
    array([ True,  True,  True])
    """
    points, labels = check_points(net, x, y)
    size = as_norm(norm)
    form = net.relu_form()  # refuses what is not piecewise linear
    max_nodes = checks.count("max_nodes", max_nodes)
    attack_steps = checks.count("attack_steps", attack_steps, minimum=0)
    jobs = None if jobs is None else checks.count("jobs", jobs)
    view = AttackView.of(net, points, labels)
    best = attack_all(view, points, attack_steps, _STARTS) if attack_steps else Best.of(view)
    if net.readout == "probability":
        lower = _bracket(net, form, view, best, max_nodes, jobs, progress)
        return Radii(np.minimum(lower, best.norm), *best.turning(view, points), size.name)
    right = np.flatnonzero(best.norm > 0)
    answers = _search_all(_tasks(form, view, best, right), max_nodes, jobs, progress)
    lower = np.zeros(len(labels))
    for i, answer in zip(right, answers, strict=True):
        lower[i], best.norm[i] = answer.lower, answer.upper
        best.u[:, i] = 0.0 if answer.point is None else answer.point
    return Radii(lower, best.norm, view.span.embed(best.u), size.name)


@dataclass(frozen=True, eq=False)
class _Task:
    """The search around one point."""

    weights: FloatArray
    z: FloatArray
    contests: tuple[Contest, ...]
    incumbent: FloatArray | None

    def run(self, max_nodes: int) -> Found:
        search = ContestSearch(self.weights, self.z, self.contests, self.incumbent)
        found = search.run(max_nodes)
        if found.point is None:
            return found
        largest = np.linalg.norm(self.weights, axis=1).max()
        if found.upper * largest <= _NOTHING * np.abs(self.z).max():  # the point is on the boundary
            return Found(0.0, 0.0, np.zeros_like(found.point))
        return Found(found.lower, found.upper, self._inside(search, found.point))

    def _inside(self, search: ContestSearch, point: FloatArray) -> FloatArray:
        """Return a perturbation that turns the decision for certain, as near as rounding allows.

        The exact one lies on the boundary. There is nothing inside where the boundary is all.
        """
        inner = search.inner_point(point, _STRETCH)
        return inner if inner is not None and self._turns(inner) else point

    def _turns(self, point: FloatArray) -> bool:
        values = np.maximum(self.z + self.weights @ point, 0)
        rounding = 1e-15 * float(np.abs(self.z).sum() + values.sum())
        for contest in self.contests:
            total = contest.lead + values[contest.challengers].sum()
            if contest.strict:
                total -= rounding
            if all(values[group].sum() <= total for group in contest.rivals):
                return True
        return False


def _tasks(form: ReluForm, view: AttackView, best: Best, which: IntArray) -> list[_Task]:
    contests = {sign: _contests(form, sign) for sign in (1, -1)}
    weights, z = form.rows(view.span.weights), form.rows(view.z)
    return [
        _Task(
            weights,
            z[:, i],
            contests[int(view.y[i])],
            best.u[:, i] if np.isfinite(best.norm[i]) else None,
        )
        for i in which
    ]


def _contests(form: ReluForm, sign: int, lead: float = 0.0) -> tuple[Contest, ...]:
    """Return the ways to turn a decision for the side `sign`; a score of 0 is on the side -1.

    One for each opposing group, which has to overtake every group of this side.
    """
    own = tuple(group for group, s in zip(form.groups, form.signs, strict=True) if s == sign)
    opposing = (group for group, s in zip(form.groups, form.signs, strict=True) if s == -sign)
    return tuple(Contest(group, own, sign == -1, lead) for group in opposing)


def _search_all(
    tasks: list[_Task], max_nodes: int, jobs: int | None, progress: bool
) -> list[Found]:
    """Run the searches, in other processes too where the first ones say that it pays."""
    answers: list[Found] = []
    with ProgressReporter("exact radii", len(tasks), enabled=progress) as reporter:
        start = time.perf_counter()
        if jobs is None:
            answers = _run_some(tasks[:_POINTS_AT_ONCE], max_nodes)
            reporter.advance(len(answers))
            ahead = (time.perf_counter() - start) / _POINTS_AT_ONCE * len(tasks)
            jobs = cpu_count() if ahead > _WORTH_SHARING else 1
        rest = tasks[len(answers) :]
        batches = [rest[i : i + _POINTS_AT_ONCE] for i in range(0, len(rest), _POINTS_AT_ONCE)]
        parallel = Parallel(n_jobs=jobs, return_as="generator")
        for some in parallel(delayed(_run_some)(batch, max_nodes) for batch in batches):
            answers.extend(some)
            reporter.advance(len(some))
    return answers


def _run_some(tasks: list[_Task], max_nodes: int) -> list[Found]:
    return [task.run(max_nodes) for task in tasks]


def _bracket(
    net: TwoLayerNet,
    form: ReluForm,
    view: AttackView,
    best: Best,
    max_nodes: int,
    jobs: int | None,
    progress: bool,
) -> FloatArray:
    """Return lower bounds for the probability readout, and improve `best` where they are far.

    Where the log-odds bound is not near, searches of simpler contests give other bounds, and the
    perturbations they end with are good places to start an attack from.
    """
    if net.activation.pieces != (0.0, 1.0):
        raise InputError(f"the bracket needs a ReLU; got {net.activation!r}.")
    lower = log_odds_lower_bound(net, view, best.norm, best.u)
    wide = np.flatnonzero((best.norm > 0) & ~(lower >= (1 - _WIDE_GAP) * best.norm))
    if not len(wide):
        return lower
    nowhere = Best(np.full(len(view.y), np.inf), np.zeros_like(best.u))
    tasks = [
        *_tasks(form, view, nowhere, wide),  # of the argmax
        *_many_classes_tasks(form, view, wide),
        *_small_outputs_tasks(form, view, best, wide),
    ]
    found = _search_all(tasks, max_nodes, jobs, progress)
    turning, many_classes, small_outputs = (
        found[k * len(wide) : (k + 1) * len(wide)] for k in range(3)
    )
    for answers in (turning, small_outputs):
        start_from(view, best, wide, [answer.point for answer in answers])
    proved = log_odds_lower_bound(net, view, best.norm, best.u)
    for answers in (many_classes, small_outputs):
        proved[wide] = np.maximum(proved[wide], [answer.lower for answer in answers])
    return np.minimum(np.maximum(proved, lower), best.norm)


def _many_classes_tasks(form: ReluForm, view: AttackView, which: IntArray) -> list[_Task]:
    """Return searches that bound the log-odds from below, tightly where outputs are large.

    Where the log-odds turn, some opposing output plus the logarithm of their number is at least
    every own output.
    """
    contests = {
        sign: _contests(form, sign, np.log((form.signs == -sign).sum()) / form.scale)
        for sign in (1, -1)
    }
    return [_Task(view.span.weights, view.z[:, i], contests[int(view.y[i])], None) for i in which]


def _small_outputs_tasks(
    form: ReluForm, view: AttackView, best: Best, which: IntArray
) -> list[_Task]:
    r"""Return searches that bound the log-odds from below, tightly where outputs are small.

    For outputs from 0 to F, :math:`1 + f \le e^f \le 1 + s f` with :math:`s = (e^F - 1)/F`, so
    where the log-odds turn, :math:`\sum_P f_j \le s \sum_Q f_l + |Q| - |P|`. F is what can be
    reached within the radius that is known, but no more than 50: where some opposing output is
    larger, the inequality holds all the more, no own output being above it by more than log|Q|.
    """
    tasks = []
    norms = np.linalg.norm(view.span.weights, axis=1)
    sides = {
        s: np.concatenate([g for g, t in zip(form.groups, form.signs, strict=True) if t == s])
        for s in (1, -1)
    }
    for i in which:
        sign = int(view.y[i])
        lead = float(-sign * form.signs.sum() / form.scale)
        contest = Contest(sides[-sign], (sides[sign],), sign == -1, lead)
        largest = _LARGEST_OUTPUT
        if np.isfinite(best.norm[i]):
            reach = np.maximum(view.z[:, i] + best.norm[i] * norms, 0)
            largest = min(float((view.A @ reach)[form.signs == -sign].max()), largest)
        factor = np.ones(len(norms))
        factor[contest.challengers] = np.expm1(largest) / largest if largest > 0 else 1.0
        tasks.append(
            _Task(factor[:, None] * view.span.weights, factor * view.z[:, i], (contest,), None)
        )
    return tasks

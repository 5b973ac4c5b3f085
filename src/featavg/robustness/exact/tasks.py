"""Searches around many points, in one process or several."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed

from featavg.arrays import BoolArray, FloatArray
from featavg.errors import InputError
from featavg.networks.activation import refuse_smooth
from featavg.networks.shallow import ShallowNet
from featavg.progress import ProgressReporter
from featavg.robustness.exact.boxes import BoxedEuclidean
from featavg.robustness.exact.checking import proved_bound
from featavg.robustness.exact.contest import Decision, span_basis
from featavg.robustness.exact.geometry import Euclidean, Geometry
from featavg.robustness.exact.max_norm import MaxNorm
from featavg.robustness.exact.nearest import unless_beyond_reach
from featavg.robustness.exact.nodes import Budget, Found
from featavg.robustness.exact.proof import Proof
from featavg.robustness.exact.search import ContestSearch, kink_distance
from featavg.robustness.exact.verify import is_level, leaves

# A perturbation should turn the decision as it is and when stretched by this.
_STRETCH = 1 + 1e-6
# How much longer than the smallest one a perturbation may be that turns the decision for certain.
_NEAR = 1 + 1e-5
# The same with rounding, for a check of results.
LONGEST = 1 + 1.1e-5
# Work of this many seconds is worth starting other processes for.
_WORTH_SHARING = 1.5
_POINTS_AT_ONCE = 32
# Bounds nearer than this to the best perturbation are those of a search that has ended.
_CLOSED = 2e-9
# A radius below this, relative to the pre-activations, is rounding.
_NOTHING = 1e-15
# Squares of what is smaller than this, or larger than its inverse, leave what a float can hold.
_SMALLEST = 1e-100
# Weights below this, such as those of dead neurons after weight decay, may get lost.
_NO_WEIGHT = 1e-290

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """When to give up on a point: after so many nodes, or seconds."""

    nodes: int
    seconds: float | None = None

    def budget(self) -> Budget:
        """Return what is left from now on."""
        deadline = np.inf if self.seconds is None else time.perf_counter() + self.seconds
        return Budget(self.nodes, deadline)


@dataclass(frozen=True, eq=False)
class Task:
    """A point, and the outputs that keep its decision and that turn it."""

    x: FloatArray
    own: BoolArray
    opposing: BoolArray


@dataclass(frozen=True, eq=False)
class Answer:
    """Bounds of the radius of a point, and a perturbation, which turns the decision or does not."""

    lower: float
    upper: float
    perturbation: FloatArray
    turns: bool
    proof: Proof | None


class PointSearch:
    """The search for the radius of any point of a network."""

    def __init__(
        self,
        net: ShallowNet,
        norm: str,
        bounds: tuple[float, float] | None,
        limits: Limits,
    ) -> None:
        self.net, self.limits, self.norm, self.bounds = in_range(net), limits, norm, bounds
        self._basis = span_basis(self.net) if norm == "l2" and bounds is None else None
        self._ambient = self._decision = Decision(self.net)
        if self._basis is not None:
            self._decision = Decision(self.net, self._basis)

    def __call__(self, task: Task) -> Answer:
        """Return the radius of a point that is decided rightly."""
        problem = self._decision.problem(task.x, task.own, task.opposing)
        size = problem.size
        if size and not _SMALLEST <= size <= 1 / _SMALLEST:
            raise InputError(
                f"pre-activations must have a size from {_SMALLEST:g} to {1 / _SMALLEST:g} for "
                f"radii to be computed; got {size:g}."
            )
        geometry = geometry_of(self.norm, self.bounds, task.x)
        search = ContestSearch(problem, geometry)
        found = search.run(self.limits.budget())
        nothing = np.zeros_like(task.x)
        lower = self._checked(found, task, geometry)
        if found.point is None:
            lengths = geometry.length(task.x), kink_distance(problem, geometry)
            lower = unless_beyond_reach(lower, *lengths)
            return Answer(lower, found.upper, nothing, True, found.proof)
        if found.upper * problem.steepness <= _NOTHING * size and is_level(
            self.net, task.x, task.own, task.opposing
        ):
            return Answer(0.0, 0.0, nothing, True, found.proof)  # the point is on the boundary
        inner, turns = self._inside(search, task, found.point)
        perturbation, upper = self._embed(inner, task.x), found.upper
        if not turns and not search.is_nearly_won(found.point):
            return Answer(lower, np.inf, nothing, True, found.proof)  # no perturbation is known
        if turns and search.length(inner) > upper * _NEAR:
            upper = search.length(inner)  # what is nearer was not seen to turn the decision
        return Answer(lower, upper, perturbation, turns, found.proof)

    def _checked(self, found: Found, task: Task, geometry: Geometry) -> float:
        """Return the lower bound; where rounding may matter, what the proof says of it."""
        if found.lower >= found.upper * (1 - _CLOSED) or found.proof is None:
            return found.lower
        problem = self._ambient.problem(task.x, task.own, task.opposing)
        return min(found.lower, proved_bound(problem, geometry, found.proof))

    def _inside(
        self, search: ContestSearch, task: Task, point: FloatArray
    ) -> tuple[FloatArray, bool]:
        """Return a perturbation that turns the decision for certain, as near as rounding allows.

        The exact one lies on the boundary. There is nothing inside where the boundary is all.
        """
        length = search.length(point)
        best: FloatArray | None = None
        for inner in search.inner_points(point, _STRETCH):
            if best is not None and search.length(inner) >= search.length(best):
                continue
            if self._turns(task, self._embed(inner, task.x)):
                best = inner
                if search.length(inner) <= length * _NEAR:
                    break
        if best is not None:
            return best, True
        return point, self._turns(task, self._embed(point, task.x))

    def _turns(self, task: Task, perturbation: FloatArray) -> bool:
        return leaves(self.net, task.x + perturbation, task.own, task.opposing)

    def _embed(self, point: FloatArray, x: FloatArray) -> FloatArray:
        """Return a perturbation in all coordinates; x and it add up to a point in the bounds."""
        if self._basis is not None:
            return self._basis @ point
        if self.bounds is None:
            return point
        low, high = self.bounds
        point = np.clip(point, low - x, high - x)
        point = np.where(x + point > high, np.nextafter(point, -np.inf), point)
        return np.where(x + point < low, np.nextafter(point, np.inf), point)


def geometry_of(norm: str, bounds: tuple[float, float] | None, x: FloatArray) -> Geometry:
    """Return how perturbations of a point are measured, and where they may be."""
    if norm == "l2" and bounds is None:
        return Euclidean()
    low, high = (np.full(len(x), end) - x for end in bounds or (-np.inf, np.inf))
    return MaxNorm(low, high) if norm == "linf" else BoxedEuclidean(low, high)


def in_range(net: ShallowNet) -> ShallowNet:
    """Return a network that decides alike, with weights of order 1 in both layers.

    The factors are powers of two, so that nothing is rounded.
    """
    refuse_smooth(net.activation, "the exact radius")
    inner = _power_of_two(net.weights if net.weights.any() else net.linear)
    outer = _power_of_two(net.second_layer) if net.weights.any() else 1.0
    factors = {
        "weights": inner,
        "biases": inner,
        "second_layer": outer,
        "output_biases": inner * outer,
        "linear": inner * outer,
    }
    scaled = {name: factor * getattr(net, name) for name, factor in factors.items()}
    for name, values in scaled.items():
        lost = (values == 0) & (np.abs(getattr(net, name)) > _NO_WEIGHT)
        if lost.any() or not np.isfinite(values).all():
            raise InputError(
                f"sizes of the weights must not differ by more than floats can hold; the {name} of "
                "this network are too small or too large beside the others."
            )
    linear = scaled.pop("linear")
    return ShallowNet(*scaled.values(), activation=net.activation, linear=linear, labels=net.labels)


def _power_of_two(values: FloatArray) -> float:
    """Return the power of two that brings the largest of these values to order 1."""
    largest = float(np.abs(values).max(initial=0.0))
    return float(2.0 ** -np.floor(np.log2(largest))) if largest > 0 else 1.0


def search_all(
    search: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int | None,
    progress: bool,
) -> list[Result]:
    """Run the searches, in other processes too where the first ones say that it pays."""
    answers: list[Result] = []
    with ProgressReporter("exact radii", len(items), enabled=progress) as reporter:
        start = time.perf_counter()
        if jobs is None:
            for item in items[:_POINTS_AT_ONCE]:
                answers.append(search(item))
                reporter.advance(1)
                if time.perf_counter() - start > _WORTH_SHARING:
                    break
            ahead = (time.perf_counter() - start) / max(len(answers), 1)
            ahead *= len(items) - len(answers)
            jobs = cpu_count() if ahead > _WORTH_SHARING else 1
        rest = items[len(answers) :]
        at_once = min(_POINTS_AT_ONCE, max(1, len(rest) // (4 * jobs)))
        batches = [rest[i : i + at_once] for i in range(0, len(rest), at_once)]
        parallel = Parallel(n_jobs=jobs, return_as="generator")
        for some in parallel(delayed(_run_some)(search, batch) for batch in batches):
            answers.extend(some)
            reporter.advance(len(some))
    return answers


def _run_some(search: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [search(item) for item in items]

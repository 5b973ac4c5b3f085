"""Training a head on a feature matrix: inner split, frontier, stop, and training on everything."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from featavg._checks import FloatArray, IntArray
from featavg.estimators.frontier import Frontier, checkpoint_steps, training_path
from featavg.estimators.heads import Head
from featavg.estimators.scaling import Scaling
from featavg.law import Sample
from featavg.rates import stable_learning_rate

# A group with fewer points than this keeps them all for training.
_SMALLEST_GROUP = 5
# With fewer points than this held out, accuracy says too little.
_FEWEST_HELD_OUT = 10
# Searches for the frontier are cut short: what is proved by then is a bound all the same.
_FRONTIER_NODES = 200
# Training ends when accuracy has not improved while steps grew by this factor.
_PATIENCE = 3.0
_FEWEST_STEPS = 50

NewHead = Callable[[Sample], Head]


@dataclass(frozen=True)
class Plan:
    """How to train: see the parameters of the estimators."""

    learning_rate: float | None = None
    max_iter: int = 1000
    robustness: float = 1.0
    radius_points: int = 100


@dataclass(frozen=True, eq=False)
class Split:
    """Which points to train on while looking for where to stop, and which to look at."""

    train: IntArray
    check: IntArray
    held_out: bool


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained head, and how it came about."""

    head: Head
    frontier: Frontier
    steps: int
    learning_rate: float


def inner_split(groups: IntArray, fraction: float, rng: np.random.Generator) -> Split:
    """Hold out a share of each group of points.

    Small groups keep all of theirs for training; if that leaves too little to look at, the
    training points themselves are looked at.
    """
    everything = np.arange(len(groups))
    held = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if len(members) >= _SMALLEST_GROUP:
            held.append(rng.permutation(members)[: round(fraction * len(members))])
    check = np.sort(np.concatenate(held)) if held else everything[:0]
    if len(check) < _FEWEST_HELD_OUT:
        return Split(everything, everything, held_out=False)
    return Split(np.setdiff1d(everything, check), check, held_out=True)


def fit_head(
    x: FloatArray,
    fine: IntArray,
    class_of: IntArray,
    new_head: NewHead,
    *,
    split: Split,
    scaling: Scaling,
    plan: Plan,
    rng: np.random.Generator,
) -> Fitted:
    """Train a head on scaled points: find where to stop, then train on all points up to there.

    Parameters
    ----------
    x : array of shape (points, coordinates)
        Scaled points.
    fine : array of shape (points,)
        What the network learns: subclasses, or classes, from 0 on. Each has a point in the
        training part of `split`.
    class_of : array of shape (subclasses,)
        The class of each.
    new_head : callable
        Draws a head for a sample.
    split, scaling, plan
        Which points to look at, how to convert radii, and how to train.
    rng : numpy.random.Generator
        Draws the points whose radii are computed.
    """
    part = sample_of(x[split.train], fine[split.train], class_of)
    start = new_head(part)
    rate = plan.learning_rate or stable_learning_rate(start.net, part)
    frontier = _walk(start, part, x, class_of[fine], split, scaling, rate, plan, rng)
    steps = int(frontier.steps[frontier.chosen])
    whole = sample_of(x, fine, class_of) if split.held_out else part
    ((_, net),) = training_path(start.net, whole, learning_rate=rate, steps=np.array([steps]))
    return Fitted(start.with_net(net), frontier, steps, rate)


def sample_of(x: FloatArray, fine: IntArray, class_of: IntArray) -> Sample:
    """Return points with fine labels as a sample; class 1 is positive (class 0 is not)."""
    x.flags.writeable = False  # handed over, not copied
    return Sample.of_points(x, fine, positive=[int(j) for j in np.flatnonzero(class_of == 1)])


def _walk(
    start: Head,
    part: Sample,
    x: FloatArray,
    classes: IntArray,
    split: Split,
    scaling: Scaling,
    rate: float,
    plan: Plan,
    rng: np.random.Generator,
) -> Frontier:
    """Train on a part of the points and measure on the others."""
    check, right = x[split.check].astype(np.float64), classes[split.check]
    some = np.sort(rng.permutation(len(check))[: plan.radius_points])
    steps: list[int] = []
    accuracy: list[float] = []
    radius: list[float] = []
    grid = checkpoint_steps(plan.max_iter)
    best = 0
    for step, net in training_path(start.net, part, learning_rate=rate, steps=grid):
        head = start.with_net(net)
        radii = head.radii(check[some], right[some], max_nodes=_FRONTIER_NODES)
        steps.append(step)
        accuracy.append(float((head.predict(check) == right).mean()))
        radius.append(float(np.median(scaling.radius(radii))))
        if accuracy[-1] > accuracy[best]:
            best = len(accuracy) - 1
        if step >= _FEWEST_STEPS and step >= _PATIENCE * steps[best]:
            break
    if best == len(grid) - 1 and len(grid) > 1:
        warnings.warn(
            f"Maximum iterations ({plan.max_iter}) reached and accuracy was still rising. "
            "Increase max_iter to improve the fit.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Frontier(
        np.array(steps),
        np.array(accuracy),
        np.array(radius),
        len(check),
        len(some),
        split.held_out,
        plan.robustness,
    )

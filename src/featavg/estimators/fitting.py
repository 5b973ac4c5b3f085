"""Fitting a head: inner split, frontier, early stopping, and training on all points."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.estimators.frontier import Frontier, checkpoint_steps, training_path
from featavg.estimators.heads import Head
from featavg.estimators.scaling import Scaling
from featavg.estimators.weights import PointWeights
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.loss import Loss
from featavg.networks.multiclass import MultiClassNet
from featavg.training.learning_rate import stable_learning_rate

# Groups with fewer points than this are not split.
_SMALLEST_GROUP = 5
# The maximum number of held-out points; more would cost time and change little.
_MOST_HELD_OUT = 2000
# With this many training points, training again with the held-out ones would change little.
_MANY_POINTS = 8000
# The minimum number of held-out points for a useful accuracy.
_FEWEST_HELD_OUT = 10
# The number of points whose radius is measured, if it takes a search and if it does not.
_SEARCHED_POINTS = 100
_RADIUS_POINTS = 1000
# Training stops when doubling the steps (two checkpoints) gains less than half a standard error of
# accuracy, but not before the minimum number of steps, which is smaller if the accuracy is 1.
_PATIENCE = 2
_GAIN = 0.5
_FEWEST_STEPS = 100
_FEWEST_STEPS_IF_PERFECT = 50


@dataclass(frozen=True)
class Plan:
    """The parameters of training, see those of the estimators."""

    width: int
    init_scale: float
    readout: str | None
    learning_rate: float | None
    max_iter: int
    robustness: float


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of the points for training and for validation before the final fit."""

    train: IntArray
    check: IntArray
    held_out: bool


def inner_split(groups: IntArray, fraction: float, rng: np.random.Generator) -> Split:
    """Hold out a share of each group of points, at most two thousand points in total.

    Small groups are not split; if too few points are held out, all points are used for both
    training and validation.
    """
    everything = np.arange(len(groups))
    fraction = min(fraction, _MOST_HELD_OUT / len(groups))
    held = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if len(members) >= _SMALLEST_GROUP:
            held.append(rng.permutation(members)[: round(fraction * len(members))])
    check = np.sort(np.concatenate(held)) if held else everything[:0]
    if len(check) < _FEWEST_HELD_OUT:
        return Split(everything, everything, held_out=False)
    return Split(np.setdiff1d(everything, check), check, held_out=True)


@dataclass(frozen=True, eq=False)
class Task:
    """The data of a fit.

    Attributes
    ----------
    x : array of shape (points, coordinates)
        Scaled points.
    fine : array of shape (points,)
        The labels the network is trained on: subclasses or classes, from 0.
    class_of : array of shape (subclasses,)
        The class of each subclass.
    weights : PointWeights
        The weight of each point.
    split : Split
        The points for training, which contain each subclass, and for validation.
    scaling : Scaling
        How they were scaled; radii are measured in the units of the input.
    rng : numpy.random.Generator
        Draws the initial weights.
    """

    x: FloatArray
    fine: IntArray
    class_of: IntArray
    weights: PointWeights
    split: Split
    scaling: Scaling
    rng: np.random.Generator


def fit_head(task: Task, plan: Plan, *, rng: np.random.Generator) -> tuple[Head, Frontier, float]:
    """Choose the number of steps on held-out points, then train on all points.

    With thousands of training points the second training is skipped. `rng` draws the points whose
    radii are measured during training. Returns the head, the frontier and the learning rate.
    """
    start = _start(task, plan)
    frontier, heads = _measure_path(task, start, plan, rng)
    if _is_rising(frontier):
        warnings.warn(
            f"Maximum iterations ({plan.max_iter}) reached and accuracy was still rising. "
            "Increase max_iter to improve the fit.",
            ConvergenceWarning,
            stacklevel=4,
        )
    head = heads[frontier.chosen]
    if task.split.held_out and len(start.sample) < _MANY_POINTS:
        whole = np.arange(len(task.x))
        steps = frontier.values[[frontier.chosen]].astype(np.int64)
        again = replace(start, sample=_sample_of(task, whole), loss=_loss(task, whole, start.head))
        ((_, head),) = again.path(steps)
    return head, frontier, start.rate


def measure_frontier(task: Task, plan: Plan, *, rng: np.random.Generator) -> Frontier:
    """Train on the training points and measure the frontier on the others."""
    return _measure_path(task, _start(task, plan), plan, rng)[0]


@dataclass(frozen=True, eq=False)
class _Start:
    """An initial head, and what it is trained on."""

    head: Head
    sample: Sample
    loss: Loss
    rate: float

    def path(self, steps: IntArray) -> Iterator[tuple[int, Head]]:
        """Train, and yield the head at each of the given steps; training is lazy."""
        options: Any = {"loss": self.loss, "learning_rate": self.rate, "steps": steps}
        for step, net in training_path(self.head.net, self.sample, **options):
            yield step, self.head.with_net(net)


def _start(task: Task, plan: Plan) -> _Start:
    sample = _sample_of(task, task.split.train)
    head = _new_head(sample, task.class_of, plan, task.rng)
    loss = _loss(task, task.split.train, head)
    rate = plan.learning_rate or stable_learning_rate(head.net, sample, loss)
    return _Start(head, sample, loss, rate)


def _new_head(sample: Sample, class_of: IntArray, plan: Plan, rng: np.random.Generator) -> Head:
    """Draw the initial head; the clusters of the sample are the labels it is trained on.

    Paper: Section 4.2. Differs from the paper: with biases, which are needed in low dimension.
    Without a readout the labels are the coarse ones: Section 3.2 for two classes; more classes get
    `width` neurons each (an extension).
    """
    width, scale = plan.width, plan.init_scale
    start: Any = {"width": width, "weight_scale": scale, "bias_scale": scale, "rng": rng}
    net: TwoLayerNet
    if plan.readout is None and len(class_of) == 2:
        net = BinaryNet.init(sample, **start)
        group_of = np.where(net.neuron_signs > 0, 1, 0)
    else:
        net = MultiClassNet.init(sample, **start, readout=plan.readout or "argmax")
        group_of = np.repeat(np.arange(net.classes), width)
    return Head(_activated(net, sample, group_of), class_of)


def _activated(net: TwoLayerNet, sample: Sample, group_of: IntArray) -> TwoLayerNet:
    """Negate the weights of groups whose neurons are all inactive at the mean of their own points.

    In low dimension this happens by chance. Such a group can stay inactive forever, and its class
    is then never predicted. The negated weights have the same distribution.
    """
    at_means = net.preactivations(sample.centers)
    is_on = (at_means > 0)[np.arange(len(group_of)), group_of]
    inactive = ~np.isin(group_of, group_of[is_on])
    sign = np.where(inactive, -1, 1).astype(net.weights.dtype)
    return net.with_parameters(sign[:, None] * net.weights, sign * net.biases)


def _sample_of(task: Task, points: IntArray) -> Sample:
    """Return some points with fine labels as a sample; class 1 is positive (class 0 is not)."""
    x, fine, weights = task.x[points], task.fine[points], task.weights.some(points)
    x.flags.writeable = False  # handed over, not copied
    centers = None
    if not weights.are_equal:
        of_group = (fine == np.arange(len(task.class_of))[:, None]) * weights.values
        centers = (of_group @ x / of_group.sum(axis=1, keepdims=True)).astype(x.dtype)
    positive = [int(j) for j in np.flatnonzero(task.class_of == 1)]
    return Sample.from_points(x, fine, positive=positive, centers=centers)


def _loss(task: Task, points: IntArray, head: Head) -> Loss:
    """Return the loss of the head's network, with the weights of these points."""
    return task.weights.some(points).loss(head.net.default_loss)


def _measure_path(
    task: Task, start: _Start, plan: Plan, rng: np.random.Generator
) -> tuple[Frontier, list[Head]]:
    """Train until the accuracy no longer improves, and measure along the way."""
    check = task.x[task.split.check].astype(np.float64)
    right = task.class_of[task.fine[task.split.check]]
    weights = task.weights.some(task.split.check)
    measured = _RADIUS_POINTS if start.head.has_closed_bound else _SEARCHED_POINTS
    some = np.sort(rng.permutation(len(check))[:measured])
    unscaled, of_some = task.scaling.undo(check[some]), weights.some(some)
    rows: list[tuple[int, float, float]] = []
    heads: list[Head] = []
    for step, head in start.path(checkpoint_steps(plan.max_iter)):
        heads.append(head)
        radii = head.after(task.scaling).lower_radii(unscaled, right[some])
        rows.append((step, weights.share(head.predict(check) == right), of_some.median(radii)))
        steps, accuracies, radius = (np.array(column) for column in zip(*rows, strict=True))
        frontier = Frontier(
            steps,
            accuracies,
            radius,
            points=len(check),
            effective_points=weights.effective_points,
            radius_points=len(some),
            held_out=task.split.held_out,
            robustness=plan.robustness,
        )
        if not _is_rising(frontier):
            break
    return frontier, heads


def _is_rising(frontier: Frontier) -> bool:
    """Return whether the accuracy is expected to rise further."""
    best = float(frontier.accuracy.max())
    fewest = _FEWEST_STEPS_IF_PERFECT if best == 1 else _FEWEST_STEPS
    if frontier.values[-1] < fewest or len(frontier.values) <= _PATIENCE:
        return True
    gain = best - float(frontier.accuracy[:-_PATIENCE].max())
    return gain > _GAIN * frontier.standard_error

"""Fitting a classifier of pieces: shapes and margins are compared on held-out points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from featavg.arrays import FloatArray, IntArray
from featavg.estimators.fitting import Split, inner_split
from featavg.estimators.frontier import Frontier
from featavg.estimators.piece_start import Groups, Shape, start_head, with_unit_distances
from featavg.estimators.piece_training import Examples, Schedule, margin_path
from featavg.estimators.pieces import PieceHead
from featavg.estimators.scaling import Scaling
from featavg.estimators.weights import PointWeights

# Margins that are tried, in units of the median radius of prototypes.
MARGINS = (2.0, 1.5, 1.1, 0.8, 0.55, 0.35, 0.22, 0.12)
# With at most this many points every point is held out once, in one of so many parts.
_FEW_POINTS, _PARTS = 2000, 4
# With this many training points, training again with the held-out ones would change little.
_MANY_POINTS = 8000
# Shapes are compared with a shorter schedule, on some of the parts. A smaller shape may have a
# radius that is _ERRORS standard errors smaller, and be so many standard errors less
# accurate.
_SHORTER, _COMPARED, _ERRORS, _LEAST_PATIENCE = 2, 2, 1.0, 0.5
# Shapes with a smaller share of the largest radius after the shorter schedule are not trained on.
_NEARLY = 0.9
# A path ends when so many margins have not raised the accuracy by this share of a standard error.
_PATIENCE, _RISE = 3, 0.25
# It ends, too, where no held-out point is wrong and the radius rises by no more than this share.
_LITTLE = 0.005


@dataclass(frozen=True, eq=False)
class PieceTask:
    """The data and settings of a fit.

    Attributes
    ----------
    x : array of shape (points, coordinates)
        Points, in the precision of training; distances are those of scaled points.
    classes : array of shape (points,)
        Their classes, from 0.
    weights : PointWeights
        How much each point counts.
    groups : Groups
        Classes, or subclasses as far as they are known.
    schedule : Schedule
        How long to train.
    starts : int
        How often k-means is started.
    robustness : float
        The parameter of the estimator.
    axes : array of shape (coordinates, features)
        Orthonormal directions, of which `x` are the coordinates of scaled points.
    scaling : Scaling
        How the points were scaled.
    """

    x: FloatArray
    classes: IntArray
    weights: PointWeights
    groups: Groups
    schedule: Schedule
    starts: int
    robustness: float
    axes: FloatArray
    scaling: Scaling

    def lower_radii(self, head: PieceHead, which: IntArray) -> FloatArray:
        """Return certified radii of some points, in the units of the input."""
        points = self.scaling.undo(self.x[which].astype(np.float64) @ self.axes)
        unscaled = head.after_projection(self.axes).after(self.scaling)
        return unscaled.lower_radii(points, self.classes[which])

    def path(
        self,
        which: IntArray,
        shape: Shape,
        margins: Sequence[float],
        rng: np.random.Generator,
    ) -> Iterator[PieceHead]:
        """Train on some of the points, and yield a classifier for each margin."""
        x, classes = self.x[which], self.classes[which]
        weights, groups = self.weights.some(which).values, self.groups.some(which)
        head, allowed = start_head(
            x, classes, groups, shape, weights=weights, starts=self.starts, rng=rng
        )
        examples = Examples(x, classes, weights.astype(x.dtype), allowed)
        path = margin_path(
            head, examples, margins, self.schedule, prototypes=shape.prototypes, rng=rng
        )
        for trained in path:
            yield with_unit_distances(trained)


def prototype_radius(task: PieceTask, pieces: int, rng: np.random.Generator) -> float:
    """Return the median radius of prototypes, of the points that they classify correctly."""
    head, _ = start_head(
        task.x,
        task.classes,
        task.groups,
        Shape(pieces, 0),
        weights=task.weights.values,
        starts=1,
        rng=rng,
    )
    radii = head.signed_radii(task.x.astype(np.float64), task.classes)
    right = np.flatnonzero(radii > 0)
    return task.weights.some(right).median(radii[right]) if len(right) else 1.0


def fit_pieces(
    task: PieceTask,
    shapes: Sequence[Shape],
    margins: Sequence[float],
    fraction: float,
    rng: np.random.Generator,
) -> tuple[PieceHead, Frontier]:
    """Choose shape and margin on held-out points, then train on all points.

    With thousands of training points the second training is skipped.
    """
    splits = held_out_parts(task.groups.strata(task.classes), fraction, rng)
    shapes = finalists(task, shapes, margins, splits, rng)
    paths = [measure_path(task, shape, margins, splits, rng) for shape in shapes]
    chosen = smallest_of_the_best(paths)
    shape, path = shapes[chosen], paths[chosen]
    at = path.frontier.chosen
    if len(splits) == 1 and (not splits[0].held_out or len(splits[0].train) >= _MANY_POINTS):
        head = path.heads[at]
    else:
        everything = np.arange(len(task.x))
        *_, head = task.path(everything, shape, margins[: at + 1], rng)
    return replace(head, sharpness=path.sharpness(at)), path.frontier


def finalists(
    task: PieceTask,
    shapes: Sequence[Shape],
    margins: Sequence[float],
    splits: Sequence[Split],
    rng: np.random.Generator,
) -> list[Shape]:
    """Return the shapes that short training would choose, and the most accurate one.

    Of equally accurate ones it is the most robust.

    Short training is for every second margin. Kinds are with and without features, and prototypes;
    they gain differently from a longer training, which therefore decides between those kinds whose
    choice is nearly as robust as that of all shapes.
    """
    if len(shapes) == 1:
        return list(shapes)
    short = replace(task, schedule=task.schedule.shorter(_SHORTER))
    parts = splits[:_COMPARED]
    paths = [measure_path(short, shape, margins[::2], parts, rng) for shape in shapes]
    medians = [median for median, _ in robust_places(paths)]
    accuracies = [path.frontier.best_accuracy for path in paths]
    chosen = {max(range(len(paths)), key=lambda i: (accuracies[i], medians[i]))}
    kinds = [(shape.features > 0, shape.prototypes) for shape in shapes]
    for kind in dict.fromkeys(kinds):
        same = [number for number, other in enumerate(kinds) if other == kind]
        best = same[smallest_of_the_best([paths[number] for number in same])]
        if medians[best] >= _NEARLY * max(medians):
            chosen.add(best)
    return [shapes[number] for number in sorted(chosen)]


def robust_places(paths: Sequence[MeasuredPath]) -> list[tuple[float, FloatArray]]:
    """Return the largest median radius of each path where it is accurate enough, and the radii."""
    patience = max(paths[0].frontier.robustness, _LEAST_PATIENCE)
    lowest = max(path.frontier.lowest_accuracy(patience) for path in paths)
    return [path.most_robust(lowest) for path in paths]


def smallest_of_the_best(paths: Sequence[MeasuredPath]) -> int:
    """Return the first path that may be as robust as the best one, where accurate enough.

    All paths are measured on the same points. One may be as robust as the best one if its median
    radius is smaller by at most a standard error of the mean difference of their radii, point by
    point. Where points are too few to hold any out, accuracy alone counts, since the largest shape
    is the most robust on its own training points.
    """
    candidates = robust_places(paths)
    best, best_radii = max(candidates, key=lambda candidate: candidate[0])
    for number, (median, radii) in enumerate(candidates):
        error = paths[0].weights.standard_error(best_radii - radii)
        tolerance = _ERRORS * error if paths[0].frontier.held_out else best
        if best - median <= tolerance:
            return number
    raise AssertionError("the best path is as robust as itself")


def held_out_parts(groups: IntArray, fraction: float, rng: np.random.Generator) -> list[Split]:
    """Return one split, or several of which each point is held out once if there are few points.

    The only point of a group is never held out: without it the group would be unknown.
    """
    first = inner_split(groups, fraction, rng)
    if not first.held_out or len(groups) > _FEW_POINTS:
        return [first]
    order = np.empty(len(groups), dtype=np.int64)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        order[members] = (rng.permutation(len(members)) + rng.integers(_PARTS)) % _PARTS
        if len(members) == 1:
            order[members] = _PARTS
    everything = np.arange(len(groups))
    return [
        Split(everything[order != part], everything[order == part], held_out=True)
        for part in range(_PARTS)
    ]


@dataclass(frozen=True, eq=False)
class MeasuredPath:
    """A path of one shape, as it was measured on held-out points."""

    frontier: Frontier
    heads: list[PieceHead]
    values: list[FloatArray]  # for each margin, of shape (points, classes)
    radii: list[FloatArray]  # for each margin, of shape (points,)
    classes: IntArray
    weights: PointWeights

    def most_robust(self, lowest: float) -> tuple[float, FloatArray]:
        """Return the largest median radius among places of at least this accuracy, and the radii.

        If no place is accurate enough the median is minus infinity.
        """
        medians = np.where(self.frontier.accuracy >= lowest, self.frontier.radius, -np.inf)
        at = int(medians.argmax())
        return float(medians[at]), self.radii[at]

    def sharpness(self, at: int) -> float:
        """Return the factor of the values under which their softmax fits the classes best."""
        values, row = self.values[at], np.arange(len(self.classes))
        share = self.weights.values / self.weights.values.sum()

        def loss(log_factor: float) -> float:
            likelihood = log_softmax(np.exp(log_factor) * values, axis=1)[row, self.classes]
            return -float(share @ likelihood)

        # bounded, because no factor is too large where all held-out points are right
        spread = float(share @ (values.max(axis=1) - values.mean(axis=1))) or 1.0
        bounds = (np.log(1e-2 / spread), np.log(1e2 / spread))
        return float(np.exp(minimize_scalar(loss, bounds=bounds, options={"xatol": 1e-10}).x))


def is_at_its_end(frontier: Frontier) -> bool:
    """Return whether smaller margins would hardly add to a path."""
    accuracy, radius = frontier.accuracy, frontier.radius
    gain = accuracy.max() - accuracy[:-_PATIENCE].max(initial=0)
    if len(accuracy) > 1 and accuracy[-1] == 1 and radius[-1] <= (1 + _LITTLE) * radius[-2]:
        return True
    return bool(gain <= _RISE * frontier.standard_error)


def measure_path(
    task: PieceTask,
    shape: Shape,
    margins: Sequence[float],
    splits: Sequence[Split],
    rng: np.random.Generator,
) -> MeasuredPath:
    """Train along the margins on all splits at once, and measure what was held out.

    It ends when the accuracy has not risen for some margins, or can rise no more: smaller margins
    have smaller radii.
    """
    checks = [split.check for split in splits]
    classes = np.concatenate([task.classes[check] for check in checks])
    weights = task.weights.some(np.concatenate(checks))
    inputs = [task.x[check].astype(np.float64) for check in checks]
    rows: list[tuple[float, float, FloatArray, FloatArray]] = []
    kept: list[PieceHead] = []
    paths = [task.path(split.train, shape, margins, rng) for split in splits]
    for heads in zip(*paths, strict=True):
        parts = zip(heads, inputs, checks, strict=True)
        measured = [(head.class_values(x), task.lower_radii(head, at)) for head, x, at in parts]
        values, radii = (np.concatenate(column) for column in zip(*measured, strict=True))
        accuracy = weights.share(values.argmax(axis=1) == classes)
        rows.append((accuracy, weights.median(radii), values, radii))
        kept.append(heads[0])
        frontier = Frontier(
            np.asarray(margins[: len(rows)]),
            np.array([row[0] for row in rows]),
            np.array([row[1] for row in rows]),
            points=len(classes),
            radius_points=len(classes),
            held_out=splits[0].held_out,
            robustness=task.robustness,
            knob="margin",
            effective_points=weights.effective_points,
        )
        if is_at_its_end(frontier):
            break
    return MeasuredPath(
        frontier, kept, [row[2] for row in rows], [row[3] for row in rows], classes, weights
    )

"""The frontier: accuracy and robustness along a path, and which of its points to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import Curves, Line, Panel, rounded
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss
from featavg.training.descent import cheaper_method, descend

_GROWTH = 1.5


@dataclass(frozen=True, eq=False)
class Frontier(Pictured):
    r"""Accuracy and median radius along a path of classifiers, on held-out points.

    Paper: none, an extension.

    Attributes
    ----------
    values : array of shape (places,)
        Where on the path: gradient steps, or margins.
    accuracy : array of shape (places,)
        The accuracy at these places.
    radius : array of shape (places,)
        The median certified radius, with 0 for misclassified points, in the units of the input (a
        lower bound, see `featavg.estimators.heads.CertifiedHead.lower_radii`).
    points, radius_points : int
        The numbers of points on which accuracy and radius are measured. Where points have weights,
        both are weighted.
    held_out : bool
        Whether these points were held out of training; if there are very few points, they are not.
    robustness : float
        The parameter of the estimators that determines `chosen`.
    knob : {"steps", "margin"}
        What `values` are.
    effective_points : float, optional
        The number of equally weighted points whose accuracy would be as certain; by default their
        number.

    Examples
    --------
    >>> frontier = Frontier(
    ...     values=np.array([10, 100, 1000]), accuracy=np.array([0.80, 0.90, 0.91]),
    ...     radius=np.array([5.0, 4.0, 2.0]), points=400, radius_points=100)
    >>> frontier
    Frontier(3 places, 400 held-out points, steps 100: accuracy 0.900, radius 4)
    >>> frontier.best(robustness=0), frontier.best(robustness=10)
    (2, 0)
    """

    values: IntArray | FloatArray
    accuracy: FloatArray
    radius: FloatArray
    points: int
    radius_points: int
    held_out: bool = True
    robustness: float = 1.0
    knob: str = "steps"
    effective_points: float | None = None

    @property
    def best_accuracy(self) -> float:
        """The best accuracy."""
        return float(self.accuracy.max())

    @property
    def standard_error(self) -> float:
        """The standard error of the best accuracy, with one correct and one wrong point added.

        Without these it would be 0 for an accuracy of 1.
        """
        points = self.points if self.effective_points is None else self.effective_points
        best = (self.best_accuracy * points + 1) / (points + 2)
        return float(np.sqrt(best * (1 - best) / points))

    def lowest_accuracy(self, robustness: float) -> float:
        """Return the accuracy that is `robustness` standard errors below the best."""
        return self.best_accuracy - robustness * self.standard_error - 1e-12

    @property
    def chosen(self) -> int:
        """The index of the chosen place."""
        return self.best(self.robustness)

    def best(self, robustness: float = 1.0) -> int:
        """Return the index of the largest radius among the places that are accurate enough.

        A place is accurate enough if its accuracy is within `robustness` standard errors of the
        best. Ties are broken by accuracy, then by the smaller value.
        """
        enough = np.flatnonzero(self.accuracy >= self.lowest_accuracy(robustness))
        order = np.lexsort((self.values[enough], -self.accuracy[enough], -self.radius[enough]))
        return int(enough[order[0]])

    def lines(self, label: str = "", role: str = "coarse") -> list[Line]:
        """Return accuracy over the radius along the path, and the chosen place, to be drawn."""
        i = self.chosen
        chosen = f"{f'{label}, ' if label else ''}chosen: {self.knob} {self.values[i]:.4g}"
        here = rounded(self.radius[i : i + 1]), rounded(self.accuracy[i : i + 1])
        return [
            Line(label or "path", rounded(self.radius), rounded(self.accuracy), role=role),
            Line(chosen, *here, role=role, dash="squares"),
        ]

    def view(self) -> Curves:
        """Return the path, the chosen place, and the lowest accuracy that may be chosen."""
        lowest = self.lowest_accuracy(self.robustness)
        label = f"lowest accuracy to choose: {lowest:.3f}"
        across = rounded([self.radius.min(), self.radius.max()])
        bound = Line(label, across, rounded([lowest, lowest]), role="quiet")
        return frontier_curves([*self.lines(), bound], self.points, self.held_out)

    def __repr__(self) -> str:
        i = self.chosen
        which = "held-out" if self.held_out else "training"
        return (
            f"Frontier({len(self.values)} places, {self.points} {which} points, {self.knob} "
            f"{self.values[i]:.4g}: accuracy {self.accuracy[i]:.3f}, radius {self.radius[i]:.4g})"
        )


def frontier_curves(lines: Sequence[Line], points: int, held_out: bool) -> Curves:
    """Return a view of accuracy over the radius, for one path or several."""
    which = "held-out" if held_out else "training"
    y = f"accuracy, {points} {which} points"
    title = "Accuracy and robustness"
    return Curves(title, "median certified radius", [Panel(title, y, lines)], paths=True)


def checkpoint_steps(max_iter: int) -> IntArray:
    """Return the steps at which training is measured, evenly spaced in log time.

    Examples
    --------
    >>> checkpoint_steps(20)
    array([ 1,  2,  3,  5,  8, 11, 17, 20])
    """
    count = int(np.ceil(np.log(max(max_iter, 2)) / np.log(_GROWTH))) + 1
    steps = np.round(_GROWTH ** np.arange(count)).astype(np.int64)
    return np.unique(np.minimum(steps, max_iter))


def training_path(
    net: TwoLayerNet, sample: Sample, *, loss: Loss, learning_rate: float, steps: IntArray
) -> Iterator[tuple[int, TwoLayerNet]]:
    """Train, and yield the network at each of the given steps; training is lazy."""
    method = cheaper_method(net, sample, float(steps[-1]))
    done = 0
    for goal in steps:
        more = int(goal) - done
        options: Any = {"learning_rate": learning_rate, "steps": more, "record": 2}
        run = descend(net, sample, loss=loss, method=method, **options)
        net, done = run.net, int(goal)
        yield done, net

"""What the paper published of its synthetic experiments, and a distance from all of it.

Every panel gives a penalty from 0 (agrees) to 1, and the distance is their mean:

- Figure 3 (left), two curves: the area between the curve and the published one, divided by the grid
  step of the published radii, at most 1. For distributions of radii this area is the Wasserstein
  distance, so a curve that is shifted by one grid step has the penalty 1.
- Figures 6 and 7: the share of the values at which the network averages where the paper says that
  it does not, or the other way round.
- Figure 2: the same for its two matrices, of which one is to average and one to decouple.

A network averages where its averaging index is at least 0.9, and decouples where it is at most 0.1.
"""

from __future__ import annotations

import numpy as np

from featavg.arrays import FloatArray
from featavg.experiments.ablations import AVERAGES_FROM
from featavg.paper import figure3_curve

STEP = 2.0
"""The distance between published radii."""

GRID = STEP * np.arange(31)
"""The published radii, and one more, for a grid that is shifted by a step."""

DECOUPLES_TO = 0.1
"""The averaging index up to which a network counts as decoupling, as in Figure 2."""

LEARNING_RATES = {0.01: False, 0.001: True, 0.0001: True}
"""Figure 6: whether the paper sees averaging at a learning rate."""

WEIGHT_SCALES = {0.001: False, 0.00001: True}
"""Figure 7: whether the paper sees averaging from initial weights of a scale."""


def published(classes: int) -> FloatArray:
    """Return a curve of Figure 3 (left) at the radii 0, 2, ..., 58."""
    return figure3_curve("synthetic", classes)[1]


def shifted(curve: FloatArray) -> FloatArray:
    """Return a curve at radii that are one step larger than those it is drawn at."""
    return curve[..., 1:]


def area(curve: FloatArray, classes: int) -> float:
    """Return the area between a curve over `GRID`, or a shifted one, and the published one.

    Examples
    --------
    >>> area(published(2), 2)
    0.0
    """
    told = published(classes)
    return float(STEP * np.abs(curve[: len(told)] - told).sum())


def excess(curve: FloatArray, classes: int) -> float:
    """Return by how much the accuracy of an exact curve exceeds the published one at most.

    An attack overstates robust accuracy. So the published curve of the same network is nowhere
    below the exact one, and an excess beyond the error of sampling rules the network out.
    """
    told = published(classes)
    return float((curve[: len(told)] - told).max())


def spread(curve: FloatArray) -> float:
    """Return how far apart the radii are at which a quarter and three quarters are broken.

    Examples
    --------
    >>> round(spread(published(2)), 1)
    1.9
    """
    falling = -curve[: len(GRID)]
    lower, upper = np.interp([-0.75, -0.25], falling, GRID[: len(falling)])
    return float(upper - lower)


def curve_penalty(curve: FloatArray, classes: int) -> float:
    """Return the penalty of a curve of Figure 3."""
    return min(1.0, area(curve, classes) / STEP)


def verdict_penalty(indices: dict[float, float], told: dict[float, bool]) -> float:
    """Return the share of values at which averaging is not as the paper tells it.

    Examples
    --------
    >>> verdict_penalty({0.001: 0.95, 0.00001: 0.99}, WEIGHT_SCALES)
    0.5
    """
    wrong = [(indices[value] >= AVERAGES_FROM) != averages for value, averages in told.items()]
    return float(np.mean(wrong))


def matrix_penalty(coarse_index: float, fine_index: float) -> float:
    """Return the share of the matrices of Figure 2 that look otherwise."""
    return float(np.mean([coarse_index < AVERAGES_FROM, fine_index > DECOUPLES_TO]))

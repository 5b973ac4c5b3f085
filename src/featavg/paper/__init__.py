"""Numbers read off the paper's figures, to be drawn beside ours."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

import numpy as np

from featavg.arrays import FloatArray
from featavg.errors import InputError


@cache
def figure3_curve(panel: str, classes: int) -> tuple[FloatArray, FloatArray]:
    """Return radii and robust accuracies (0 to 1) of a curve of Figure 3.

    Paper: Figure 3, read off its pixels; accuracies are good to about 0.005.

    Parameters
    ----------
    panel : {"synthetic", "mnist", "cifar10"}
        The panel: left, middle or right.
    classes : {2, 10}
        The labels the network was trained on.

    Examples
    --------
    >>> radii, accuracy = figure3_curve("synthetic", 2)
    >>> int(radii[8]), round(float(accuracy[8]), 3)
    (16, 0.315)
    """
    with (files(__package__) / "figure3.csv").open(encoding="utf-8") as file:
        rows = [
            (float(row["radius"]), float(row["robust_accuracy_percent"]) / 100)
            for row in csv.DictReader(file)
            if row["panel"] == panel and int(row["classes"]) == classes
        ]
    if not rows:
        raise InputError(
            "panel must be 'synthetic', 'mnist' or 'cifar10' and classes 2 or 10; "
            f"got {panel!r} and {classes!r}."
        )
    radii, accuracy = np.array(rows).T
    return radii, accuracy

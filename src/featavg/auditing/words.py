"""The result of an audit in plain words, part by part."""

from __future__ import annotations

import numpy as np

from featavg.auditing.heldout import Network

AVERAGES, DECOUPLED = 0.7, 0.3
"""The smallest averaging index of a network that averages, and the largest of one that does not."""

_SAME = 0.1  # insignificant difference of averaging indices
_LARGER = 1.05  # the factor from which on a radius is called larger


def averaging(coarse: Network, fine: Network, alone: float) -> str:
    """Return whether the coarse-label network averages, if the index can tell.

    `alone` is the index of neurons that are each equal to the mean of a subclass.
    """
    index, other = coarse.averaging_index, fine.averaging_index
    both = f"index {index:.2f}; one trained on subclasses: {other:.2f}"
    if np.isnan(index):
        return "Whether a network trained on the coarse labels averages cannot be told."
    if index <= DECOUPLED:
        return f"A network trained on the coarse labels does not average (index {index:.2f})."
    if alone >= AVERAGES:
        return (
            f"Whether a network trained on the coarse labels averages cannot be told ({both}): "
            f"the means of subclasses are so similar that even a neuron equal to one of them has "
            f"the index {alone:.2f}."
        )
    if abs(index - other) < _SAME:
        return (
            f"Whether a network trained on the coarse labels averages cannot be told: its index "
            f"is {index:.2f}, and that of one trained on subclasses does not differ ({other:.2f})."
        )
    how = "averages their features" if index >= AVERAGES else "averages in part"
    return f"A network trained on the coarse labels {how} ({both})."


def robustness(coarse: float, fine: float, gain: tuple[float, float, float]) -> str:
    """Return how two median radii compare, given their difference and its interval."""
    difference, low, high = gain
    interval = f"difference {difference:.3g}, 95 % interval {low:.3g} to {high:.3g}"
    if low > 0:
        times = f"{fine / coarse:.2f} times as robust" if coarse > 0 else "more robust"
        return (
            f"Training on subclasses makes it {times}: the median certified radius grows from "
            f"{_digits(coarse)} to {_digits(fine)} ({interval})."
        )
    if high < 0:
        return (
            f"Training on subclasses makes it less robust: the median certified radius falls from "
            f"{_digits(coarse)} to {_digits(fine)} ({interval})."
        )
    return (
        f"No difference in robustness can be told from these points: median certified radius "
        f"{_digits(coarse)} and {_digits(fine)} ({interval})."
    )


def _digits(radius: float) -> str:
    """Return a radius with three digits, also where the last ones are zeros."""
    return f"{radius:#.3g}".removesuffix(".") if radius else "0"


def trained_on_radius(net: Network, best: float) -> str:
    """Return what RadiusClassifier has, where the largest median radius of the others is `best`."""
    radius, accuracy = f"{net.median_radius:.3g}", f"{net.accuracy:.1%}"
    if net.median_radius > _LARGER * best:
        return (
            f"RadiusClassifier, which needs the coarse labels only, has the largest median "
            f"certified radius, {radius}, and an accuracy of {accuracy}."
        )
    return (
        f"RadiusClassifier, which needs the coarse labels only, has a median certified radius of "
        f"{radius} and an accuracy of {accuracy}."
    )

"""What an audit found, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featavg.auditing.geometry import CORRELATED, OVERLAPPING, UNBALANCED

if TYPE_CHECKING:
    from featavg.auditing.audit import Audit

AVERAGES, DECOUPLED = 0.7, 0.3
"""From this averaging index on a network is said to average; up to this one, not to."""

_NEARLY = 0.85  # of the predicted ratio: as good as reached
_LESS_ACCURATE = 0.01  # in clean accuracy, worth a warning


def reasons(audit: Audit) -> list[str]:
    """Return why the predicted gain √(k/2) is not to be had, most telling first."""
    found = []
    geometry = audit.geometry
    if len(audit.names) == len(audit.classes):
        return ["no class has more than one subclass, so there is nothing to average"]
    if not audit.ratio < _NEARLY * audit.predicted_ratio:
        return []
    if geometry.correlation >= CORRELATED:
        found.append(
            f"the means of subclasses are correlated (mean |cosine| {geometry.correlation:.2f} "
            f"within a class, beyond what centring does; the theory has 0)"
        )
    if np.isfinite(audit.subclass_accuracy) and audit.subclass_accuracy < OVERLAPPING:
        found.append(
            f"subclasses overlap (held-out points are put into their own one in "
            f"{audit.subclass_accuracy:.0%} of the cases)"
        )
    if geometry.imbalance >= UNBALANCED:
        found.append(
            f"subclasses are unbalanced (the largest of a class has {geometry.imbalance:.1f} times "
            "the points of the smallest)"
        )
    if audit.coarse.averaging_index < AVERAGES:
        found.append(
            f"the coarse-label network averages less than the theory's (index "
            f"{audit.coarse.averaging_index:.2f}), so less is to be gained"
        )
    return found or ["classes are not as far apart as orthogonal means would be"]


def verdict(audit: Audit) -> str:
    """Return the result in a few sentences."""
    counts = " + ".join(str(count) for count in audit.subclasses.values())
    how = "given" if audit.given else "found"
    parts = [f"{counts} subclasses {how} in {len(audit.classes)} classes."]
    if audit.clear and audit.clear != audit.subclasses:
        clear = " + ".join(str(count) for count in audit.clear.values())
        parts.append(
            f"The points speak clearly for {clear}; a network trained on more is more robust."
        )
    index = audit.coarse.averaging_index
    if np.isnan(index):
        parts.append("With one subclass in each class there are no features to average.")
    elif index >= AVERAGES:
        parts.append(
            f"A network trained on the coarse labels averages their features "
            f"(index {index:.2f}; one trained on subclasses: {audit.fine.averaging_index:.2f})."
        )
    else:
        how = "averages in part" if index > DECOUPLED else "does not average"
        parts.append(f"A network trained on the coarse labels {how} (index {index:.2f}).")
    parts.append(_robustness(audit))
    lost = audit.coarse.accuracy - audit.fine.accuracy
    if lost > _LESS_ACCURATE:
        parts.append(f"It costs {100 * lost:.1f} points of clean accuracy.")
    why = audit.reasons
    if why and len(audit.names) > len(audit.classes):
        parts.append(
            f"The theory's factor of {audit.predicted_ratio:.2f} is not reached: {'; '.join(why)}."
        )
    return " ".join(parts)


def _robustness(audit: Audit) -> str:
    gain, low, high = audit.gain
    coarse, fine = audit.coarse.median_radius, audit.fine.median_radius
    interval = f"difference {gain:.3g}, 95 % interval {low:.3g} to {high:.3g}"
    if low > 0:
        return (
            f"Training on subclasses makes it {audit.ratio:.2f} times as robust: the median "
            f"certified radius grows from {coarse:.3g} to {fine:.3g} ({interval})."
        )
    if high < 0:
        return (
            f"Training on subclasses makes it less robust: the median certified radius falls from "
            f"{coarse:.3g} to {fine:.3g} ({interval})."
        )
    return (
        f"No difference in robustness can be told from these points: median certified radius "
        f"{coarse:.3g} and {fine:.3g} ({interval})."
    )

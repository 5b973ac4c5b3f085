"""What an audit found, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featavg.auditing.geometry import NOT_ORTHOGONAL, OVERLAPPING, UNBALANCED

if TYPE_CHECKING:
    from featavg.auditing.audit import Audit

AVERAGES, DECOUPLED = 0.7, 0.3
"""From this averaging index on a network is said to average; up to this one, not to."""

_NEARLY = 0.85  # share of the predicted ratio that counts as reached
_LESS_ACCURATE = 0.01  # in clean accuracy, worth a warning
_SAME = 0.1  # difference of averaging indices below which they count as equal
_FEW_FEATURES_HAVE = 0.9  # share of the variance that is worth a hint


def reasons(audit: Audit) -> list[str]:
    """Return why the predicted gain √(k/2) is not reached, the strongest reason first.

    Empty if no gain is predicted, or if it is reached.
    """
    found = []
    geometry = audit.geometry
    if audit.predicted_ratio is None or not audit.ratio < _NEARLY * audit.predicted_ratio:
        return []
    if geometry.cosine_deviation >= NOT_ORTHOGONAL:
        found.append(
            f"the means of subclasses are not orthogonal (cosines within a class are "
            f"{geometry.cosine_deviation:.2f} away, on average, from the "
            f"{geometry.orthogonal_cosine:.2f} of orthogonal means that are centred)"
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
    if not audit.divided:
        whole = "The subclasses are the classes" if audit.given else "No class has more than one"
        parts.append(f"{whole}: there are no features to average, and nothing to compare.")
        return " ".join(parts)
    if audit.clear and audit.clear != audit.subclasses:
        clear = " + ".join(str(count) for count in audit.clear.values())
        how = "and is" if audit.gain[1] > 0 else "but is not"
        parts.append(
            f"Only {clear} can be found again in both halves of the points; training on more "
            f"looked more robust, {how} more robust than coarse labels on held-out points."
        )
    parts += [_averaging(audit), _robustness(audit)]
    lost = audit.coarse.accuracy - audit.fine.accuracy
    if lost > _LESS_ACCURATE:
        parts.append(f"It costs {100 * lost:.1f} points of clean accuracy.")
    why = audit.reasons
    if why:
        parts.append(
            f"The theory's factor of {audit.predicted_ratio:.2f} is not reached: {'; '.join(why)}."
        )
    return " ".join(parts)


def hints(audit: Audit) -> list[str]:
    """Return properties of the features that may change the result."""
    few, share = audit.leading
    features = audit.geometry.means.shape[1]
    if features == 1 or share < _FEW_FEATURES_HAVE:
        return []
    have = "has" if few == 1 else "have"
    return [
        f"{few} of {features} features {have} {100 * share:.3g} % of the variance: features have "
        "very different scales, and scaling them may change the answer."
    ]


def _averaging(audit: Audit) -> str:
    """Return whether the coarse-label network averages, if the index shows it."""
    index, fine = audit.coarse.averaging_index, audit.fine.averaging_index
    alone = audit.geometry.decoupled_index
    both = f"index {index:.2f}; one trained on subclasses: {fine:.2f}"
    if np.isnan(index):
        return "Whether a network trained on the coarse labels averages cannot be told."
    if index <= DECOUPLED:
        return f"A network trained on the coarse labels does not average (index {index:.2f})."
    if alone >= AVERAGES:
        return (
            f"Whether a network trained on the coarse labels averages cannot be told ({both}): "
            f"means of subclasses point so much the same way that even a neuron with one of them "
            f"alone has the index {alone:.2f}."
        )
    if abs(index - fine) < _SAME:
        return (
            f"Whether a network trained on the coarse labels averages cannot be told: its index "
            f"is {index:.2f}, and that of one trained on subclasses does not differ ({fine:.2f})."
        )
    how = "averages their features" if index >= AVERAGES else "averages in part"
    return f"A network trained on the coarse labels {how} ({both})."


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

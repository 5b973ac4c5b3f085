"""The result of an audit, as numbers and in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.auditing.geometry import NOT_ORTHOGONAL, OVERLAPPING, UNBALANCED, Geometry
from featavg.auditing.heldout import Network
from featavg.drawing.common import named_cosines, radius_grid, robust_accuracy, shares_above
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import Curves, HeatMaps
from featavg.estimators.scaling import different_scales

AVERAGES, DECOUPLED = 0.7, 0.3
"""The smallest averaging index of a network that averages, and the largest of one that does not."""

_NEARLY = 0.85  # of the predicted ratio: counts as reached
_LESS_ACCURATE = 0.01  # in clean accuracy, worth a warning
_SAME = 0.1  # insignificant difference of averaging indices


@dataclass(frozen=True, eq=False)
class Audit(Pictured):
    """The result of an audit; `summary` gives it as plain data, `verdict` in words.

    Attributes
    ----------
    classes : tuple
        The class labels.
    subclasses : dict
        The number of subclasses of each class, given or found.
    clear : dict
        The number of subclasses of each class that are stable under halving the points, see
        `featavg.estimators.subclasses.cluster`; more than these are used if a network trained on
        more is more robust. Empty if subclasses were given.
    names : tuple
        The name of each subclass.
    given : bool
        Whether subclasses were given.
    trained, held_out, measured : int
        The numbers of training points, of held-out points, and of those with a measured radius.
    norm : float
        The root mean square distance of the training points from their mean, as a scale for radii.
    leading : tuple of two int and a float
        A tenth of the number of features that vary, this number, and the largest share of the
        variance of the training points that this tenth has.
    geometry : Geometry
        The positions of the subclasses.
    coarse, fine : Network
        The network trained on the coarse labels, and the one trained on subclasses.
    gain : tuple of float
        The difference of the median radii, and the ends of its 95 % bootstrap interval.
    subclass_accuracy : float
        The accuracy of the fine network in predicting subclasses; NaN if they are unknown.
    """

    classes: tuple[Any, ...]
    subclasses: dict[Any, int]
    clear: dict[Any, int]
    names: tuple[Any, ...]
    given: bool
    trained: int
    held_out: int
    measured: int
    norm: float
    leading: tuple[int, int, float]
    geometry: Geometry
    coarse: Network
    fine: Network
    gain: tuple[float, float, float]
    subclass_accuracy: float

    @property
    def predicted_ratio(self) -> float | None:
        """The paper's gain, √(k/2) for k orthogonal balanced subclasses of two classes.

        None for more than two classes, which the paper does not treat, and without subclasses.
        """
        if len(self.classes) != 2 or not self.divided:
            return None
        return float(np.sqrt(len(self.names) / 2))

    @property
    def divided(self) -> bool:
        """Whether any class has more than one subclass; otherwise there is nothing to compare."""
        return len(self.names) > len(self.classes)

    @property
    def ratio(self) -> float:
        """The median radius of the fine network over that of the coarse one."""
        coarse = self.coarse.median_radius
        return self.fine.median_radius / coarse if coarse > 0 else float("nan")

    @property
    def reasons(self) -> list[str]:
        """Likely reasons why the predicted gain √(k/2) is not reached, most important first.

        Empty if no gain is predicted, or if it is reached.
        """
        found, geometry = [], self.geometry
        if self.predicted_ratio is None or not self.ratio < _NEARLY * self.predicted_ratio:
            return []
        if geometry.cosine_deviation >= NOT_ORTHOGONAL:
            found.append(
                f"the means of subclasses are not orthogonal (cosines within a class are "
                f"{geometry.cosine_deviation:.2f} away, on average, from the "
                f"{geometry.orthogonal_cosine:.2f} of centred orthogonal means)"
            )
        if np.isfinite(self.subclass_accuracy) and self.subclass_accuracy < OVERLAPPING:
            found.append(
                f"subclasses overlap (the subclass of a held-out point is predicted correctly in "
                f"{self.subclass_accuracy:.0%} of the cases)"
            )
        if geometry.imbalance >= UNBALANCED:
            found.append(
                f"subclasses are unbalanced (the largest of a class has {geometry.imbalance:.1f} "
                "times the points of the smallest)"
            )
        if self.coarse.averaging_index < AVERAGES:
            found.append(
                f"the coarse-label network averages less than in the theory (index "
                f"{self.coarse.averaging_index:.2f}), so the gain is smaller"
            )
        return found or ["classes are not as far apart as orthogonal means would be"]

    @property
    def hints(self) -> list[str]:
        """Properties of the features and of the measurement that may affect the result."""
        hints = []
        if differ := different_scales(*self.leading):
            hints.append(f"{differ}, and scaling them may change the answer.")
        for name, net in (("coarse-label", self.coarse), ("subclass", self.fine)):
            if bounds := int((~net.exact).sum()):
                hints.append(
                    f"{bounds} of {self.measured} radii of the {name} network are lower bounds: "
                    "the search for the exact ones was too long."
                )
        return hints

    @property
    def verdict(self) -> str:
        """The result in plain words."""
        how = "given" if self.given else "found"
        parts = [f"{_sum(self.subclasses)} subclasses {how} in {len(self.classes)} classes."]
        if not self.divided:
            whole = "The subclasses are the classes" if self.given else "No class has more than one"
            parts.append(f"{whole}: there are no features to average, and nothing to compare.")
            return " ".join(parts)
        if self.clear and self.clear != self.subclasses:
            how = "and is" if self.gain[1] > 0 else "but is not"
            parts.append(
                f"Only {_sum(self.clear)} are stable under halving the points; training on more "
                f"seemed more robust, {how} more robust than coarse labels on held-out points."
            )
        parts += [_averaging(self), _robustness(self)]
        lost = self.coarse.accuracy - self.fine.accuracy
        if lost > _LESS_ACCURATE:
            parts.append(f"It costs {100 * lost:.1f} points of clean accuracy.")
        if why := "; ".join(self.reasons):
            predicted = f"The theory's factor of {self.predicted_ratio:.2f}"
            parts.append(f"{predicted} is not reached: {why}.")
        return " ".join(parts)

    def summary(self) -> dict[str, Any]:
        """Return everything except the points as plain data, for JSON."""
        networks = {
            name: {
                "accuracy": net.accuracy,
                "averaging_index": net.averaging_index,
                "median_radius": net.median_radius,
                "radii": net.radii.tolist(),
                "exact_radii": int(net.exact.sum()),
                "universal_radius": net.universal.radius,
                "universal_broken": net.universal.broken,
            }
            for name, net in (("coarse", self.coarse), ("fine", self.fine))
        }
        geometry, geometric = self.geometry, ("cosine_deviation", "decoupled_index", "imbalance")
        return {
            "classes": [str(name) for name in self.classes],
            "subclasses": {str(name): count for name, count in self.subclasses.items()},
            "subclasses_given": self.given,
            "subclasses_clear": {str(name): count for name, count in self.clear.items()},
            **{name: getattr(self, name) for name in ("trained", "held_out", "measured", "norm")},
            "sizes": geometry.sizes.tolist(),
            "cosines": geometry.cosines.tolist(),
            **{name: getattr(geometry, name) for name in geometric},
            "subclass_accuracy": self.subclass_accuracy,
            **networks,
            "gain": self.gain[0],
            "gain_interval": list(self.gain[1:]),
            **{name: getattr(self, name) for name in ("ratio", "predicted_ratio")},
            **{name: getattr(self, name) for name in ("reasons", "verdict", "hints")},
        }

    def view(self) -> Curves:
        """Return the certified accuracy of both networks over the radius."""
        nets = {"coarse": (self.coarse, "coarse labels"), "fine": (self.fine, "subclasses")}
        radii = radius_grid(*(net.radii for net, _ in nets.values()))
        lines = []
        for role, (net, labels) in nets.items():
            label = f"trained on {labels}: median {net.median_radius:.3g}"
            lines += shares_above(label, net.radii, net.radii, role, radii=radii)
        title = "Certified accuracy of held-out points"
        norm = "in the units of the features"
        return robust_accuracy(lines, title=title, norm=norm, y="certified accuracy")

    def cosines(self) -> HeatMaps:
        """Return the cosines between the means of subclasses: Figure 10 for your data."""
        pairs = zip(self.names, self.geometry.class_of, strict=True)
        names = [f"{self.classes[c]}: {name}" for name, c in pairs]
        title = "Cosines between the means of subclasses"
        return named_cosines(title, self.geometry.cosines, names)

    def __repr__(self) -> str:
        medians = f"{self.coarse.median_radius:.3g} -> {self.fine.median_radius:.3g}"
        return f"Audit({_sum(self.subclasses)} subclasses, median radius {medians})"


def _sum(counts: dict[Any, int]) -> str:
    return " + ".join(str(count) for count in counts.values())


def _averaging(audit: Audit) -> str:
    """Return whether the coarse-label network averages, if the index can tell."""
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
            f"the means of subclasses are so similar that even a neuron equal to one of them has "
            f"the index {alone:.2f}."
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

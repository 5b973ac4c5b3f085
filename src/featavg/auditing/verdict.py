"""The result of an audit, as numbers and in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.auditing import words
from featavg.auditing.geometry import NOT_ORTHOGONAL, OVERLAPPING, UNBALANCED, Geometry
from featavg.auditing.heldout import Network
from featavg.auditing.points import Points
from featavg.drawing.common import named_cosines, radius_grid, robust_accuracy, shares_above
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import Curves, HeatMaps
from featavg.errors import shortened
from featavg.estimators.scaling import different_scales

_NEARLY = 0.85  # of the predicted ratio: counts as reached
_LESS_ACCURATE = 0.01  # in clean accuracy, worth a warning
_ROLES = ("coarse", "fine", "third")
# The estimator of each network, and what it is trained on.
_TRAINED = {
    "averaging": ("AveragingClassifier", "coarse labels"),
    "decoupled": ("DecoupledClassifier", "subclasses"),
    "direct": ("RadiusClassifier", "coarse labels, for its own radius"),
}


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
    largest : tuple of a label and a float
        The largest class of the training points, and the accuracy of always saying this class on
        the held-out points.
    norm : float
        The root mean square distance of the training points from their mean, as a scale for radii.
    leading : tuple of two int and a float
        A tenth of the number of features that vary, this number, and the largest share of the
        variance of the training points that this tenth has.
    geometry : Geometry
        The positions of the subclasses.
    coarse, fine : Network
        The network trained on the coarse labels, and the one trained on subclasses.
    direct : Network or None
        A `RadiusClassifier`, which is trained on its own radius with coarse labels alone.
    gain : tuple of float
        The difference of the median radii, and the ends of its 95 % bootstrap interval.
    subclass_accuracy : float
        The accuracy of the fine network in predicting subclasses; NaN if they are unknown.
    points : Points
        The held-out points whose radii were measured, in the order of the radii.
    suggested : Points
        Training points whose finer labels would be worth most, the most important one first; none
        if subclasses were given, or if none were found.
    standardized : bool
        Whether features were divided by their standard deviations; radii are then in these.
    random_state : int
        The seed.
    """

    classes: tuple[Any, ...]
    subclasses: dict[Any, int]
    clear: dict[Any, int]
    names: tuple[Any, ...]
    given: bool
    trained: int
    held_out: int
    measured: int
    largest: tuple[Any, float]
    norm: float
    leading: tuple[int, int, float]
    geometry: Geometry
    coarse: Network
    fine: Network
    direct: Network | None
    gain: tuple[float, float, float]
    subclass_accuracy: float
    points: Points
    suggested: Points
    standardized: bool
    random_state: int

    @property
    def networks(self) -> list[tuple[str, str, str, Network]]:
        """The networks: a short name of each, its estimator, what it was trained on, and itself."""
        direct = () if self.direct is None else (("direct", self.direct),)
        shown = (("averaging", self.coarse), ("decoupled", self.fine), *direct)
        return [(name, *_TRAINED[name], net) for name, net in shown]

    @property
    def units(self) -> str:
        """The units of radii, in words."""
        return "in standard deviations" if self.standardized else "in the units of the features"

    def weakest(self, ids: Sequence[Any] | None = None) -> tuple[list[str], list[list[Any]]]:
        """Return a row for each measured point, the weakest first, below a row of names.

        It has the id of the point (its index without ids), its class and subclass, and for each
        classifier the radius and whether that is "exact" or a "lower bound". Weak is a point with a
        small radius for the last classifier; where that is equal, for the one before.
        """
        names = ["id", "class", "subclass"]
        for name, *_ in self.networks:
            names += [f"radius_{name}", f"kind_{name}"]
        nets = [net for *_, net in self.networks]
        order = np.lexsort([net.radii for net in nets])
        points = self.points.rows(ids)
        return names, [
            [*points[i], *(value for net in nets for value in (float(net.radii[i]), net.kind(i)))]
            for i in order
        ]

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
        if self.coarse.averaging_index < words.AVERAGES:
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
            hints.append(
                f"{differ}; if their units mean nothing, standardize them (--standardize, or "
                "standardize=True in Python)."
            )
        for _, estimator, _, net in self.networks:
            if bounds := int((~net.exact).sum()):
                hints.append(
                    f"{bounds} of {self.measured} radii of {estimator} are lower bounds: the "
                    "search for the exact ones was too long."
                )
        name, share = self.largest
        if all(net.accuracy <= share for *_, net in self.networks):
            hints.append(
                f"No classifier is more accurate on held-out points than always saying "
                f"{shortened(str(name))}, the largest class, which is right for {share:.1%} of "
                "them; then radii mean little."
            )
        return hints

    @property
    def findings(self) -> list[str]:
        """The result in plain words, a sentence or two for each part of it."""
        how = "given" if self.given else "found"
        medians = self.coarse.median_radius, self.fine.median_radius
        last = [words.trained_on_radius(self.direct, max(medians))] if self.direct else []
        parts = [f"{_sum(self.subclasses)} subclasses {how} in {len(self.classes)} classes."]
        if not self.divided:
            whole = "The subclasses are the classes" if self.given else "No class has more than one"
            parts.append(f"{whole}: there are no features to average, and nothing to compare.")
            return [*parts, *last]
        if self.clear and self.clear != self.subclasses:
            how = "and is" if self.gain[1] > 0 else "but is not"
            parts.append(
                f"Only {_sum(self.clear)} are stable under halving the points; training on more "
                f"seemed more robust, {how} more robust than coarse labels on held-out points."
            )
        parts += [
            words.averaging(self.coarse, self.fine, self.geometry.decoupled_index),
            words.robustness(*medians, self.gain),
        ]
        lost = self.coarse.accuracy - self.fine.accuracy
        if lost > _LESS_ACCURATE:
            parts.append(f"Training on subclasses costs {100 * lost:.1f} points of accuracy.")
        return [*parts, *last]

    @property
    def verdict(self) -> str:
        """The result in plain words, with the reasons why a predicted gain is not reached."""
        parts = self.findings
        if why := "; ".join(self.reasons):
            predicted = f"The theory's factor of {self.predicted_ratio:.2f}"
            parts.append(f"{predicted} is not reached: {why}.")
        return " ".join(parts)

    def summary(self) -> dict[str, Any]:
        """Return everything except the points as plain data, for JSON."""
        nets = {"coarse": self.coarse, "fine": self.fine, "direct": self.direct}
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
            for name, net in nets.items()
            if net is not None
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
            "suggested": [[_plain(value) for value in row] for row in self.suggested.rows()],
            **{name: getattr(self, name) for name in ("standardized", "random_state")},
            **{name: getattr(self, name) for name in ("reasons", "verdict", "hints")},
        }

    def view(self) -> Curves:
        """Return the certified accuracy of all networks over the radius."""
        nets = [net for *_, net in self.networks]
        radii = radius_grid(*(net.radii for net in nets))
        lines = []
        for role, (_, estimator, _, net) in zip(_ROLES, self.networks, strict=False):
            label = f"{estimator}: median {net.median_radius:.3g}"
            lines += shares_above(label, net.radii, net.radii, role, radii=radii)
        title = "Certified accuracy of held-out points"
        return robust_accuracy(lines, title=title, norm=self.units, y="certified accuracy")

    def cosines(self) -> HeatMaps:
        """Return the cosines between the means of subclasses: Figure 10 for your data."""
        pairs = zip(self.names, self.geometry.class_of, strict=True)
        names = [f"{self.classes[c]}: {name}" for name, c in pairs]
        title = "Cosines between the means of subclasses"
        return named_cosines(title, self.geometry.cosines, names)

    def __repr__(self) -> str:
        medians = f"{self.coarse.median_radius:.3g} -> {self.fine.median_radius:.3g}"
        return f"Audit({_sum(self.subclasses)} subclasses, median radius {medians})"


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    return value if isinstance(value, bool | int | float | str) else str(value)


def _sum(counts: dict[Any, int]) -> str:
    return " + ".join(str(count) for count in counts.values())

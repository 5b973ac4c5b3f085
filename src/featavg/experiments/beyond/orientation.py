"""Rules that depend on the frame of the centres: Adam and sign descent in three frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import binom, erf, ndtr

from featavg.data.orientation import ORIENTATIONS
from featavg.drawing.views import DotPanel, Dots, DotSeries, View
from featavg.experiments.beyond.learner_setting import (
    COLUMNS,
    QUANTITIES,
    STOPS,
    LearnerSetting,
    Training,
)
from featavg.experiments.beyond.learner_zoo import ADAM, GRADIENT_DESCENT, SIGN_DESCENT
from featavg.lab.expectations import Expectation, at_most, within
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import parameter
from featavg.lab.tables import Measurements, Results, Table, prefixed

_LEARNERS = {"gd": GRADIENT_DESCENT, "adam": ADAM, "sign": SIGN_DESCENT}
_FRAMES = {"random": "a random frame", "axes": "along the axes", "signs": "coordinates ±1"}


@dataclass(frozen=True, kw_only=True)
class Parameters(LearnerSetting):
    """The setting; the dimension must be one in which centres of coordinates ±1 exist."""

    most_steps: int = parameter(1000, "steps after which the target counts as not reached")
    radius_samples: int = parameter(100, "fresh points for radii")

    def __post_init__(self) -> None:
        super().__post_init__()
        for orientation in ORIENTATIONS:
            self.law(orientation)  # refuses what cannot be drawn

    def sign_cosine(self, orientation: str) -> float:
        r"""Return :math:`\kappa`, the cosine of sign descent's weights and the sum of own centres.

        Once a neuron is silent on the other side, its gradient is, up to a factor,
        :math:`g = \frac1k \sum_{j \in J} \mu_j + \frac\sigma n \sum_{i \in I} \xi_i` over the
        q = k/2 centres and n/2 points of its side, with noise of variance :math:`\sigma^2/2n` in
        each coordinate, and its weight is a multiple of sgn(g).

        - In a random frame the coordinates of :math:`\sum \mu_j` are nearly Gaussian, and
          :math:`\kappa = \sqrt{2/\pi}\,/\sqrt{1 + \sigma^2 k/n}`.
        - Of centres with coordinates ±1 they are sums S of q fair signs, and
          :math:`\kappa = E[S\,\mathrm{sgn}(S/k + \text{noise})]/\sqrt q`.
        - Along the axes q coordinates have signal and all others only noise, which signs make as
          large as the signal: :math:`\kappa = \sqrt{q/d}`; 1 without noise.

        """
        k, q = self.clusters, self.clusters // 2
        if orientation == "axes":
            return float(np.sqrt(q / self.dim)) if self.noise else 1.0
        if orientation == "random":
            return float(np.sqrt(2 / np.pi / (1 + self.noise**2 * k / self.samples)))
        heads = np.arange(q + 1)
        S, chances = 2.0 * heads - q, binom(q, heads) / 2.0**q
        spread = self.noise / np.sqrt(2 * self.samples)
        signs = erf(S / (k * spread * np.sqrt(2))) if self.noise else np.sign(S)
        moved = 1.0 if self.noise else chances[S != 0].sum()  # without noise the sign of 0 is 0
        return float((chances * S * signs).sum() / np.sqrt(q * moved))

    def sign_radius(self, orientation: str) -> float:
        r"""Return the median radius of sign descent that follows from `sign_cosine`.

        Were the weights of both sides orthogonal to each other and to the centres of the other
        side, a point would be :math:`\kappa\sqrt{d/k}` from the plane on which the sides are equal.
        But a weight w has products of size :math:`\|w\|` with the noise of points of the other
        side, so it stays active at a share :math:`\varphi` of them, and these pull it away from
        the other centres until their products are :math:`-\nu\|w\|` with
        :math:`\varphi = \Phi(-\nu)`. (Gradient descent does so too, which leaves the difference of
        its weights as it is.)

        - In a random frame sgn of :math:`v_+ - \varphi v_-`, v being the sums of the centres of the
          sides, has :math:`\nu = \varphi\kappa\sqrt{d/q}`, and the cosine of the weights of both
          sides is :math:`-\frac2\pi\arcsin\frac{2\varphi}{1 + \varphi^2} = -c`: the radius is
          :math:`\kappa\sqrt{d/k}\,(1 + \varphi)/\sqrt{(1 + \varphi^2)(1 + c)}`.
        - With coordinates ±1 a small :math:`\varphi` turns no sign of a sum of an odd number of
          centres: :math:`\kappa\sqrt{d/k}`.
        - Along the axes any :math:`\varphi` moves the coordinates of the other centres as far as
          those of the own ones: :math:`2\kappa\sqrt{d/k} = \sqrt2` at most.
        """
        plain = self.sign_cosine(orientation) * self.averaged
        if orientation == "axes":
            return 2 * plain if self.noise else plain
        if orientation == "signs" or not self.noise:
            return plain
        pull = plain * np.sqrt(2) / self.noise  # κ√(d/q) over the noise
        phi = float(brentq(lambda share: share - ndtr(-share * pull), 0.0, 0.5))
        c = 2 / np.pi * np.arcsin(2 * phi / (1 + phi**2))
        return float(plain * (1 + phi) / np.sqrt((1 + phi**2) * (1 + c)))


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train three rules with the centres in each of three frames."""
    measured: dict[str, Any] = {}
    for orientation in ORIENTATIONS:
        training = Training.of(parameters, orientation, seed)
        for name, learner in _LEARNERS.items():
            for stop, found in training.tuned(learner)[1].items():
                measured |= prefixed(f"{name}_{orientation}_{stop}", found)
    radii = [measured[f"gd_{orientation}_loss_radius"] for orientation in ORIENTATIONS]
    return measured | {"gd_largest_over_smallest": max(radii) / min(radii)}


def expects(parameters: Parameters) -> list[Expectation]:
    """Return what was expected before the full run, at equal loss.

    Gradient descent does not depend on the frame. Sign descent has the radius of
    `Parameters.sign_radius`, and Adam, which is sign descent as long as gradients keep their size
    and nearer to gradient descent as they change, lies between both.

    The first version of the theory took the weights of a side to be orthogonal to the other side's
    centres: radii of 13.9 in a random frame and 0.7 along the axes, with an accuracy of
    Φ(0.7) = 0.76. One seed outside of the run had 14.5, and a quick look 1.5 and 0.88, from which
    the share of active points of the other side was found missing: with it the theory says 14.3
    and 1.4 at most, with an accuracy of at most Φ(1.4) = 0.92. That seed also showed that training
    along the axes needs more steps than were allowed. Everything is asked for within 5 %; what is
    said to be small along the axes is bounded by 1.15 (sign descent) and 1.5 (Adam) of the theory.
    """
    averaged, root = parameters.averaged, np.sqrt(parameters.clusters // 2)
    most = "gradient descent: largest over smallest radius in the three frames"
    formula = f"√(d/k) = {averaged:.4g}"
    rows = [
        at_most(most, "gd_largest_over_smallest", 1.05, "1"),
        within(0.05, "gradient descent: radius", "gd_random_loss_radius", averaged, formula),
    ]
    for orientation in ("random", "signs"):
        where, radius = _FRAMES[orientation], parameters.sign_radius(orientation)
        cosine = parameters.sign_cosine(orientation) / root
        sign, adam = (f"{name}_{orientation}_loss" for name in ("sign", "adam"))
        adams = Expectation(f"Adam, {where}: radius", f"{adam}_radius", 0.95 * radius, averaged)
        rows += [
            _near(f"sign descent, {where}: radius", f"{sign}_radius", radius),
            _near(f"sign descent, {where}: cosine with own centres", f"{sign}_cosine", cosine),
            replace(adams, paper=f"{radius:.4g} to {averaged:.4g}"),
        ]
    return rows + (_expected_along_axes(parameters) if parameters.noise else [])


def _near(statement: str, quantity: str, value: float) -> Expectation:
    return within(0.05, statement, quantity, value, f"{value:.3g}")


def _expected_along_axes(parameters: Parameters) -> list[Expectation]:
    """Return that there is next to no robustness left, and less accuracy."""
    theory = parameters.sign_radius("axes")
    rows = []
    for name, share in (("sign", 1.15), ("adam", 1.5)):
        label, quantity = f"{_LEARNERS[name].name}, along the axes", f"{name}_axes_loss"
        most, accuracy = share * theory, float(ndtr(theory / parameters.noise))
        rows += [
            at_most(f"{label}: radius", f"{quantity}_radius", most, f"≤ {theory:.3g}"),
            at_most(f"{label}: clean accuracy", f"{quantity}_accuracy", 0.95, f"≤ {accuracy:.2g}"),
        ]
    return rows


def table(_: Parameters, results: Results) -> Table:
    """Return every rule in every frame at both stops."""
    groups = {
        (stop, learner.name, orientation): [
            results[f"{name}_{orientation}_{stop}_{key}"] for key in COLUMNS
        ]
        for stop in STOPS
        for name, learner in _LEARNERS.items()
        for orientation in ORIENTATIONS
    }
    return Table.of_groups(("seed", "stopped_at", "rule", "orientation", *COLUMNS), groups, axes=())


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return cosines, radii and accuracies of the rules in each frame as dots."""
    places = [(name, orientation) for name in _LEARNERS for orientation in ORIENTATIONS]
    root = np.sqrt(parameters.clusters // 2)
    predicted: dict[str, list[float | None]] = {
        "cosine": [1 / root] * 3
        + [None] * 3
        + [parameters.sign_cosine(orientation) / root for orientation in ORIENTATIONS],
        "radius": [parameters.averaged] * 3
        + [None] * 3
        + [parameters.sign_radius(orientation) for orientation in ORIENTATIONS],
    }
    panels = []
    for key in ("cosine", "radius", "accuracy"):
        series = []
        for stop, role, marker in (("loss", "coarse", "dot"), ("steps", "fine", "ring")):
            values = [results[f"{n}_{orientation}_{stop}_{key}"] for n, orientation in places]
            series.append(DotSeries.over_seeds(STOPS[stop], np.transpose(values), role, marker))
        if key in predicted:
            series.append(DotSeries("theory", predicted[key], None, "paper", "bar"))
        panels.append(DotPanel("", QUANTITIES[key], series, zero=key != "accuracy"))
    return [
        Dots(
            "Adam and sign descent depend on the frame of the centres",
            [_FRAMES[orientation] for _, orientation in places],
            panels,
            [_LEARNERS[name].name for name, _ in places],
            f"k = {parameters.clusters}, d = {parameters.dim}, n = {parameters.samples}, "
            f"m = {parameters.width}. Theory for sign descent: the cosine of signs of gradients "
            "with the centres, and the radius that follows from it (along the axes at most). Radii "
            "are medians of exact radii; wrong points have the radius 0.",
        )
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="orientation",
    title="Adam and sign descent depend on the frame of the centres",
    paper="none, an extension",
    parameters=Parameters(),
    quick=replace(Parameters(), dim=1024, samples=400, learning_rate=0.003, radius_samples=60),
    series="beyond",
    quick_seeds=1,
)

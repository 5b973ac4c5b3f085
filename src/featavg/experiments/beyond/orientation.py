"""Rules that depend on the frame of the centres: Adam and sign descent in three frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import binom, erf

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
    radius_samples: int = parameter(200, "fresh points for radii")

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

        The weights of both sides are orthogonal to each other, so a point of an own cluster, whose
        product with its side's weight is :math:`\kappa \|w\| \sqrt{d/q}`, is
        :math:`\kappa\sqrt{d/k}` from the plane on which both sides are equal.
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
        return float((chances * S * signs).sum() / np.sqrt(q))


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
    """Return what was expected before the first full run, at equal loss.

    Gradient descent does not depend on the frame. Sign descent has the radius κ√(d/k) of
    `Parameters.sign_cosine`: 14.0 in a random frame and 14.7 with coordinates ±1 at the default
    setting, and along the axes, where signs drown q coordinates of signal in d of noise, 0.7 and
    an accuracy of about Φ(0.7) = 0.76; a seed outside of the run needed more steps there than were
    allowed at first, and more points for gradient descent's radii to be compared. Adam is sign descent as long as gradients keep their size,
    and is nearer to gradient descent as they change: it lies between both.
    """
    averaged, root = parameters.averaged, np.sqrt(parameters.clusters // 2)
    most = "gradient descent: largest over smallest radius in the three frames"
    rows = [
        at_most(most, "gd_largest_over_smallest", 1.03, "1"),
        within(0.05, "gradient descent: radius", "gd_random_loss_radius", averaged, "√(d/k)"),
    ]
    for orientation in ("random", "signs"):
        kappa, where = parameters.sign_cosine(orientation), _FRAMES[orientation]
        radius, cosine = kappa * averaged, kappa / root
        rows += [
            within(
                0.05,
                f"sign descent, {where}: radius",
                f"sign_{orientation}_loss_radius",
                radius,
                f"κ√(d/k) = {radius:.4g}",
            ),
            within(
                0.05,
                f"sign descent, {where}: cosine with own centres",
                f"sign_{orientation}_loss_cosine",
                cosine,
                f"κ/√q = {cosine:.3g}",
            ),
            Expectation(
                f"Adam, {where}: radius",
                f"adam_{orientation}_loss_radius",
                0.95 * radius,
                averaged,
                f"{radius:.4g} to {averaged:.4g}",
            ),
        ]
    return rows + (_expected_along_axes(parameters) if parameters.noise else [])


def _expected_along_axes(parameters: Parameters) -> list[Expectation]:
    averaged = parameters.averaged
    theory = f"κ√(d/k) = {parameters.sign_cosine('axes') * averaged:.2g}"
    rows = []
    for name, share in (("sign", 0.1), ("adam", 0.2)):
        label, quantity = f"{_LEARNERS[name].name}, along the axes", f"{name}_axes_loss"
        most = share * averaged
        rows.append(at_most(f"{label}: radius", f"{quantity}_radius", most, theory))
        rows.append(at_most(f"{label}: clean accuracy", f"{quantity}_accuracy", 0.9))
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
    signs = [parameters.sign_cosine(orientation) for orientation in ORIENTATIONS]
    kappas = [1.0, 1.0, 1.0, None, None, None, *signs]
    root, averaged = np.sqrt(parameters.clusters // 2), parameters.averaged
    predicted: dict[str, Callable[[float], float]] = {
        "cosine": lambda kappa: float(kappa / root),
        "radius": lambda kappa: kappa * averaged,
    }
    panels = []
    for key in ("cosine", "radius", "accuracy"):
        series = []
        for stop, role, marker in (("loss", "coarse", "dot"), ("steps", "fine", "ring")):
            values = [results[f"{n}_{orientation}_{stop}_{key}"] for n, orientation in places]
            series.append(DotSeries.over_seeds(STOPS[stop], np.transpose(values), role, marker))
        if key in predicted:
            theory = [None if kappa is None else predicted[key](kappa) for kappa in kappas]
            series.append(DotSeries("theory", theory, None, "paper", "bar"))
        panels.append(DotPanel("", QUANTITIES[key], series, zero=key != "accuracy"))
    return [
        Dots(
            "Adam and sign descent depend on the frame of the centres",
            [_FRAMES[orientation] for _, orientation in places],
            panels,
            [_LEARNERS[name].name for name, _ in places],
            f"k = {parameters.clusters}, d = {parameters.dim}, n = {parameters.samples}, "
            f"m = {parameters.width}. Theory: the radius is κ√(d/k), with κ = 1 for gradient "
            "descent and, for sign descent, the cosine of the signs of the gradient and the sum of "
            "own centres. Radii are medians of exact radii; wrong points have the radius 0.",
        )
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="orientation",
    title="Adam and sign descent depend on the frame of the centres",
    paper="none, an extension",
    parameters=Parameters(),
    quick=replace(Parameters(), test_samples=300, radius_samples=10),
    series="beyond",
    quick_seeds=1,
)

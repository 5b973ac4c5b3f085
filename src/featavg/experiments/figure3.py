"""Figure 3 (left): robust accuracy of the two networks on synthetic data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from featavg import _checks
from featavg._checks import FloatArray
from featavg.experiments.base import (
    Expectation,
    Experiment,
    Measurements,
    Results,
    Table,
    parameter,
)
from featavg.experiments.setting import SyntheticSetting
from featavg.paper import figure3_curve
from featavg.robustness import averaged_direction, half_radius, robust_curve, worst

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The curves, by the name of their measurement: classes of the labels, and the attack.
CURVES = {
    "coarse_pgd": ("2", "PGD"),
    "coarse_direction": ("2", "averaged direction"),
    "coarse_worst": ("2", "worst of all"),
    "fine_pgd_readout": ("k", "PGD on the binary readout"),
    "fine_pgd_cross_entropy": ("k", "PGD on its own cross-entropy"),
    "fine_direction": ("k", "averaged direction"),
    "fine_worst": ("k", "worst of all"),
}


@dataclass(frozen=True, kw_only=True)
class Parameters(SyntheticSetting):
    """The synthetic setting and the attack."""

    radii: int = parameter(30, "how many radii, from 0 on")
    radius_step: float = parameter(2.0, "the distance between radii")
    attack_steps: int = parameter(40, "steps of PGD")
    restarts: int = parameter(1, "random starts of PGD")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("attack_steps", "restarts"):
            _checks.count(name, getattr(self, name))
        _checks.count("radii", self.radii, minimum=2)
        _checks.scale("radius_step", self.radius_step * self.radii)

    @property
    def grid(self) -> FloatArray:
        """The radii."""
        return self.radius_step * np.arange(self.radii)

    @property
    def predicted(self) -> tuple[float, float]:
        """The half radii that theory predicts for coarse and fine labels.

        Centres with the pairwise cosine c are nearer to each other by the factor sqrt(1 - c).
        """
        distance = self.signal * np.sqrt(self.dim * (1 - self.cosine))
        return distance / np.sqrt(self.clusters), distance / np.sqrt(2)

    @property
    def formulas(self) -> tuple[str, str]:
        """The predictions as formulas."""
        plain = self.signal == 1 and self.cosine == 0
        return ("√(d/k)", "√(d/2)") if plain else ("α√(d(1-c)/k)", "α√(d(1-c)/2)")


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks and attack them in every way."""
    pair = parameters.train(seed)
    x, y, cluster = pair.test.x, pair.test.y, pair.test.cluster
    direction = averaged_direction(pair.train)
    attacks = {
        "coarse_pgd": (pair.coarse.net, "pgd", "readout"),
        "coarse_direction": (pair.coarse.net, "direction", "readout"),
        "fine_pgd_readout": (pair.fine.net, "pgd", "readout"),
        "fine_pgd_cross_entropy": (pair.fine.net, "pgd", "cross-entropy"),
        "fine_direction": (pair.fine.net, "direction", "readout"),
    }
    curves = {
        name: robust_curve(
            net,
            x,
            y,
            radii=parameters.grid,
            method=method,
            objective=objective,
            rng=pair.rng,
            steps=parameters.attack_steps,
            restarts=parameters.restarts,
            fine_labels=cluster,
            direction=direction,
        )
        for name, (net, method, objective) in attacks.items()
    }
    for labels in ("coarse", "fine"):
        curves[f"{labels}_worst"] = worst(
            *(curve for name, curve in curves.items() if name.startswith(labels))
        )
    coarse, fine = curves["coarse_worst"], curves["fine_worst"]
    return {
        **{name: curves[name].accuracy for name in CURVES},
        **{f"{name}_half_radius": curves[name].half_radius for name in CURVES},
        "smallest_gain": (fine.accuracy - coarse.accuracy).min(),
    }


def expects(parameters: Parameters) -> list[Expectation]:
    r"""Return what the theory says about where each curve falls.

    The averaging network is linear along its own attack, and a point of it sits
    :math:`\sqrt{d/k}` from the boundary; the decoupling one is as far from it as half the way to
    another centre, :math:`\sqrt{d/2}`.
    """
    coarse, fine = parameters.predicted
    k = parameters.clusters
    paper = {2: "", k: ""}
    if is_paper_data(parameters):
        paper = {c: f"{half_radius(*figure3_curve('synthetic', c)):.1f}" for c in (2, 10)}
    return [
        Expectation(
            f"2-class: half radius, theory {coarse:.1f}",
            "coarse_worst_half_radius",
            0.95 * coarse,
            1.05 * coarse,
            paper[2],
        ),
        Expectation(
            f"{k}-class: half radius, theory {fine:.1f}",
            "fine_worst_half_radius",
            0.95 * fine,
            1.05 * fine,
            paper[k],
        ),
        Expectation(
            f"{k}-class gain in accuracy, smallest",
            "smallest_gain",
            low=-0.01,
            paper="≥ 0",
        ),
    ]


def table(parameters: Parameters, results: Results) -> Table:
    """Return every point of every curve."""
    rows = [
        (
            seed,
            parameters.clusters if classes == "k" else 2,
            attack,
            float(parameters.grid[i]),
            float(accuracy),
        )
        for name, (classes, attack) in CURVES.items()
        for (seed, i), accuracy in np.ndenumerate(results[name])
    ]
    return Table(("seed", "classes", "attack", "radius", "robust_accuracy"), rows)


def plot(parameters: Parameters, results: Results) -> Figure:
    """Draw the curves, what theory predicts and the paper's own."""
    from featavg.report import plots

    k, radii = parameters.clusters, parameters.grid
    lines = {
        "coarse_worst": ("2-class labels, worst attack", plots.COARSE, "-"),
        "coarse_pgd": ("2-class labels, PGD", plots.COARSE, "--"),
        "fine_worst": (f"{k}-class labels, worst attack", plots.FINE, "-"),
        "fine_pgd_readout": (f"{k}-class labels, PGD on the binary readout", plots.FINE, "--"),
        "fine_pgd_cross_entropy": (
            f"{k}-class labels, PGD on its own cross-entropy",
            plots.FINE,
            ":",
        ),
    }
    with plots.style():
        figure, (axes,) = plots.new_figure(8, 4.6)
        for name, (label, colour, dashes) in lines.items():
            plots.band(axes, radii, results[name], label=label, color=colour, linestyle=dashes)
        if is_paper_data(parameters):
            for classes, marker in ((2, "o"), (10, "s")):
                axes.plot(
                    *figure3_curve("synthetic", classes),
                    marker,
                    color=plots.PAPER,
                    markersize=3.5,
                    fillstyle="none",
                    label=f"the paper, {classes}-class",
                )
        for name, radius in zip(parameters.formulas, parameters.predicted, strict=True):
            plots.mark_radius(axes, f"{name} = {radius:.1f}", radius, limit=radii[-1])
        axes.set(
            xlabel="radius of the perturbation (L2)",
            ylabel="robust accuracy",
            xlim=(0, radii[-1]),
            ylim=(-0.02, 1.02),
        )
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)
    return figure


def is_paper_data(parameters: SyntheticSetting) -> bool:
    """Return whether the data are those of the paper, so that its curves can be compared."""
    return parameters.law == SyntheticSetting().law


EXPERIMENT = Experiment(
    id="figure3-synthetic",
    title="Fine labels make the network more robust",
    paper="Figure 3 (left)",
    parameters=Parameters(),
    quick=replace(Parameters(), dim=1536, samples=500, test_samples=200, radii=30, radius_step=1.5),
    measure=measure,
    expects=expects,
    table=table,
    plot=plot,
)

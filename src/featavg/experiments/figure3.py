"""Figure 3 (left): robust accuracy of the two networks on synthetic data, exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.lab.experiment import (
    Expectation,
    Experiment,
    Measurements,
    Results,
    Table,
    parameter,
)
from featavg.lab.setting import SyntheticSetting
from featavg.lab.tables import tidy_rows
from featavg.networks.base import TwoLayerNet
from featavg.paper import figure3_curve
from featavg.plot.views import Curves, Line, Mark, Panel, View
from featavg.robustness import RobustCurve, averaged_direction, half_radius, robust_curve
from featavg.robustness.radii import relative_gap

# The curves, by the name of their measurement: classes of the labels, and how it was found.
CURVES = {
    "coarse_exact": ("2", "exact"),
    "coarse_pgd": ("2", "PGD"),
    "coarse_direction": ("2", "averaged direction"),
    "fine_argmax_exact": ("k", "argmax readout, exact"),
    "fine_upper": ("k", "probability readout, upper bound"),
    "fine_lower": ("k", "probability readout, certified lower bound"),
    "fine_pgd_readout": ("k", "probability readout, PGD on it"),
    "fine_pgd_cross_entropy": ("k", "probability readout, PGD on the cross-entropy"),
}
# How each is drawn: what is proved without a gap, what attacks found with.
_DASHES = {
    "coarse_exact": "solid",
    "coarse_pgd": "dashed",
    "coarse_direction": "dotted",
    "fine_argmax_exact": "solid",
    "fine_upper": "dash-dot",
    "fine_lower": "dash-dot",
    "fine_pgd_readout": "dashed",
    "fine_pgd_cross_entropy": "dotted",
}


@dataclass(frozen=True, kw_only=True)
class Parameters(SyntheticSetting):
    """The synthetic setting, the radii and the attack that exact curves are compared with."""

    radii: int = parameter(30, "how many radii, from 0 on")
    radius_step: float = parameter(2.0, "the distance between radii")
    attack_steps: int = parameter(40, "steps of PGD")
    restarts: int = parameter(1, "random starts of PGD")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("attack_steps", "restarts"):
            checks.count(name, getattr(self, name))
        checks.count("radii", self.radii, minimum=2)
        checks.scale("radius_step", self.radius_step * self.radii)

    @property
    def grid(self) -> FloatArray:
        """The radii."""
        return self.radius_step * np.arange(self.radii)


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks, compute their curves, and see what PGD makes of them."""
    pair = parameters.train(seed)
    test, radii = pair.test, parameters.grid

    def attacked(net: TwoLayerNet, objective: str) -> RobustCurve:
        return robust_curve(
            net,
            test.x,
            test.y,
            radii=radii,
            method="pgd",
            objective=objective,
            rng=pair.rng,
            steps=parameters.attack_steps,
            restarts=parameters.restarts,
            fine_labels=test.cluster,
        )

    coarse = robust_curve(pair.coarse.net, test.x, test.y, radii=radii, method="exact")
    argmax_net = pair.fine_net.with_readout("argmax")
    argmax = robust_curve(argmax_net, test.x, test.y, radii=radii, method="exact")
    fine = robust_curve(pair.fine_net, test.x, test.y, radii=radii, method="bracket")
    direction = averaged_direction(pair.train)
    along = robust_curve(
        pair.coarse.net, test.x, test.y, radii=radii, method="direction", direction=direction
    )
    curves = {
        "coarse_exact": coarse.accuracy,
        "coarse_pgd": attacked(pair.coarse.net, "readout").accuracy,
        "coarse_direction": along.accuracy,
        "fine_argmax_exact": argmax.accuracy,
        "fine_upper": fine.accuracy,
        "fine_lower": fine.certified,
        "fine_pgd_readout": attacked(pair.fine_net, "readout").accuracy,
        "fine_pgd_cross_entropy": attacked(pair.fine_net, "cross-entropy").accuracy,
    }
    overstated = curves["coarse_pgd"] - curves["coarse_exact"]
    return {
        **curves,
        "coarse_radius": np.median(coarse.broken_at),
        "fine_argmax_radius": np.median(argmax.broken_at),
        "fine_radius_lower": np.median(fine.safe_until),
        "fine_radius_upper": np.median(fine.broken_at),
        "fine_gap": np.median(relative_gap(fine.safe_until, fine.broken_at)),
        "smallest_gain": (curves["fine_lower"] - curves["coarse_exact"]).min(),
        "pgd_overstates_least": overstated.min(),
        "pgd_overstates_most": overstated.max(),
    }


def expects(parameters: Parameters) -> list[Expectation]:
    r"""Return what the theory says about the radii.

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
            f"2-class: median radius, theory {coarse:.1f}",
            "coarse_radius",
            0.95 * coarse,
            1.05 * coarse,
            paper[2],
        ),
        Expectation(
            f"{k}-class: median radius, theory {fine:.1f}",
            "fine_argmax_radius",
            0.95 * fine,
            1.05 * fine,
            paper[k],
        ),
        Expectation(
            f"{k}-class: gap of the certified bracket", "fine_gap", high=0.05, paper="none"
        ),
        Expectation(
            f"{k}-class: certified gain in accuracy", "smallest_gain", low=-0.01, paper="≥ 0"
        ),
        Expectation(
            "2-class: PGD overstates accuracy by at most", "pgd_overstates_most", paper="none"
        ),
        Expectation(
            "2-class: and by at least (no attack wins)", "pgd_overstates_least", low=0, paper="none"
        ),
    ]


def table(parameters: Parameters, results: Results) -> Table:
    """Return every point of every curve."""
    rows: list[tuple[object, ...]] = []
    for name, (classes, found) in CURVES.items():
        label = (parameters.clusters if classes == "k" else 2, found)
        rows += tidy_rows(results[name], label=label, axes=[parameters.grid.tolist()])
    return Table(("seed", "classes", "method", "radius", "robust_accuracy"), rows)


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return every curve, exact and by each attack, beside the paper's."""
    k = parameters.clusters
    lines = [
        Line.over_seeds(
            f"{2 if classes == '2' else k}-class, {found}",
            parameters.grid,
            results[name],
            "coarse" if classes == "2" else "fine",
            _DASHES[name],
        )
        for name, (classes, found) in CURVES.items()
    ]
    if is_paper_data(parameters):
        lines += [
            Line.over_seeds(
                f"{classes}-class, the paper's PGD",
                *figure3_curve("synthetic", classes),
                role="paper",
                dash="points" if classes == 2 else "squares",
            )
            for classes in (2, 10)
        ]
    marks = [
        Mark(f"{formula} = {radius:.1f}", radius)
        for formula, radius in zip(parameters.formulas, parameters.predicted, strict=True)
        if radius <= parameters.grid[-1]
    ]
    panels = [
        Panel("Robust accuracy", "robust accuracy", lines, marks),
        Panel("What the attacks miss", "accuracy overstated by", _missed(parameters, results)),
    ]
    start = float(parameters.predicted[0])
    return [Curves("Robust accuracy at a radius", "radius (L2)", panels, start=start)]


def _missed(parameters: Parameters, results: Results) -> list[Line]:
    """Return by how much each attack overstates what is certified or found at best."""
    k = parameters.clusters
    return [
        Line.over_seeds(label, parameters.grid, results[attack] - results[truth], role, dash)
        for attack, truth, label, role, dash in (
            ("coarse_pgd", "coarse_exact", "2-class, PGD", "coarse", "dashed"),
            ("coarse_direction", "coarse_exact", "2-class, averaged direction", "coarse", "dotted"),
            ("fine_pgd_readout", "fine_upper", f"{k}-class, PGD on the readout", "fine", "dashed"),
            (
                "fine_pgd_cross_entropy",
                "fine_upper",
                f"{k}-class, PGD on the cross-entropy",
                "fine",
                "dotted",
            ),
        )
    ]


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
    views=views,
)

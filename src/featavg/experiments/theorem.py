"""Theorems 4.5 and 4.7 at the hyper-parameters they are stated for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, unit_rows
from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.drawing.views import Mark, View
from featavg.lab.expectations import Expectation, at_least, at_most, within
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.setting import Pair, SyntheticSetting
from featavg.lab.tables import Measurements, Results, Table, prefixed
from featavg.lab.timelines import Series, over_time, table_over_time, through_training
from featavg.measures.alignment import clean_accuracy
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet
from featavg.progress import wanted
from featavg.robustness import exact_radii
from featavg.theory.evidence import ProofQuantities
from featavg.training.fast_forward import fast_forward
from featavg.training.trajectory import Trajectory

# From this many points on, single precision: the Gram matrix is then the largest object by far.
_SINGLE_PRECISION_FROM = 8000
_NETS = ("coarse", "fine")
_FIGURES = SyntheticSetting()
_SERIES = (
    Series(
        "coefficients",
        {"opposite_max": "other |λ|, largest", "log": "log(ηt)"},
        y="λ",
        bands={("own_min", "own_max"): "own λ, smallest to largest"},
        roles={"opposite_max": "quiet", "log": "paper"},
    ),
    Series(
        "what is o(1)",
        {
            "distance_share": "distance of item 2 · √d / λ",
            "bias": "largest |bias|",
            "opposite_share": "other |λ| / own λ",
            "margin_spread": "spread of margins",
            "excess": "own λ: largest / smallest - 1",
        },
        scale="log",
        roles={"bias": "quiet", "opposite_share": "third", "margin_spread": "quiet"},
    ),
    Series(
        "activation, direction, accuracy",
        {
            "active": "own activations on",
            "cosine": "cosine to own centres' average",
            "accuracy": "clean accuracy",
        },
        y="share or cosine",
        roles={"cosine": "third", "accuracy": "quiet"},
    ),
)


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """Assumption 4.3 with its constants, or the poster's initialisation, also at other sizes."""

    clusters: int | None = parameter(
        None,
        "k, from which everything else follows; by default 3, at the figures' sizes 10",
        least=2,
    )
    preset: Literal["theorem", "poster", "poster-figures"] = parameter(
        "theorem",
        "initialisation and learning rate: of Assumption 4.3, of the poster, or of the poster at "
        "the k, d, n and m of the paper's figures",
    )
    dim_constant: float = parameter(1.0, "d = this · k^10 (figures: · 3072)")
    samples_constant: float = parameter(1.0, "n = this · k^7 (figures: · 1000)")
    width_constant: float = parameter(1.0, "m = this · k (figures: · k/2)")
    rate_constant: float = parameter(1.0, "eta = this · d^-2 (poster: · d^-1/2)")
    init_constant: float = parameter(1.0, "sigma² = this · eta · k^-5 (poster: · 1/d, 1/d²)")
    horizon: float = parameter(100.0, "eta·t to which the 2-class network is trained")
    fine_horizon: float | None = parameter(
        None, "eta·t to which the k-class network is trained; by default k^8, as in Theorem 4.7"
    )
    tolerance: float = parameter(0.02, "tolerance of fast_forward")
    times: int = parameter(30, "recorded times, evenly spaced in log-time", least=3)
    test_samples: int = parameter(1000, "fresh points for clean accuracy")
    radius_samples: int = parameter(60, "fresh points for exact radii")

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = 2.2 * self.samples**2 * np.dtype(self.dtype).itemsize
        checks.memory(f"n = {self.samples:,} points and their Gram matrix", needed)

    @property
    def k(self) -> int:
        """The number of clusters, whose default depends on the preset."""
        return self.clusters or (_FIGURES.clusters if self._at_figures else 3)

    @property
    def _at_figures(self) -> bool:
        return self.preset == "poster-figures"

    @property
    def dim(self) -> int:
        """The dimension d, k^10 times its constant, or 3072."""
        return round(self.dim_constant * (_FIGURES.dim if self._at_figures else self.k**10))

    @property
    def samples(self) -> int:
        """The number n of training points, k^7 times its constant, or 1000."""
        return round(self.samples_constant * (_FIGURES.samples if self._at_figures else self.k**7))

    @property
    def width(self) -> int:
        """The number m of positive (and of negative) neurons, k times its constant, or k/2."""
        usual = self.k / 2 if self._at_figures else self.k
        return max(1, round(self.width_constant * usual))

    @property
    def learning_rate(self) -> float:
        """The learning rate η, d^-2 times its constant; for the poster d^-1/2."""
        return self.rate_constant * float(self.dim) ** (-2 if self.preset == "theorem" else -0.5)

    @property
    def scales(self) -> tuple[float, float]:
        """The standard deviations of the initial weights and biases."""
        d = float(self.dim)
        if self.preset != "theorem":
            return np.sqrt(self.init_constant / d), np.sqrt(self.init_constant) / d
        both = np.sqrt(self.init_constant * self.learning_rate * float(self.k) ** -5)
        return both, both

    @property
    def horizons(self) -> tuple[float, float]:
        """The times η·t to which the 2-class and the k-class network are trained."""
        fine = float(self.k) ** 8 if self.fine_horizon is None else self.fine_horizon
        return self.horizon, fine

    @property
    def dtype(self) -> str:
        """The precision of the points, and so of all numbers computed from them."""
        return "float32" if self.samples >= _SINGLE_PRECISION_FROM else "float64"


def train(parameters: Parameters, seed: int) -> Pair[Trajectory]:
    """Draw a sample and train both networks to their horizons."""
    data, coarse_rng, fine_rng, after = np.random.default_rng(seed).spawn(4)
    law = MultiCluster(clusters=parameters.k, dim=parameters.dim)
    sample = law.sample(parameters.samples, rng=data, coordinates="span", dtype=parameters.dtype)
    test = sample.fresh(parameters.test_samples, rng=data)
    width, (scale, bias_scale) = parameters.width, parameters.scales
    nets: list[TwoLayerNet] = [
        BinaryNet.init(
            sample, width=width, weight_scale=scale, bias_scale=bias_scale, rng=coarse_rng
        ),
        MultiClassNet.init(sample, width=1, weight_scale=scale, rng=fine_rng, readout="argmax"),
    ]
    coarse, fine = (
        fast_forward(
            net,
            sample,
            learning_rate=parameters.learning_rate,
            steps=horizon / parameters.learning_rate,
            tolerance=parameters.tolerance,
            record=parameters.times,
            progress=wanted(),
        )
        for net, horizon in zip(nets, parameters.horizons, strict=True)
    )
    return Pair(sample, test, coarse, fine, after)


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks and follow every quantity of the theorems."""
    pair = train(parameters, seed)
    found: dict[str, object] = {}
    for name, run in zip(_NETS, (pair.coarse, pair.fine), strict=True):
        at = partial(_at, ProofQuantities(run), pair.test, parameters.radius_samples)
        followed = over_time(range(1, len(run.log_times)), "exact radii over time", at)
        found |= prefixed(name, followed)
        for key in ("ratio", "opposite_share", "active", "accuracy", "distance_share", "radius"):
            found[f"{name}_final_{key}"] = followed[key][-1]
    return found


def _at(
    quantities: ProofQuantities, test: Sample, radius_samples: int, index: int
) -> dict[str, float]:
    """Return the quantities of Theorem 4.5 or 4.7 at one recorded time."""
    run, sample, own = quantities.run, quantities.sample, quantities.own_centers
    net = run.net_at(index)
    coefficients = run.feature_coefficients_at(index)
    mine, others = coefficients[own], np.abs(coefficients[~own])
    representative = float(mine.mean())
    # lambda · Σ mu_j / ||mu_j||² over the own centres of each neuron
    target = representative * (own @ sample.centers) / sample.law.dim
    deviation = np.linalg.norm(net.weights - target, axis=1).max() * np.sqrt(sample.law.dim)
    averages = unit_rows(own @ sample.centers)
    x, y = test.x[:radius_samples], test.y[:radius_samples]
    radii = exact_radii(net, x, y)
    return {
        "log_time": float(run.log_times[index]),
        "own_min": float(mine.min()),
        "own_max": float(mine.max()),
        "opposite_max": float(others.max()),
        "ratio": float(mine.max() / mine.min()) if mine.min() > 0 else np.inf,
        "opposite_share": float(others.max() / representative) if representative > 0 else np.inf,
        "bias": float(np.abs(net.biases).max()),
        "margin_spread": float(np.ptp(run.margins[index])),
        "active": float(run.active[index][quantities.own_points].mean()),
        "cosine": float((unit_rows(net.weights) * averages).sum(axis=1).min()),
        "distance": float(deviation),
        "distance_share": float(deviation / representative) if representative > 0 else np.inf,
        "accuracy": clean_accuracy(net, test.x, test.y),
        "radius": float(np.median(radii.upper)),
    }


def expects(parameters: Parameters) -> list[Expectation]:
    """Return the items of Theorems 4.5 and 4.7 as numbers at the horizon."""
    k = parameters.k
    coarse, fine = np.sqrt(parameters.dim / k), np.sqrt(parameters.dim / 2)
    coarse_radius, fine_radius = (f"median radius, theory {r:.4g}" for r in (coarse, fine))
    of_coarse = [
        at_most("own λ, largest over smallest", "final_ratio", 1.02, "1 ± o(1)"),
        at_most("opposite |λ| over own", "final_opposite_share", 0.05, "o(1)"),
        at_least("own-class activations on", "final_active", 1, "1"),
        at_most("distance of item 2 over λ", "final_distance_share", 0.1, "o(1)"),
        at_least("clean accuracy", "final_accuracy", 1, "1"),
        within(0.05, coarse_radius, "final_radius", coarse, "O(√(d/k))"),
    ]
    of_fine = [
        at_most("other |λ| over own", "final_opposite_share", 0.05, "o(1)"),
        at_least("clean accuracy", "final_accuracy", 1, "1"),
        within(0.05, fine_radius, "final_radius", fine, "Ω(√d)"),
    ]
    rows = [row.of("2-class", "coarse") for row in of_coarse]
    return rows + [row.of(f"{k}-class", "fine") for row in of_fine]


def table(parameters: Parameters, results: Results) -> Table:
    """Return every quantity at every recorded time."""
    return table_over_time(results, {"coarse": 2, "fine": parameters.k})


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return what the theorems speak of over log-time, for each network on its own horizon."""
    k, d = parameters.k, parameters.dim
    about = (
        f"k = {k}, d = {d:,}, n = {parameters.samples:,}, η = {parameters.learning_rate:.3g}, "
        f"{parameters.preset} preset."
    )
    shown: list[View] = []
    for net, classes, q, formula in (("coarse", 2, k, "√(d/k)"), ("fine", k, 2, "√(d/2)")):
        radius = float(np.sqrt(d / q))
        mark = Mark(f"{formula} = {radius:.4g}", radius, "y")
        radii = Series("median exact radius", {"radius": ""}, marks=[mark], y="radius")
        view = through_training(
            dict(results) | _derived(net, results),
            networks={net: ("", net)},
            times={net: np.exp(results[f"{net}_log_time"])},
            series=[replace(s, title=f"{classes}-class: {s.title}") for s in (*_SERIES, radii)],
            x="ηt",
            x_scale="log",
            title=f"The {classes}-class network through training",
            note=about if net == "fine" else "",
        )
        shown.append(view)
    return shown


def _derived(net: str, results: Results) -> dict[str, FloatArray]:
    """Return log(ηt) from ηt = 1 on, and by how much the largest own λ exceeds the smallest."""
    time, ratio = results[f"{net}_log_time"], results[f"{net}_ratio"]
    return {
        f"{net}_log": np.where(time >= 0, time, np.nan),
        f"{net}_excess": np.where(ratio > 1, ratio - 1, np.nan),
    }


EXPERIMENT = Experiment.of_module(
    __name__,
    id="theorem-regime",
    title="The theorems at their own hyper-parameters",
    paper="Theorems 4.5 and 4.7",
    parameters=Parameters(),
    quick=replace(Parameters(), samples_constant=0.5, times=8, test_samples=300, radius_samples=20),
    seeds=1,
)

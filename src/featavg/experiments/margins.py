"""Training to losses of 10^-100 maximises the margin, and does not make the network more robust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.drawing.views import Mark, View
from featavg.errors import InputError
from featavg.lab.expectations import Expectation, at_least, at_most, reported, within
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.tables import Measurements, Results, Table, prefixed
from featavg.lab.timelines import Series, over_time, table_over_time, through_training
from featavg.measures.kkt import kkt_residual
from featavg.measures.margins import MarginHistory
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet
from featavg.progress import wanted
from featavg.robustness import exact_radii
from featavg.training.fast_forward import fast_forward
from featavg.training.trajectory import Trajectory

_FORMULAS = {"coarse": "√(d/k)", "fine": "√(d/2)"}
_MEDIAN = "median over fresh points"
_SERIES = (
    Series(
        "margins",
        {"normalized": "γ", "smoothed": "γ̃", "pattern_margin": "largest γ at its activations"},
        y="γ = min q / ||θ||",
    ),
    Series(
        "duality gap of the max-margin problem", {"gap": ""}, scale="log", y="relative to ½||θ||²"
    ),
    Series(
        "its two parts",
        {"stationarity": "stationarity", "complementarity": "complementarity"},
        scale="log",
        y="relative",
    ),
    Series("sum of losses", {"log10_loss": ""}, y="log₁₀ loss"),
    Series("norm of the trained parameters", {"norm": ""}, y="||θ||"),
)
_REFINEMENTS = 3  # tolerances, each half of the one before


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """The data of Section 6.1, trained far beyond the fit."""

    clusters: int = parameter(10, "k, the number of clusters", least=2)
    dim: int = parameter(3072, "d, the dimension")
    samples: int = parameter(400, "n, the number of training points")
    width: int = parameter(5, "m, positive (and negative) neurons of the 2-class network")
    # One neuron for each class is too few: of n/k points, all silence it with probability
    # 1 / (n/k + 1), and then it never learns.
    fine_width: int = parameter(2, "h, neurons for each class of the k-class network")
    learning_rate: float = parameter(1e-6, "eta")
    init_scale: float = parameter(1e-6, "scale of the initial weights and biases")
    decades: int = parameter(103, "eta·t = 10 to the power of this, to which it is trained")
    tolerance: float = parameter(0.4, "tolerance of fast_forward; halved, and halved again")
    times: int = parameter(400, "recorded times, evenly spaced in log-time", least=10)
    details: int = parameter(12, "those of them for KKT residuals and radii", least=3)
    kink: float = parameter(1e-3, "size of a pre-activation that counts as a kink", least=0)
    radius_samples: int = parameter(100, "fresh points for exact radii")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning_rate > 1:
            raise InputError(f"learning_rate must be at most 1; got {self.learning_rate!r}.")

    @property
    def steps(self) -> int:
        """The number of steps, too large for a float from 309 decades on."""
        return round(1 / self.learning_rate) * 10**self.decades

    @property
    def tolerances(self) -> list[float]:
        """The tolerances, the finest last."""
        return [self.tolerance / 2**i for i in range(_REFINEMENTS)]

    @property
    def predicted(self) -> dict[str, float]:
        """The radii of averaging and of decoupled features."""
        return {"coarse": np.sqrt(self.dim / self.clusters), "fine": np.sqrt(self.dim / 2)}


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks at every tolerance and follow the finest run in detail."""
    data, coarse, fine = np.random.default_rng(seed).spawn(3)
    law = MultiCluster(clusters=parameters.clusters, dim=parameters.dim)
    reserve = 2 * parameters.width + parameters.clusters * parameters.fine_width
    train = law.sample(parameters.samples, rng=data, coordinates="span", reserve=reserve)
    test = train.fresh(parameters.radius_samples, rng=data)
    scale = parameters.init_scale
    nets: dict[str, TwoLayerNet] = {
        "coarse": BinaryNet.init(
            train, width=parameters.width, weight_scale=scale, bias_scale=scale, rng=coarse
        ),
        "fine": MultiClassNet.init(
            train, width=parameters.fine_width, weight_scale=scale, rng=fine, readout="argmax"
        ),
    }
    found: dict[str, object] = {}
    for name, net in nets.items():
        histories = []
        for tolerance in parameters.tolerances:
            run = fast_forward(
                net,
                train,
                learning_rate=parameters.learning_rate,
                steps=parameters.steps,
                tolerance=tolerance,
                record=parameters.times,
                progress=wanted(),
            )
            histories.append(MarginHistory.of(run))
            if histories[-1].fitted + _REFINEMENTS > parameters.times:
                raise InputError(
                    f"the network must fit every point well before the end, and with seed {seed} "
                    f"the {name} one does not; got decades={parameters.decades}."
                )
        followed = _follow(run, histories[-1], test, parameters)
        found |= prefixed(name, _integration(histories) | _late(histories[-1]) | followed)
    return found


def _integration(histories: list[MarginHistory]) -> dict[str, float]:
    """Return how much the smoothed margin ever falls, and how far apart tolerances are."""
    fitted = max(history.fitted for history in histories)
    curves = [history.smoothed[fitted:] for history in histories]
    errors = [float(np.abs(a - b).max() / b[-1]) for a, b in pairwise(curves)]
    decreases = [history.largest_decrease for history in histories]
    return {
        "decrease_coarse": decreases[0],
        "decrease": decreases[-1],
        "decrease_excess": decreases[-1] - decreases[0] / 2,
        "error": errors[-1],
        "error_ratio": errors[-1] / errors[0],
    }


def _late(history: MarginHistory) -> dict[str, float]:
    rates = history.rates()
    return {
        "loss_rate": rates.loss,
        "norm_rate": rates.norm,
        "norm_deviation": rates.norm_deviation,
        "final_log10_loss": float(history.log_loss[-1] / np.log(10)),
        "margin_growth": float(history.normalized[-1] / history.normalized[history.fitted]),
    }


def _follow(
    run: Trajectory, history: MarginHistory, test: Sample, parameters: Parameters
) -> dict[str, object]:
    """Return margins, KKT residuals and radii from the fit on, and what they come to."""
    last = len(history.log_times) - 1
    # closer together at first, when more happens
    share = np.linspace(0, 1, parameters.details) ** 2
    chosen = (history.fitted + share * (last - history.fitted)).round().astype(int)

    def at(index: int) -> Measurements:
        net = run.net_at(index)
        kkt = kkt_residual(net, run.sample, kink=parameters.kink)
        return {
            "log10_time": float(history.log_times[index] / np.log(10)),
            "log10_loss": float(history.log_loss[index] / np.log(10)),
            "norm": float(history.norm[index]),
            "normalized": float(history.normalized[index]),
            "smoothed": float(history.smoothed[index]),
            "pattern_margin": kkt.pattern_margin,
            "gap": kkt.gap,
            "stationarity": kkt.stationarity,
            "complementarity": kkt.complementarity,
            "free_gates": float(kkt.free),
            "radius": float(np.median(exact_radii(net, test.x, test.y).upper)),
        }

    series = over_time(chosen.tolist(), "KKT residuals and radii", at)
    radius = series["radius"]
    return series | {
        "gap_ratio": float(series["gap"][-1] / series["gap"][0]),
        "stationarity_ratio": float(series["stationarity"][-1] / series["stationarity"][0]),
        "margin_share": float(series["normalized"][-1] / series["pattern_margin"][-1]),
        "final_radius": float(radius[-1]),
        "radius_drift": float(np.abs(radius / radius[0] - 1).max()),
    }


def expects(parameters: Parameters) -> list[Expectation]:
    """Return what the theorem of Lyu and Li says, and what feature averaging says of the radius."""
    rows = []
    coarsest, finest = parameters.tolerances[0], parameters.tolerances[-1]
    fall = "largest relative fall of γ̃ at"
    for name, classes in (("coarse", 2), ("fine", parameters.clusters)):
        radius, formula = parameters.predicted[name], _FORMULAS[name]
        of_radius = f"median radius, {formula} = {radius:.4g}"
        own = [
            at_most("log₁₀ of the final sum of losses", "final_log10_loss", 3 - parameters.decades),
            at_most(f"{fall} {coarsest:g}", "decrease_coarse", 1e-4, "0"),
            at_most(f"{fall} {finest:g}", "decrease", 1e-4, "0"),
            at_most("finer fall minus half of the coarser", "decrease_excess", 1e-12),
            reported(f"error of γ̃ at {2 * finest:g}", "error"),
            reported(f"error of γ̃, over that at {coarsest:g}", "error_ratio"),
            at_most("KKT gap, end over fit", "gap_ratio", 0.5, "→ 0"),
            at_most("stationarity, end over fit", "stationarity_ratio", 0.5, "→ 0"),
            reported("γ over the largest at its activations", "margin_share"),
            Expectation("slope of log loss in log t", "loss_rate", -1.05, -0.95, "-1"),
            at_most("norm: deviation from a line in log t", "norm_deviation", 0.02, "Θ(log t)"),
            at_least("γ, end over fit", "margin_growth", 1),
            within(0.05, of_radius, "final_radius", radius, formula),
            at_most("largest relative change of the radius", "radius_drift", 0.05),
        ]
        rows += [row.of(f"{classes}-class", name) for row in own]
    return rows


def table(parameters: Parameters, results: Results) -> Table:
    """Return every quantity at every time of the detailed ones."""
    return table_over_time(results, {"coarse": 2, "fine": parameters.clusters})


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return margins, KKT residuals, loss, norm and radii over log-time."""
    marks = [
        Mark(f"{_FORMULAS[net]} = {radius:.3g}", radius, "y")
        for net, radius in parameters.predicted.items()
    ]
    networks = {"coarse": 2, "fine": parameters.clusters}
    radii = Series("exact robust radius", {"radius": ""}, marks=marks, y=_MEDIAN)
    return [
        through_training(
            results,
            networks={net: (f"{classes}-class", net) for net, classes in networks.items()},
            times={net: results[f"{net}_log10_time"] for net in networks},
            series=[*_SERIES, radii],
            x="log₁₀(ηt)",
            x_scale="linear",
            note=f"k = {parameters.clusters}, d = {parameters.dim:,}, n = {parameters.samples:,}, "
            f"trained to ηt = 10^{parameters.decades}.",
        )
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="margin-maximization",
    calibrated=True,
    title="Margins keep growing, radii do not",
    paper="none, an extension; the margin maximisation of Lyu and Li (2020)",
    parameters=Parameters(),
    quick=replace(Parameters(), clusters=4, samples=200, times=150, details=6),
    seeds=2,
    quick_seeds=1,
)

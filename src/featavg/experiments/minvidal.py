"""The conjecture of Min and Vidal: both layers trained, polynomial activations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.drawing.common import cosine_maps
from featavg.drawing.views import Mark, Matrix, View
from featavg.lab.expectations import Expectation, at_least, at_most, reported, within
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.tables import Measurements, Results, Table, prefixed
from featavg.lab.timelines import Series, over_time, through_training
from featavg.measures.alignment import alignment, averaging_index_per_neuron, clean_accuracy
from featavg.measures.distance import distance_to_averaging, distance_to_decoupled
from featavg.networks.activation import ReLUPower
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.progress import wanted
from featavg.robustness import exact_radii, minimal_norm
from featavg.robustness.radii import EXACT
from featavg.training.descent import descend
from featavg.training.trajectory import Trajectory

# Below this distance (only power 1 has a bound), the search for exact radii is quick.
_NEARLY_PARALLEL = 0.5
POWERS = (1, 2, 3)
_SERIES = {
    "averaging_lower": "distance to averaging, at least",
    "averaging_upper": "distance to averaging, at most",
    "decoupled_lower": "distance to one neuron a centre, at least",
    "decoupled_upper": "distance to one neuron a centre, at most",
    "index": "averaging index",
    "accuracy": "clean accuracy",
    "radius_lower": "median radius, at least",
    "radius": "median radius, at most",
    "loss": "training loss",
}


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """Tight clusters, as Min and Vidal have them, and a small balanced initialisation.

    Points are divided by √d: time is then of order k for every power. Radii are given for the
    points as they are.
    """

    clusters: int = parameter(10, "k, the number of clusters", least=2)
    dim: int = parameter(3072, "d, the dimension")
    samples: int = parameter(200, "n, the number of training points")
    noise: float = parameter(0.1, "sigma, the noise in each coordinate; 1 is the paper's", least=0)
    width: int = parameter(20, "neurons on each side")
    initial_norm: float = parameter(1e-3, "the norm of initial weights")
    trained: Literal["both", "first"] = parameter(
        "both", "which layers are trained; a second layer that is not is ±1/width"
    )
    learning_rate: float = parameter(0.5, "eta, for points of norm 1")
    steps: int = parameter(10_000, "steps of gradient descent")
    times: int = parameter(25, "recorded times, evenly spaced in log-time", least=3)
    test_samples: int = parameter(500, "fresh points for clean accuracy")
    radius_samples: int = parameter(60, "fresh points for radii")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.law  # refuses what cannot be drawn

    @property
    def law(self) -> MultiCluster:
        """The law, divided by √d."""
        unit = float(self.dim) ** -0.5
        return MultiCluster(
            clusters=self.clusters, dim=self.dim, signal=unit, noise=unit * self.noise
        )

    @property
    def coordinates(self) -> str:
        """Those of the span, where they are fewer."""
        needed = self.clusters + self.samples + 2 * self.width
        return "span" if needed < self.dim else "ambient"

    @property
    def radii(self) -> tuple[float, float]:
        """What the geometry says: √(d/k) for averaging, √(d/2) for one neuron a centre."""
        return float(np.sqrt(self.dim / self.clusters)), float(np.sqrt(self.dim / 2))


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train a network of each power from the same initial directions, and follow it."""
    found: dict[str, Any] = {}
    for power in POWERS:
        data, init = np.random.default_rng(seed).spawn(2)
        train = parameters.law.sample(
            parameters.samples,
            rng=data,
            coordinates=parameters.coordinates,
            reserve=2 * parameters.width,
        )
        test = train.fresh(parameters.test_samples, rng=data)
        net = BinaryNet.init(
            train,
            width=parameters.width,
            weight_scale=parameters.initial_norm * float(parameters.dim) ** -0.5,
            bias_scale=None,
            rng=init,
            activation=ReLUPower(power, normalized=True),
            train_second_layer=parameters.trained == "both",
        )
        steps, times = parameters.steps, parameters.times
        rate, shown = parameters.learning_rate, wanted()
        run = descend(net, train, learning_rate=rate, steps=steps, record=times, progress=shown)
        at = partial(_at, run, test, parameters.radius_samples)
        followed = over_time(range(1, len(run.log_times)), "distances and radii over time", at)
        found |= prefixed(f"p{power}", followed)
        found |= {f"p{power}_final_{key}": value[-1] for key, value in followed.items()}
        found[f"p{power}_cosines"] = _strongest(run.net, train)
    proved = found["p1_final_radius_lower"] >= found["p1_final_radius"] * (1 - EXACT)
    found["p1_exact_radius"] = found["p1_final_radius"] if proved else np.nan
    found["p3_nearer"] = found["p3_final_decoupled_upper"] / found["p3_final_averaging_lower"]
    return found


def _at(run: Trajectory, test: Sample, radius_samples: int, index: int) -> dict[str, float]:
    """Return the quantities at one recorded time."""
    net, sample = run.net_at(index), run.sample
    averaging, decoupled = distance_to_averaging(net, sample), distance_to_decoupled(net, sample)
    points = test.x[:radius_samples], test.y[:radius_samples]
    if averaging.upper < _NEARLY_PARALLEL:
        radii = exact_radii(net, *points, max_nodes=1000)
    else:
        radii = minimal_norm(net, *points, steps=100, starts=2)
    per_neuron = averaging_index_per_neuron(net, sample)
    sizes = np.where(np.isnan(per_neuron), 0, _strengths(net))
    imbalances = np.square(net.second_layer[0]) - np.square(net.norms)  # gradient flow keeps them
    return {
        "time": float(run.times[index]),
        "loss": float(run.loss[index]),
        "averaging_lower": averaging.lower,
        "averaging_upper": averaging.upper,
        "decoupled_lower": decoupled.lower,
        "decoupled_upper": decoupled.upper,
        "index": float(np.nan_to_num(per_neuron) @ sizes / sizes.sum()),
        "accuracy": clean_accuracy(net, test.x, test.y),
        "radius_lower": float(np.median(radii.lower)) * np.sqrt(sample.law.dim),
        "radius": float(np.median(radii.upper)) * np.sqrt(sample.law.dim),
        "imbalance": float(np.abs(imbalances).max() / np.square(net.norms).max()),
    }


def _strengths(net: TwoLayerNet) -> FloatArray:
    """Return the norm of each weight times its entry in the second layer."""
    return np.abs(net.second_layer[0]) * net.norms


def _strongest(net: TwoLayerNet, sample: Sample) -> FloatArray:
    """Return the cosines of the centres and the strongest neurons, as many as there are centres.

    Those of each side are ordered by the centre they are nearest to.
    """
    cosines, strength = alignment(net, sample.centers), _strengths(net)
    chosen: list[int] = []
    for sign in (1, -1):
        own = np.flatnonzero(net.neuron_signs == sign)
        count = int((sample.law.signs == sign).sum())
        strongest = own[np.argsort(-strength[own], kind="stable")][:count]
        order = np.argsort(cosines[:, strongest].argmax(axis=0), kind="stable")
        chosen.extend(strongest[order])
    return cosines[:, chosen]


def expects(parameters: Parameters) -> list[Expectation]:
    r"""Return the conjecture as rules: power 1 averages, power 3 learns the centres one by one.

    For power 2 only reports: on the span of its centres, all directions are equally good for
    :math:`\sum_j \langle\mu_j, w\rangle^2`, so theory does not say what a neuron learns. A network
    of one neuron a centre is as far from averaging as two points say: at a centre it is 1 and
    :math:`C f_{FA}` is C, at the average of q centres it is :math:`q^{1-p/2}` and :math:`C\sqrt q`.
    """
    averaged, decoupled = parameters.radii
    q = max(len(parameters.law.positive_clusters), len(parameters.law.negative_clusters))
    far = 1 - (1 + q**-0.5) / (1 + q**0.5)
    nearer = "distance to one neuron a centre (at most) over that to averaging (at least)"
    exact = f"exact median radius, theory {averaged:.4g}"
    attacked = f"median radius by attack (an upper bound), theory {decoupled:.4g}"
    no_rule = [key for key in _SERIES if key not in ("accuracy", "loss", "radius_lower")]
    rows = [
        (1, at_most("distance to averaging, at most", "final_averaging_upper", 0.1, "→ 0")),
        (3, at_least("distance to averaging, at least", "final_averaging_lower", far / 2)),
        (3, at_most(nearer, "nearer", 1)),
        (1, at_least("averaging index", "final_index", 0.9, "1")),
        (3, at_most("averaging index", "final_index", 0.1, "0")),
        (1, within(0.05, exact, "exact_radius", averaged)),
        (3, within(0.05, attacked, "final_radius", decoupled)),
        *((power, at_least("clean accuracy", "final_accuracy", 1)) for power in POWERS),
        *((2, reported(_SERIES[key], f"final_{key}")) for key in no_rule),
    ]
    return [row.of(f"p = {power}", f"p{power}") for power, row in rows]


def table(_: Parameters, results: Results) -> Table:
    """Return every quantity at every recorded time."""
    names = ("time", *_SERIES)
    groups = {(power,): [results[f"p{power}_{name}"] for name in names] for power in POWERS}
    return Table.of_groups(("seed", "power", *names), groups, axes=())


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return distances, index and radius over log-time, and the cosines of the first seed."""
    marks = [
        Mark(f"{formula} = {radius:.3g}", radius, "y")
        for formula, radius in zip(("√(d/k)", "√(d/2)"), parameters.radii, strict=True)
    ]

    def distances(name: str, title: str) -> Series:
        bounds = {f"{name}_lower": "at least", f"{name}_upper": "at most"}
        return Series(title, bounds, scale="log", y="relative to the network")

    curves = through_training(
        dict(results) | _informative(results),
        networks={
            f"p{power}": (f"p = {power}", role)
            for power, role in zip(POWERS, ("coarse", "third", "fine"), strict=True)
        },
        times={f"p{power}": results[f"p{power}_time"] for power in POWERS},
        series=[
            distances("averaging", "distance to averaging: C·f_FA"),
            distances("decoupled", "distance to one neuron a centre: C·F_p"),
            Series("averaging index", {"index": ""}),
            Series(
                "median radius",
                {"radius_exact": "exact", "radius": "at most, by attack"},
                marks=marks,
            ),
        ],
        x="ηt",
        x_scale="log",
    )
    layers = "both layers trained" if parameters.trained == "both" else "second layer fixed"
    matrices = cosine_maps(
        "Cosines of centres and neurons",
        columns="neuron",
        panels=[
            Matrix.over_seeds(
                f"p = {power}: averaging index {results[f'p{power}_final_index'].mean():.2f}",
                results[f"p{power}_cosines"][:1, None],
            )
            for power in POWERS
        ],
        note=f"The strongest neurons of each side, first seed; k = {parameters.clusters}, "
        f"d = {parameters.dim:,}, n = {parameters.samples}, σ = {parameters.noise:g}, "
        f"{parameters.width} + {parameters.width} neurons, {layers}.",
    )
    return [curves, matrices]


def _informative(results: Results) -> dict[str, FloatArray]:
    """Return the upper bounds that are below 1, the trivial one, and radii that end up exact."""
    shown = {}
    for power in POWERS:
        for name in ("averaging_upper", "decoupled_upper"):
            bound = results[f"p{power}_{name}"]
            shown[f"p{power}_{name}"] = np.where((bound < 1).all(axis=0), bound, np.nan)
        low, high = results[f"p{power}_radius_lower"], results[f"p{power}_radius"]
        exact = (low == high).all(axis=0)
        shown[f"p{power}_radius_exact"] = np.where(exact & exact[-1], high, np.nan)
    return shown


_SMALL = Parameters(clusters=4, dim=400, samples=80, width=10)

EXPERIMENT = Experiment.of_module(
    __name__,
    id="min-vidal",
    calibrated=True,
    title="Both layers trained, polynomial activations: the conjecture of Min and Vidal",
    paper="Theorem 4.6",
    parameters=Parameters(),
    quick=replace(_SMALL, steps=2000, times=7, test_samples=200, radius_samples=20),
    seeds=3,
    quick_seeds=1,
)

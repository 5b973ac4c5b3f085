"""How fast the o(1) of the theorems vanishes: with k, with d at fixed n, with n at fixed d."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.multicluster import MultiCluster
from featavg.drawing.views import DASHES, Curves, Line, Panel, View
from featavg.lab.expectations import Expectation, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.tables import Measurements, Results, Table
from featavg.networks.binary import BinaryNet
from featavg.progress import counted, wanted
from featavg.training.fast_forward import fast_forward
from featavg.training.trajectory import Trajectory

_QUANTITIES = {
    "ratio": "own λ: largest / smallest - 1",
    "opposite": "opposite |λ| / own λ",
    "distance": "distance to f_FA / λ (Theorem 4.6)",
}
_SWEEPS = {"clusters": "k", "dim": "d", "samples": "n"}


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """The middle of the three sweeps; each varies one of clusters, dim and samples."""

    clusters: int = parameter(4, "k, where it is not varied", least=2)
    dim: int = parameter(10**8, "d, where it is not varied")
    samples: int = parameter(400, "n, where it is not varied")
    horizon: float = parameter(100.0, "eta·t")
    tolerance: float = parameter(0.02, "tolerance of fast_forward")
    points: int = parameter(6, "values in each sweep", least=2)

    def values(self, sweep: str) -> list[int]:
        """Return the values of what is varied, evenly spaced on a logarithmic axis."""
        middle = int(getattr(self, sweep))
        low, high = {
            "clusters": (2, 3 * middle),
            "dim": (10 * (self.samples + 10 * self.clusters), max(middle, 10**6)),
            "samples": (middle / 4, 4 * middle),
        }[sweep]
        return sorted({round(v) for v in np.geomspace(low, high, self.points)})


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train at every value of every sweep."""
    found: dict[str, FloatArray] = {}
    for sweep in _SWEEPS:
        values = parameters.values(sweep)
        counter = counted(len(values), f"values of {sweep}", enabled=wanted())
        rows = [_train(replace(parameters, **{sweep: values[i]}), seed) for i in counter]
        found[f"{sweep}_values"] = np.array(values, dtype=np.float64)
        for name in _QUANTITIES:
            series = np.array([row[name] for row in rows])
            found[f"{sweep}_{name}"] = series
            found[f"{sweep}_{name}_slope"] = np.polyfit(np.log(values), np.log(series), 1)[0]
    return found


def _train(parameters: Parameters, seed: int) -> dict[str, float]:
    """Train one network at the theorem's learning rate and initialisation."""
    k, d = parameters.clusters, parameters.dim
    rng = np.random.default_rng([seed, k, d, parameters.samples])
    law = MultiCluster(clusters=k, dim=d)
    train = law.sample(parameters.samples, rng=rng, coordinates="span", reserve=2 * k)
    rate = float(d) ** -2
    scale = np.sqrt(rate * float(k) ** -5)
    net = BinaryNet.init(train, width=k, weight_scale=scale, bias_scale=scale, rng=rng)
    steps, tolerance = parameters.horizon / rate, parameters.tolerance
    run = fast_forward(net, train, learning_rate=rate, steps=steps, tolerance=tolerance, record=2)
    return _deviations(run)


def _deviations(run: Trajectory) -> dict[str, float]:
    r"""Return how far a trained network is from the averaging one.

    The distance is an upper bound of that of Theorem 4.6: on the sphere of radius
    :math:`\sqrt d`, with :math:`\sigma_s` the sum of the centres of a side,
    :math:`|f - C f_{FA}| \le \frac1m \sum_r (\|w_r - C\sigma_s\|\sqrt d + |b_r|)`, at the C that
    fits best.
    """
    sample, net = run.sample, run.net
    law = sample.law
    own = net.neuron_signs[:, None] == law.signs[None, :]
    coefficients = run.feature_coefficients_at(-1)
    mine = coefficients[own]
    sums = (own @ sample.centers).astype(np.float64)
    C = float((net.weights * sums).sum() / np.square(sums).sum())
    rest = np.linalg.norm(net.weights - C * sums, axis=1) * np.sqrt(law.dim) + np.abs(net.biases)
    return {
        "ratio": float(mine.max() / mine.min() - 1),
        "opposite": float(np.abs(coefficients[~own]).max() / mine.mean()),
        "distance": float(2 * rest.mean() / mine.mean()),
    }


def expects(_: Parameters) -> list[Expectation]:
    """Return the slopes; the paper says only that the quantities vanish with k."""
    rows = [
        reported(f"slope in {symbol} of {text}", f"{sweep}_{name}_slope", "none given")
        for sweep, symbol in _SWEEPS.items()
        for name, text in _QUANTITIES.items()
    ]
    # sizes of clusters and the noise average out with n, inner products of noise with d: by -1/2
    falling = ("samples_ratio_slope", "samples_distance_slope", "dim_opposite_slope")
    return [replace(r, high=-0.3) if r.quantity in falling else r for r in rows]


def table(_: Parameters, results: Results) -> Table:
    """Return every quantity at every value."""
    names = ("values", *_QUANTITIES)
    groups = {(sweep,): [results[f"{sweep}_{name}"] for name in names] for sweep in _SWEEPS}
    return Table.of_groups(("seed", "varied", "value", *_QUANTITIES), groups, axes=())


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return each sweep on logarithmic axes with the fitted slopes."""
    fixed = {sweep: f"{_SWEEPS[sweep]} = {getattr(parameters, sweep):.3g}" for sweep in _SWEEPS}
    shown: list[View] = []
    for sweep, symbol in _SWEEPS.items():
        values, lines = results[f"{sweep}_values"], []
        for (name, text), dash in zip(_QUANTITIES.items(), DASHES, strict=False):
            label = f"{text}: slope {results[f'{sweep}_{name}_slope'].mean():+.2f}"
            measured = results[f"{sweep}_{name}"]
            lines.append(Line.over_seeds(label, values, measured, "coarse", dash))
        others = ", ".join(text for name, text in fixed.items() if name != sweep)
        panel = Panel(others, "", lines, y_scale="log")
        shown.append(Curves(f"Varied {symbol}", symbol, [panel], x_scale="log"))
    return shown


EXPERIMENT = Experiment.of_module(
    __name__,
    id="figure-scaling",
    calibrated=True,
    title="How fast the o(1) of the theorems vanishes",
    paper="Theorems 4.5 and 4.6",
    parameters=Parameters(),
    quick=replace(Parameters(), samples=300, points=4, tolerance=0.05),
    seeds=3,
    quick_seeds=1,
)

"""Phase diagrams: where in the space of hyper-parameters coarse labels teach averages.

The ablations of the paper look at three points on each of five lines. Here whole planes are swept;
the paper's points, and what theory says of the border where it says anything, are drawn on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from featavg.arrays import FloatArray
from featavg.experiments import averaging
from featavg.lab.expectations import Expectation, at_least, reported
from featavg.lab.parameters import parameter
from featavg.lab.sweeps import Design, SweepExperiment
from featavg.lab.tables import Measurements, Results, Table, tidy_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEASURED = ("index", "radius", "radius_over_theory", "radius_over_decoupled", "accuracy", "exact")
_TITLES = {
    "index": "averaging index: 1 averages, 0 is decoupled",
    "radius_over_theory": "median exact radius, over √(d/k) of exact averages",
}


@dataclass(frozen=True)
class Side:
    """One axis of a diagram.

    `names` are the parameters it sets, `low` and `high` its ends; `shown` turns a value of the
    parameter into what the axis shows (σ into α/σ). `ticks` are those of a logarithmic axis that
    spans too little for powers of ten.
    """

    names: str
    label: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    shown: Callable[[float], float] = float
    ticks: tuple[float, ...] = ()

    def values(self, count: int) -> list[float]:
        """Return at most `count` different values, evenly spaced."""
        space = np.geomspace if self.log else np.linspace
        values = [float(f"{value:.6g}") for value in space(self.low, self.high, count)]
        return sorted({round(value) for value in values}) if self.whole else values


@dataclass(frozen=True)
class Diagram:
    """What one diagram varies, and what is drawn on it.

    `paper` has the points of the paper's ablations, and `borders` the lines that theory draws by
    their labels, each a function of parameters and x that returns the coordinates of its points.
    """

    x: Side
    y: Side
    paper: tuple[tuple[float, float], ...] = ()
    borders: Mapping[str, Callable[[Any, FloatArray], tuple[FloatArray, FloatArray]]] = field(
        default_factory=dict
    )

    @property
    def varied(self) -> set[str]:
        """The names of all parameters that are varied."""
        return {name for side in (self.x, self.y) for name in side.names.split("+")}


@dataclass(frozen=True, kw_only=True)
class Parameters(averaging.Parameters):
    """The setting of Section 6.1, of which two hyper-parameters are varied."""

    diagram: ClassVar[Diagram]
    test_samples: int = parameter(20, "the number of fresh points that radii are the median of")
    max_nodes: int = parameter(200, "how long the exact radius of a point is searched for")
    precision: Literal["float64", "float32"] = parameter(
        "float32", "of points and weights; float32 trains twice as fast"
    )
    grid: int = parameter(40, "values of each of the two hyper-parameters", least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        varied = self.diagram.varied
        self.refuse_varied(varied, "this diagram varies, so it must not be given")


def design(parameters: Parameters, seeds: int) -> Design:
    """Return the grid."""
    diagram = parameters.diagram
    axes = {side.names: side.values(parameters.grid) for side in (diagram.x, diagram.y)}
    usual = averaging.EXPERIMENT.parameters
    fixed = {
        f.name: getattr(parameters, f.name)
        for f in fields(usual)
        if f.name not in diagram.varied and getattr(parameters, f.name) != getattr(usual, f.name)
    }
    return Design.of(averaging.EXPERIMENT, axes=axes, fixed=fixed, seeds=seeds)


def collect(parameters: Parameters, rows: Sequence[dict[str, Any]]) -> Measurements:
    """Arrange the runs of one seed as matrices; NaN where a run failed or is still missing."""
    x, y = (
        {value: i for i, value in enumerate(side.values(parameters.grid))}
        for side in (parameters.diagram.x, parameters.diagram.y)
    )
    found = {name: np.full((len(y), len(x)), np.nan) for name in _MEASURED}
    for row in rows:
        if row["status"] == "done":
            i, j = y[row[parameters.diagram.y.names]], x[row[parameters.diagram.x.names]]
            for name in _MEASURED:
                found[name][i, j] = row[name]
    done = np.isfinite(found["index"])
    averages = float((found["index"][done] >= 0.9).mean()) if done.any() else np.nan
    return {**found, "finished": float(done.mean()), "averages": averages}


def expects(_: Parameters) -> list[Expectation]:
    """Return what a diagram needs to be usable."""
    least = 0.5  # runs may fail where the learning rate is too large for anything
    return [
        at_least("share of the runs that are finished", "finished", least),
        reported("share of them that averages (index ≥ 0.9)", "averages"),
    ]


def conclude(_: Parameters, results: Results) -> str:
    """Say how much of the plane averages, and whether anything else was more robust."""
    index, radius = (np.nanmean(results[name], axis=0) for name in ("index", "radius_over_theory"))
    averaging_share = float((index >= 0.9).sum() / np.isfinite(index).sum())
    other = radius[index < 0.9]
    text = f"{averaging_share:.0%} of the plane averages (index at least 0.9)."
    if len(other):
        text += (
            f" Elsewhere the median radius is {np.nanmin(other):.2f} to {np.nanmax(other):.2f} "
            "times that of averaged features."
        )
    return text


def table(parameters: Parameters, results: Results) -> Table:
    """Return every cell of every seed."""
    diagram = parameters.diagram
    x, y = diagram.x.values(parameters.grid), diagram.y.values(parameters.grid)
    columns = (np.array(x), np.array(y)[:, None], *(results[name] for name in _MEASURED))
    rows = tidy_rows(*np.broadcast_arrays(*columns), axes=())
    return Table(("seed", diagram.x.names, diagram.y.names, *_MEASURED), rows)


def plot(parameters: Parameters, results: Results) -> Figure:
    """Draw the averaging index and the radius over the plane, means over seeds.

    No view: axes with scales and ticks of their own, contours, and the borders that theory draws.
    """
    from featavg.drawing.style import new_figure, style

    with style():
        figure, panels = new_figure(13, 5.4, columns=2)
        for panel, (name, title) in zip(panels, _TITLES.items(), strict=True):
            _map(figure, panel, parameters, results[name], title)
        seeds, finished = len(results["index"]), results["finished"].mean()
        unfinished = f", {finished:.0%} of the runs finished" if finished < 1 else ""
        x, y = (side.label for side in (parameters.diagram.x, parameters.diagram.y))
        runs = f"{seeds} seed{'s' * (seeds > 1)}{unfinished}"
        figure.suptitle(f"Where gradient descent averages: {x} and {y} ({runs})")
    return figure


def _map(
    figure: Figure, panel: Axes, parameters: Parameters, values: FloatArray, title: str
) -> None:
    from featavg.drawing.style import COARSE

    diagram = parameters.diagram
    x, y = (
        np.array([side.shown(value) for value in side.values(parameters.grid)])
        for side in (diagram.x, diagram.y)
    )
    known = np.isfinite(values)
    sums = np.where(known, values, 0).sum(axis=0)
    mean = np.where(known.any(axis=0), sums / np.maximum(known.sum(axis=0), 1), np.nan)
    is_index = title == _TITLES["index"]
    panel.set(
        title=title,
        xlabel=diagram.x.label,
        ylabel=diagram.y.label,
        xscale="log" if diagram.x.log else "linear",
        yscale="log" if diagram.y.log else "linear",
        facecolor="0.85",  # where there is nothing
    )
    highest = 1.0
    if not is_index and known.any():  # to the next quarter, and never less than what averages have
        highest = max(1.25, float(np.ceil(4 * np.nanmax(mean)) / 4))
    colours = "viridis" if is_index else "cividis"
    picture = panel.pcolormesh(
        x, y, mean, cmap=colours, shading="nearest", vmin=0, vmax=highest, rasterized=True
    )
    figure.colorbar(picture, ax=panel, shrink=0.9)
    if is_index and np.isfinite(mean).all() and np.ptp(mean) > 0.02:
        lines = panel.contour(x, y, mean, levels=[0.5, 0.9], colors="white", linewidths=1)
        panel.clabel(lines, fontsize=8)
    # pcolormesh centres its cells on a linear scale, which on a logarithmic one may reach below 0
    limits = {"xlim": (min(x), max(x)), "ylim": (min(y), max(y))}
    for (label, line), dashes in zip(diagram.borders.items(), ("--", ":"), strict=False):
        panel.plot(*line(parameters, x), dashes, color=COARSE, linewidth=1.8, label=label)
    if diagram.paper:
        x_paper, y_paper = zip(*diagram.paper, strict=True)
        (dots,) = panel.plot(x_paper, y_paper, "o", color="white", label="the paper's ablations")
        dots.set(markeredgecolor="black", clip_on=False)
    panel.set(**limits)
    for axis, side in ((panel.xaxis, diagram.x), (panel.yaxis, diagram.y)):
        if side.ticks:
            axis.set_ticks(side.ticks, labels=[f"{tick:g}" for tick in side.ticks])
            axis.set_ticks([], minor=True)
    if diagram.paper or diagram.borders:
        panel.legend(fontsize=8, loc="lower left", framealpha=0.9, frameon=True)


def _largest_curvature(parameters: Parameters) -> float:
    r"""Return the largest eigenvalue of K/n, with the means :math:`\alpha^2 d` and noise in it.

    The points of k orthogonal clusters have the covariance :math:`\alpha^2 \mu\mu^T/k` for each
    centre plus noise, whose sample part has the largest eigenvalue
    :math:`\sigma^2 (1 + \sqrt{d/n})^2`.
    """
    d, n, k = parameters.dim, parameters.samples, parameters.clusters
    ratio: float = parameters.signal**2 * d / k
    return ratio + parameters.noise**2 * (1 + np.sqrt(d / n)) ** 2


def _stable(parameters: Parameters, _: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the vertical line η = 2/L, with L the curvature of `stable_learning_rate`."""
    rate = 2 * 2 * parameters.width / _largest_curvature(parameters)
    return np.full(2, rate), np.array([1e-12, 1e12])


def _forgotten(parameters: Parameters, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return the scale at which the initial weight is as long as what it learns in T steps.

    The initial weight has the norm :math:`\sigma_w\sqrt d`. While the loss is still flat, a neuron
    moves by :math:`\frac{\eta T}{2m}\,\|\frac1n\sum_{i: y_i=+1} x_i\|`, which for p of k clusters
    is :math:`\frac{\eta T}{2m}\,\frac{\alpha\sqrt{p d}}{k}`.
    """
    positive = len(parameters.law.positive_clusters)
    learned = x * parameters.steps / (2 * parameters.width)
    return x, learned * parameters.signal * np.sqrt(positive) / parameters.clusters


def _every_cluster_seen(_: Parameters, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return n = k log k, from which on every cluster is likely to have a point."""
    return k, k * np.log(k)


_RATE = Side("learning_rate", "learning rate η", 1e-5, 10, log=True)
_INIT = Side(
    "weight_scale+bias_scale", "initial weights $\\sigma_w = \\sigma_b$", 1e-6, 0.1, log=True
)
_SNR, _SNR_TICKS = "signal-to-noise ratio α/σ", (0.2, 0.5, 1.0, 2.0, 5.0)
_NOISE = Side("noise", _SNR, 0.2, 5, log=True, shown=lambda s: 1 / s, ticks=_SNR_TICKS)
# Beyond this, centres are so alike that the index of a single one is no longer near 0, see
# `averaging_index_per_neuron`.
_COSINE = Side("cosine", "cosine between centres", 0, 0.3)
_CLUSTERS = Side("clusters", "clusters k", 4, 43, whole=True)
_WIDTH = Side("width", "neurons m on each side", 1, 40, whole=True)
_NUMBERS = (20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_SAMPLES = Side("samples", "training points n", 20, 1000, log=True, whole=True, ticks=_NUMBERS)


@dataclass(frozen=True, kw_only=True)
class LearningRateInit(Parameters):
    """Learning rate and initial weights."""

    diagram = Diagram(
        _RATE,
        _INIT,
        paper=((1e-2, 1e-5), (1e-3, 1e-5), (1e-4, 1e-5), (1e-3, 1e-3), (1e-3, 1e-4)),
        borders={
            "initial weight as long as what is learned": _forgotten,
            "η = 2/L, the edge of stability": _stable,
        },
    )


@dataclass(frozen=True, kw_only=True)
class SnrCosine(Parameters):
    """Signal-to-noise ratio and the cosine between centres."""

    diagram = Diagram(
        _NOISE, _COSINE, paper=((0.5, 0), (1, 0), (2, 0), (1, 1e-5), (1, 1e-3), (1, 0.09))
    )


@dataclass(frozen=True, kw_only=True)
class ClustersWidth(Parameters):
    """Clusters and neurons."""

    diagram = Diagram(_CLUSTERS, _WIDTH, paper=((10, 5),))


@dataclass(frozen=True, kw_only=True)
class ClustersSamples(Parameters):
    """Clusters and training points."""

    diagram = Diagram(
        _CLUSTERS,
        _SAMPLES,
        paper=((10, 1000),),
        borders={"n = k log k: every cluster is seen": _every_cluster_seen},
    )


@dataclass(frozen=True, kw_only=True)
class Imbalance(Parameters):
    """Positive among 20 clusters, and the signal-to-noise ratio."""

    clusters: int = parameter(20, "k, the number of clusters")
    width: int = parameter(10, "m, positive (and negative) neurons of the 2-class network")
    diagram = Diagram(_NOISE, Side("positive", "positive clusters of 20", 1, 19, whole=True))


def _phase(name: str, title: str, kind: type[Parameters], **quick: Any) -> SweepExperiment:
    return SweepExperiment.of_module(
        __name__,
        id=f"phase-{name}",
        title=title,
        paper="none, an extension of Figures 5 to 9",
        parameters=kind(),
        quick=replace(kind(), **{"grid": 20, "test_samples": 10, **quick}),
        seeds=3,
        quick_seeds=1,
    )


EXPERIMENTS = (
    _phase("learning-rate-init", "Phase diagram: η × initial weights", LearningRateInit),
    _phase("snr-cosine", "Phase diagram: noise × angle", SnrCosine),
    _phase("clusters-width", "Phase diagram: clusters × neurons", ClustersWidth),
    _phase("clusters-samples", "Phase diagram: clusters × points", ClustersSamples),
    _phase("imbalance", "Phase diagram: unequal sides × noise", Imbalance),
)

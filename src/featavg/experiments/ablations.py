"""Figures 5 to 9: when coarse labels teach averages, one hyper-parameter varied at a time.

What the paper concludes from its panels is put into numbers by one rule, which is Figure 2's: a
network averages where its averaging index is at least 0.9. Where the paper calls something
necessary, the index has to be below 0.9 without it. At two values our runs contradict that; they
are listed as contested, and their rows report what the paper says beside what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray
from featavg.drawing.common import cosine_maps
from featavg.drawing.views import Matrix, View
from featavg.errors import InputError
from featavg.lab.expectations import Expectation, at_least, at_most, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import parameter
from featavg.lab.setting import MatrixSetting
from featavg.lab.tables import Measurements, Results, Table, tidy_rows
from featavg.lab.variants import VariedSetting
from featavg.measures.alignment import averaging_index, clean_accuracy, equivalent_alignment
from featavg.progress import counted, wanted
from featavg.robustness import exact_radii

AVERAGES_FROM = 0.9
"""The averaging index from which a network counts as averaging, as in Figure 2."""

_NOWHERE = (np.inf, -np.inf)


@dataclass(frozen=True)
class Ablation:
    """What one figure varies, and what the paper concludes from it.

    Attributes
    ----------
    symbol : str
        What is varied, in the paper's symbols.
    sets : tuple of str
        The fields of the setting that are varied.
    averages, does_not : pair of float
        The values at which features are averaged and are not, according to the paper.
    contested : tuple of float
        Values in `does_not` at which our runs average nevertheless.
    gain : float
        The factor by which the radius may grow from the smallest value to the largest, where the
        paper says that it does not.
    dtype : str
        The precision of the points.
    """

    symbol: str
    sets: tuple[str, ...]
    averages: tuple[float, float]
    does_not: tuple[float, float] = _NOWHERE
    contested: tuple[float, ...] = ()
    gain: float | None = None
    dtype: str = "float64"

    def changes(self, value: float, signal: float) -> dict[str, Any]:
        """Return the fields of the setting at one value.

        The paper does not say which of alpha and sigma makes its signal-to-noise ratio; here the
        centres stay where they are and sigma = alpha / SNR.
        """
        if self.sets == ("noise",):
            return {"noise": signal / checks.scale(self.symbol, value)}
        if self.sets == ("samples",) and value.is_integer():
            return {"samples": int(value)}
        return dict.fromkeys(self.sets, value)

    def label(self, value: float) -> str:
        """Return the name of one panel."""
        return f"{self.symbol} = {_text(value)}"


@dataclass(frozen=True, kw_only=True)
class VariedMatrixSetting(VariedSetting, MatrixSetting):
    """The synthetic setting of the matrix of cosines, and its variations."""


@dataclass(frozen=True, kw_only=True)
class Parameters(VariedMatrixSetting):
    """The synthetic setting, and the values that one of its hyper-parameters takes in turn."""

    ablation: ClassVar[Ablation]

    test_samples: int = parameter(100, "the number of fresh points that radii are the median of")
    values: str = parameter("", "the values, with commas between them")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_varied(self.ablation.sets, "this experiment varies, so give values instead")
        object.__setattr__(self, "values", ", ".join(_text(v) for v in self.settings))

    @cached_property
    def settings(self) -> dict[float, VariedMatrixSetting]:
        """The setting at each of the values."""
        shared = {f.name: getattr(self, f.name) for f in fields(VariedMatrixSetting)}
        return {
            value: VariedMatrixSetting(**shared | self.ablation.changes(value, self.signal))
            for value in _parsed(self.values)
        }


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train the 2-class network at every value, from the same random streams."""
    values = list(parameters.settings)
    found: dict[str, Any] = {}
    matrices = []
    for i in counted(len(values), f"values of {parameters.ablation.symbol}", enabled=wanted()):
        matrix, numbers = _measure_one(parameters, values[i], seed)
        matrices.append(matrix)
        found |= {quantity(name, values[i]): number for name, number in numbers.items()}
    found["cosines"] = np.stack(matrices)
    first, last = (found[quantity("radius", v)] for v in (min(values), max(values)))
    found["radius_gain"] = last / first if first > 0 else np.inf
    return found


def _measure_one(
    parameters: Parameters, value: float, seed: int
) -> tuple[FloatArray, dict[str, float]]:
    """Return the matrix of cosines at one value, and the numbers drawn from the network."""
    setting = parameters.settings[value]
    train, test = setting.draw(seed, dtype=parameters.ablation.dtype)
    run = setting.train_coarse(train, seed, progress=wanted())
    matrix = equivalent_alignment(run.net, run.sample).astype(np.float64)
    own = setting.own_side
    radii = exact_radii(run.net, test.x, test.y)
    return matrix, {
        "index": averaging_index(run.net, run.sample),
        "radius": float(np.median(radii.upper)),
        "exact": float(radii.exact.mean()),
        "accuracy": clean_accuracy(run.net, test.x, test.y),
        "own_mean": float(matrix[own].mean()),
        "opposite_max": float(np.abs(matrix[~own]).max()),
        "loss": float(run.loss[-1]),
    }


def quantity(name: str, value: float) -> str:
    """Return the name of a measurement at one value, such as ``index_0.001``."""
    return f"{name}_{_text(value)}"


def expects(parameters: Parameters) -> list[Expectation]:
    """Return the paper's conclusions, by the rule that this file begins with.

    With another optimiser than gradient descent they are only reported.
    """
    ablation = parameters.ablation
    rows: list[Expectation] = []
    for value, setting in parameters.settings.items():
        if max(setting.side_sizes) > 1:  # with one centre a side there is nothing to average
            rows.append(_index_expectation(ablation, value))
        label = ablation.label(value)
        cosine, radius = setting.average_cosines[0], setting.predicted[0]
        rows += [
            reported(f"{label}: mean cosine, own", quantity("own_mean", value), f"{cosine:.3f}"),
            reported(f"{label}: median radius", quantity("radius", value), f"{radius:.1f}"),
        ]
    if ablation.gain is not None and len(parameters.settings) > 1:
        statement = f"radius at the largest {ablation.symbol} / at the smallest"
        rows.append(at_most(statement, "radius_gain", ablation.gain, "no gain"))
    if not parameters.trains_by_gradient_descent:
        rows = [reported(row.statement, row.quantity, row.paper) for row in rows]
    return rows


def _index_expectation(ablation: Ablation, value: float) -> Expectation:
    statement, name = f"{ablation.label(value)}: averaging index", quantity("index", value)
    if ablation.averages[0] <= value <= ablation.averages[1]:
        return at_least(statement, name, AVERAGES_FROM, "averages")
    if value in ablation.contested:
        return reported(f"{statement}, against the paper", name, "does not")
    if ablation.does_not[0] <= value <= ablation.does_not[1]:
        return at_most(statement, name, float(np.nextafter(AVERAGES_FROM, 0)), "does not")
    return reported(statement, name)


def table(parameters: Parameters, results: Results) -> Table:
    """Return every entry of every matrix; the other numbers are scalars."""
    values, numbers = list(parameters.settings), range(parameters.clusters)
    rows = tidy_rows(results["cosines"], axes=(values, numbers, numbers))
    return Table(("seed", "value", "center", "weight", "cosine"), rows)


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return the matrix of the first seed at every value: a mean over seeds would look averaged."""
    return [
        cosine_maps(
            f"Cosines of centres and weights for each {parameters.ablation.symbol}",
            columns="weight",
            panels=[
                Matrix.over_seeds(
                    f"{parameters.ablation.label(value)}: "
                    f"index {_spread(results[quantity('index', value)], 2)}, "
                    f"radius {_spread(results[quantity('radius', value)], 1)}",
                    results["cosines"][:1, i : i + 1],
                )
                for i, value in enumerate(parameters.settings)
            ],
            note="Matrices of the first seed; averaging index and median exact radius: "
            "mean ± standard deviation over seeds.",
        )
    ]


def _spread(numbers: FloatArray, digits: int) -> str:
    text = f"{numbers.mean():.{digits}f}"
    return text if len(numbers) == 1 else f"{text} ± {numbers.std(ddof=1):.{digits}f}"


def _text(value: float) -> str:
    return str(np.format_float_positional(value, trim="-"))


def _parsed(values: str) -> list[float]:
    """Return the numbers in a list with commas."""
    try:
        numbers = [float(text) for text in values.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not np.isfinite(numbers).all() or len(set(numbers)) < len(numbers):
        raise InputError(
            f"values must be different numbers with commas between them; got {values!r}."
        )
    return numbers


def _values(values: str, symbol: str) -> Any:
    return parameter(values, f"the values of {symbol}, with commas between them")


@dataclass(frozen=True, kw_only=True)
class Figure5Parameters(Parameters):
    """The number of training points is varied."""

    ablation = Ablation("n", ("samples",), averages=(0, np.inf), gain=1.05, dtype="float32")
    values: str = _values("1000, 10000, 50000", "n")


@dataclass(frozen=True, kw_only=True)
class Figure6Parameters(Parameters):
    """The learning rate is varied."""

    ablation = Ablation(
        "η", ("learning_rate",), averages=(0, 0.001), does_not=(0.01, np.inf), contested=(0.01,)
    )
    values: str = _values("0.01, 0.001, 0.0001", "eta")


@dataclass(frozen=True, kw_only=True)
class Figure7Parameters(Parameters):
    """The scale of initial weights and biases is varied."""

    ablation = Ablation(
        "σ_w = σ_b",
        ("weight_scale", "bias_scale"),
        averages=(0, 1e-5),
        does_not=(0.001, np.inf),
        contested=(0.001,),
    )
    values: str = _values("0.001, 0.0001, 0.00001", "sigma_w and sigma_b")


@dataclass(frozen=True, kw_only=True)
class Figure8Parameters(Parameters):
    """The signal-to-noise ratio is varied."""

    ablation = Ablation("SNR", ("noise",), averages=(0.5, 2))
    values: str = _values("0.5, 1, 2", "alpha / sigma")


@dataclass(frozen=True, kw_only=True)
class Figure9Parameters(Parameters):
    """The cosine between centres is varied."""

    ablation = Ablation("cos(μᵢ, μⱼ)", ("cosine",), averages=(0, 0.09))
    values: str = _values("0.00001, 0.001, 0.09", "the cosine between any two centres")


def _declare(figure: int, title: str, parameters: Parameters, **quick: Any) -> Experiment:
    return Experiment.of_module(
        __name__,
        id=f"figure{figure}",
        title=title,
        paper=f"Figure {figure}",
        parameters=parameters,
        quick=replace(parameters, dim=1536, test_samples=50, **quick),
        series="figures",
    )


EXPERIMENTS = (
    _declare(5, "More data does not end averaging", Figure5Parameters(), values="500, 1000, 2000"),
    _declare(6, "Averaging at larger and smaller learning rates", Figure6Parameters(), samples=500),
    _declare(
        7, "Averaging from larger and smaller initial weights", Figure7Parameters(), samples=500
    ),
    _declare(8, "Averaging in more and in less noise", Figure8Parameters(), samples=500),
    _declare(
        9, "Averaging of centres that are not quite orthogonal", Figure9Parameters(), samples=500
    ),
)
"""The five experiments, in the order of the paper."""

"""What an experiment is: a declaration that the runner can run, check, draw and describe."""

from __future__ import annotations

import hashlib
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from featavg.lab.sweeps.design import Design
    from featavg.plot.views import View

Measurements = Mapping[str, Any]
"""What one seed measured: a name and a number or array for each quantity."""

Results = Mapping[str, FloatArray]
"""The measurements of all seeds, stacked: the first axis of each array is the seed."""


def parameter(default: Any, description: str) -> Any:
    """Declare a parameter of an experiment; the description is what `--help` shows."""
    return field(default=default, metadata={"help": description})


def plain_type(kind: Any) -> tuple[type, tuple[str, ...] | None]:
    """Return the type of a parameter, int for `int | None`, and the options of a `Literal`."""
    if typing.get_origin(kind) is typing.Literal:
        return str, typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        (kind,) = (option for option in kind.__args__ if option is not types.NoneType)
    return kind, None


@dataclass(frozen=True)
class Expectation:
    """A statement that must hold in every seed for the experiment to count as reproduced.

    Attributes
    ----------
    statement : str
        What is measured, in words.
    quantity : str
        The name of the measurement, a number for each seed.
    low, high : float
        The range it must lie in.
    paper : str
        What the paper says of it.
    """

    statement: str
    quantity: str
    low: float = -np.inf
    high: float = np.inf
    paper: str = ""

    @property
    def rule(self) -> str:
        """The range, for a table."""
        if np.isinf(self.low) and np.isinf(self.high):
            return "reported"
        if np.isinf(self.low):
            return f"≤ {self.high:.3g}"
        if np.isinf(self.high):
            return f"≥ {self.low:.3g}"
        return f"{self.low:.3g} to {self.high:.3g}"

    def judge(self, results: Results) -> Outcome:
        """Return how the measurements compare."""
        values = np.asarray(results[self.quantity], dtype=np.float64)
        holds = bool(((values >= self.low) & (values <= self.high)).all())
        return Outcome(self, tuple(values.tolist()), holds)


@dataclass(frozen=True)
class Outcome:
    """An expectation and what was measured, one value for each seed."""

    expectation: Expectation
    values: tuple[float, ...]
    holds: bool

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """The standard deviation over seeds; NaN for a single one, or where one is not finite."""
        if len(self.values) < 2 or not np.isfinite(self.values).all():
            return float("nan")
        return float(np.std(self.values, ddof=1))

    def summary(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            "statement": self.expectation.statement,
            "quantity": self.expectation.quantity,
            "paper": self.expectation.paper,
            "rule": self.expectation.rule,
            "mean": self.mean,
            "std": self.std,
            "values": list(self.values),
            "holds": self.holds,
        }


@dataclass(frozen=True)
class Table:
    """A tidy table: one row for each observation."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Experiment:
    """The declaration of an experiment.

    Attributes
    ----------
    id : str
        Its name on the command line and its folder.
    title, paper : str
        What it shows, and which figure or table of the paper it is.
    parameters, quick : dataclass
        A frozen dataclass of parameters: at the paper's setting, and for a quick look.
    seeds, quick_seeds : int
        How many seeds are run by default.
    measure : callable
        ``measure(parameters, seed)`` returns the measurements of one seed.
    expects : callable
        ``expects(parameters)`` returns the expectations.
    table : callable
        ``table(parameters, results)`` returns what is saved as ``results.csv``.
    plot : callable, optional
        ``plot(parameters, results)`` returns the figure, which is drawn from `views` by default.
    conclude : callable, optional
        ``conclude(parameters, results)`` returns the result in words.
    views : callable, optional
        ``views(parameters, results)`` returns what there is to see, for the figure and the report.
    revision : int
        Raised when `measure` changes its meaning, so that old results are not taken for new ones.
    in_reproduce : bool
        Whether it is a figure of the paper that `featavg reproduce` runs.
    data : str, optional
        The image data set it reads; such an experiment also needs the extra ``vision``.
    data_fields : tuple of str
        The parameters that its data follow from: a sweep runs those that share them together.
    design : callable, optional
        ``design(parameters, seeds)`` returns a `featavg.lab.sweeps.Design`: then `measure` takes,
        in place of a seed, the rows that the sweep found for it.
    """

    id: str
    title: str
    paper: str
    parameters: Any
    quick: Any
    measure: Callable[[Any, Any], Measurements]
    expects: Callable[[Any], Sequence[Expectation]]
    table: Callable[[Any, Results], Table]
    plot: Callable[[Any, Results], Figure] | None = None
    conclude: Callable[[Any, Results], str] | None = None
    views: Callable[[Any, Results], Sequence[View]] | None = None
    seeds: int = 5
    quick_seeds: int = 2
    revision: int = 1
    in_reproduce: bool = True
    data: str | None = None
    data_fields: tuple[str, ...] = ()
    design: Callable[[Any, int], Design] | None = None

    def usual_seeds(self, quick: bool) -> int:
        """Return how many seeds are run where nobody says how many."""
        return self.quick_seeds if quick else self.seeds

    def describe(self, parameters: Any) -> dict[str, Any]:
        """Return what identifies a run: the experiment, its revision and its parameters."""
        return {
            "experiment": self.id,
            "revision": self.revision,
            "parameters": asdict(parameters),
        }

    def key(self, parameters: Any) -> str:
        """Return the name of the folder of a run: a hash of what identifies it."""
        return run_key(self.describe(parameters))


def run_key(description: Mapping[str, Any]) -> str:
    """Return the name of the folder of a run from what `Experiment.describe` says of it."""
    text = json.dumps(description, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

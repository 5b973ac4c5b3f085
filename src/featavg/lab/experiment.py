"""Experiments: declarations that the runner can run, check, draw and describe."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from featavg.array_files import Arrays
from featavg.arrays import FloatArray
from featavg.errors import InputError, shortened
from featavg.files import json_hash
from featavg.lab.expectations import Expectation
from featavg.lab.processes import local_workers, one_thread
from featavg.lab.run_folder import RunFolder
from featavg.lab.source import code_hash
from featavg.lab.tables import Measurements, Results, Table
from featavg.progress import ProgressReporter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from featavg.drawing.views import View

# A process takes about two seconds to start, so it should save more than that.
_WORTH_A_PROCESS = 4.0
_ID = re.compile("[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Measured:
    """The measurements of all seeds, the time they took, and how many seeds were saved before."""

    per_seed: list[Arrays]
    seconds: float
    reused: int = 0

    @property
    def results(self) -> dict[str, FloatArray]:
        """All seeds stacked."""
        return {name: np.stack([m[name] for m in self.per_seed]) for name in self.per_seed[0]}

    @property
    def scalars(self) -> Table:
        """All quantities that are single numbers, a row for each seed."""
        names = [name for name, value in self.per_seed[0].items() if np.ndim(value) == 0]
        rows = enumerate(self.per_seed)
        return Table(
            ("seed", *names), [(seed, *(float(m[name]) for name in names)) for seed, m in rows]
        )


def as_arrays(measurements: Measurements) -> Arrays:
    """Return measurements as arrays, as they are saved."""
    if not isinstance(measurements, Mapping) or not measurements:
        raise InputError(
            "measure must return a dict with a number or an array for each quantity; "
            f"got {shortened(measurements)}."
        )
    return {name: _as_array(name, value) for name, value in measurements.items()}


def _as_array(name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.array(None)
    if array.dtype.kind not in ("biufU" if array.ndim else "biuf"):
        raise InputError(
            f"the measurement {name!r} must be a number, or an array of numbers or texts; "
            f"got {shortened(value)}."
        )
    return array


@dataclass(frozen=True)
class Experiment:
    """The declaration of an experiment.

    Attributes
    ----------
    id : str
        Its name on the command line and of its folder: letters, digits, '-' and '_'.
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
        ``table(parameters, results)`` returns the table that is saved as ``results.csv``.
    plot : callable, optional
        ``plot(parameters, results)`` returns the figure, which is drawn from `views` by default.
    conclude : callable, optional
        ``conclude(parameters, results)`` returns the result in words.
    views : callable, optional
        ``views(parameters, results)`` returns the views for the figure and the report.
    series : {"figures", "beyond"}, optional
        What it belongs to: the figures of the paper, which `featavg reproduce` runs, or the results
        beyond the paper, which ``featavg reproduce --all`` runs as well.
    data : str, optional
        The data set it reads.
    extra : str, optional
        The extra of featavg that it needs, which ``featavg list`` shows.
    calibrated : bool
        Whether the limits of `expects` were found for `parameters` and `quick`; with others, what
        they limit is only reported.
    data_fields : tuple of str
        The parameters that its data follow from: a sweep runs those that share them together.

    See Also
    --------
    featavg.lab.sweeps.SweepExperiment : an experiment that is made of the runs of a sweep.
    """

    id: str
    title: str
    paper: str
    parameters: Any
    quick: Any
    measure: Callable[[Any, int], Measurements]
    expects: Callable[[Any], Sequence[Expectation]]
    table: Callable[[Any, Results], Table]
    plot: Callable[[Any, Results], Figure] | None = None
    conclude: Callable[[Any, Results], str] | None = None
    views: Callable[[Any, Results], Sequence[View]] | None = None
    seeds: int = 5
    quick_seeds: int = 2
    series: Literal["figures", "beyond"] | None = None
    data: str | None = None
    extra: str | None = None
    calibrated: bool = False
    data_fields: tuple[str, ...] = ()

    has_own_axes: ClassVar[bool] = False
    """Whether it is a sweep itself, and so cannot be swept over."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise InputError(
                "the id of an experiment must be of letters, digits, '-' and '_' because it names "
                f"a folder; got {shortened(self.id)}."
            )

    @classmethod
    def of_module(cls, name: str, **declared: Any) -> Self:
        """Return the experiment of a module: the functions in it that have the names of fields."""
        own = vars(sys.modules[name])
        names = [f.name for f in fields(cls) if f.init and callable(own.get(f.name))]
        return cls(**{name: own[name] for name in names} | declared)

    def usual_seeds(self, quick: bool) -> int:
        """Return the number of seeds to run by default."""
        return min(self.seeds, self.quick_seeds) if quick else self.seeds

    @property
    def source(self) -> str:
        """The hash of the code that measures, see `featavg.lab.source`."""
        return code_hash(self.measure, type(self.parameters))

    def expectations(self, parameters: Any) -> list[Expectation]:
        """Return the expectations, without the limits that these parameters are not meant for."""
        expected = _sequence("expects", self.expects(parameters), Expectation)
        if not self.calibrated or not self.changed(parameters):
            return expected
        return [replace(one, low=-np.inf, high=np.inf) for one in expected]

    def changed(self, parameters: Any) -> list[str]:
        """Return the names of the parameters that are neither the usual nor the quick ones."""
        usual = (self.parameters, self.quick)
        return min((_differing(parameters, preset) for preset in usual), key=len)

    def describe(self, parameters: Any) -> dict[str, Any]:
        """Return what identifies a run: the experiment and its parameters."""
        return {"experiment": self.id, "parameters": asdict(parameters)}

    def key(self, parameters: Any) -> str:
        """Return the name of the folder of a run: a hash of what identifies it."""
        return run_key(self.describe(parameters))

    def tidy(self, parameters: Any, results: Results) -> Table:
        """Return the table of all observations."""
        found = self.table(parameters, results)
        if not isinstance(found, Table):
            raise InputError(
                f"table must return a featavg.experiments.Table; got {shortened(found)}."
            )
        return found

    def shown(self, parameters: Any, results: Results) -> list[View]:
        """Return the views, an empty list if there are none."""
        from featavg.drawing.views import View

        if self.views is None:
            return []
        return _sequence("views", self.views(parameters, results), View)

    def figure(self, parameters: Any, results: Results) -> Figure:
        """Return the figure: its own, or its views as `featavg.drawing` draws them."""
        from featavg.drawing import draw

        if self.plot is not None:
            return self.plot(parameters, results)
        return draw.figure(self.shown(parameters, results))

    def measure_seeds(
        self,
        parameters: Any,
        seeds: int,
        folder: RunFolder,
        *,
        workers: int,
        fresh: bool,
        progress: bool,
    ) -> Measured:
        """Measure every seed that is not saved in the folder yet, or all if `fresh`; save them.

        The first one tells how long one takes: if that is worth it, the others are measured side by
        side.
        """
        expected = self.expectations(parameters)  # a mistake in them is told before any work
        saved = {} if fresh else _saved(folder, seeds)
        reused = len(saved)
        missing = [seed for seed in range(seeds) if seed not in saved]
        with ProgressReporter(self.id, seeds, enabled=progress) as reporter:
            reporter.advance(reused)
            for seed, measured, seconds in self._measured(parameters, missing, workers):
                for expectation in expected:
                    expectation.check(measured)  # at once, not after all seeds
                folder.save_json("parameters.json", self.describe(parameters))
                folder.save_seed(seed, measured, seconds)
                saved[seed] = measured, seconds
                reporter.advance()
        in_order = [saved[seed] for seed in range(seeds)]
        return Measured([found for found, _ in in_order], sum(s for _, s in in_order), reused)

    def _measured(
        self, parameters: Any, seeds: Sequence[int], workers: int
    ) -> Iterator[tuple[int, Arrays, float]]:
        """Yield seeds, their measurements and the seconds that these took, in any order."""
        left = list(seeds)
        while left:
            # experiments on images use several threads themselves
            threads = one_thread() if self.data is None else nullcontext()
            with threads:
                first = _measure(self.measure, parameters, left.pop(0))
            yield first
            count = min(workers, len(left))
            if self.data is None and count > 1 and first[2] > _WORTH_A_PROCESS:
                yield from self._side_by_side(parameters, left, count)
                return

    def _side_by_side(
        self, parameters: Any, seeds: Sequence[int], workers: int
    ) -> Iterator[tuple[int, Arrays, float]]:
        """Measure seeds in processes; yield each when it is finished."""
        with local_workers(workers) as executor:
            tasks = [
                executor.submit(_measure_alone, self.measure, parameters, seed) for seed in seeds
            ]
            try:
                for task in as_completed(tasks):
                    yield task.result()
            except BrokenProcessPool:
                raise InputError(
                    f"a process that measured {self.id} died, most likely because it ran out of "
                    "memory; finished seeds are saved, and one worker needs less of it."
                ) from None


def _sequence(name: str, found: Any, kind: Any) -> list[Any]:
    """Return what a function of an experiment has returned as a list, each item of a kind."""
    items = list(found) if isinstance(found, Iterable) else [found]
    for item in items:
        if not isinstance(item, kind):
            kinds = " | ".join(one.__name__ for one in get_args(kind) or (kind,))
            raise InputError(f"{name} must return a list of {kinds}; got {shortened(found)}.")
    return items


def _saved(folder: RunFolder, seeds: int) -> dict[int, tuple[Arrays, float]]:
    """Return the measurements that are saved, and the seconds that they took, by seed."""
    found = {seed: folder.load_seed(seed) for seed in range(seeds)}
    return {seed: saved for seed, saved in found.items() if saved is not None}


def _measure(
    measure: Callable[[Any, int], Measurements], parameters: Any, seed: int
) -> tuple[int, Arrays, float]:
    """Measure one seed; return it, the measurements, and the seconds that they took."""
    start = time.perf_counter()
    measured = as_arrays(measure(parameters, seed))
    return seed, measured, time.perf_counter() - start


def _measure_alone(
    measure: Callable[[Any, int], Measurements], parameters: Any, seed: int
) -> tuple[int, Arrays, float]:
    """Measure one seed in a process of its own, with one thread."""
    with one_thread():
        return _measure(measure, parameters, seed)


def _differing(parameters: Any, preset: Any) -> list[str]:
    names = [item.name for item in fields(preset)]
    return [name for name in names if getattr(parameters, name) != getattr(preset, name)]


def run_key(description: Mapping[str, Any]) -> str:
    """Return the name of the folder of a run from what `Experiment.describe` says of it."""
    return json_hash(description)[:12]

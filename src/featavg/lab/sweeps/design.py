"""The design of a sweep: a grid of the parameters of an experiment, or random draws."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from featavg import checks
from featavg.errors import InputError, shortened
from featavg.lab import registry
from featavg.lab.experiment import Experiment
from featavg.lab.sweeps.values import Kinds, Value, is_finite, plain

_LARGEST_FILE = 1_000_000
# A design may be a file from elsewhere: what it costs to check and to count is bounded.
_MOST_JOBS, _MOST_DRAWS, _MOST_VALUES, _MOST_PAIRS = 1_000_000, 100_000, 10_000, 10_000
_LARGEST_WHOLE = 2**53  # beyond, floats skip some
_encode = json.JSONEncoder(sort_keys=True).encode
_KEYS = {"experiment", "quick", "seeds", "draws", "fixed", "axes"}


@dataclass(frozen=True)
class Axis:
    """The values that one parameter (or several together) take in a sweep.

    Attributes
    ----------
    names : tuple of str
        The parameters that are set, all to the same value.
    values : tuple
        The values of a grid, or the values that random draws choose from.
    low, high : float, optional
        The ends of a range; without values, random draws are taken from it.
    log : bool
        Whether the range is even in the logarithm.
    whole : bool
        Whether the parameters are whole numbers.
    """

    names: tuple[str, ...]
    values: tuple[Value, ...] = ()
    low: float = math.nan
    high: float = math.nan
    log: bool = False
    whole: bool = False

    @classmethod
    def of(cls, names: str, given: Any) -> Axis:
        """Return an axis as a file, a call or the command line gives it.

        `names` has a + between parameters that are varied together. `given` is a list of values, or
        a mapping with ``from``, ``to`` and, for a grid, ``count``; ``scale`` is "linear" or "log".

        Examples
        --------
        >>> Axis.of("weight_scale+bias_scale", {"from": 1e-6, "to": 1e-4, "count": 3,
        ...                                     "scale": "log"})
        Axis(weight_scale+bias_scale: 1e-06, 1e-05, 0.0001)
        """
        parts = tuple(name.strip().replace("-", "_") for name in names.split("+"))
        if isinstance(given, Mapping):
            return cls._range(parts, dict(given))
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            given = [given]
        values = tuple(plain(value) for value in given)
        if not values or len(set(values)) < len(values):
            raise InputError(
                f"{names} must have different values, one at least; got {shortened(given)}."
            )
        return cls(parts, values)

    @classmethod
    def _range(cls, names: tuple[str, ...], given: dict[str, Any]) -> Axis:
        label = "+".join(names)
        unknown = set(given) - {"from", "to", "count", "scale"}
        if unknown or not {"from", "to"} <= set(given):
            raise InputError(
                f"{label} must be a list, or have from, to and possibly count and scale; "
                f"got {', '.join(map(repr, given))}."
            )
        log = checks.choice("scale", given.get("scale", "linear"), ("linear", "log")) == "log"
        low, high = (_number(label, given[key]) for key in ("from", "to"))
        if not low < high or (log and low <= 0):
            raise InputError(
                f"{label} must have from below to{' and above 0' if log else ''}; "
                f"got {low!r} and {high!r}."
            )
        if "count" not in given:
            return cls(names, (), low, high, log)
        count = checks.count("count", given["count"], minimum=2)
        _check_most("count", count, _MOST_VALUES)
        values = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
        # rounded to 0.0001, not 9.999999999999999e-05
        return cls(names, tuple(float(f"{value:.12g}") for value in values), low, high, log)

    def fitted(self, kinds: Kinds) -> Axis:
        """Return it with values of the types that its parameters have.

        A range of whole numbers has each number once, so it may have fewer than were asked for.
        """
        whole = any(kinds.is_whole(name) for name in self.names)
        values = self.values
        ends = (self.low, self.high)
        if whole and not math.isnan(self.low):  # it was given by its ends
            if not all(end.is_integer() and abs(end) <= _LARGEST_WHOLE for end in ends):
                raise InputError(
                    f"{self.label} must have whole numbers up to 2^53 as its ends; "
                    f"got {self.low!r} and {self.high!r}."
                )
            values = tuple(dict.fromkeys(round(float(value)) for value in values))
        return replace(self, values=tuple(self._fit(v, kinds) for v in values), whole=whole)

    def _fit(self, value: Value, kinds: Kinds) -> Value:
        fitted = [kinds.fit(name, value) for name in self.names]
        return next((v for v in fitted if isinstance(v, int)), fitted[0])

    @property
    def limits(self) -> tuple[Value, ...]:
        """All values, or the ends of a range that has none."""
        if self.values:
            return self.values
        return (int(self.low), int(self.high)) if self.whole else (self.low, self.high)

    def draw(self, rng: np.random.Generator) -> Value:
        """Return one random value."""
        if self.values:
            return self.values[int(rng.integers(len(self.values)))]
        if not self.log:
            if self.whole:
                return int(rng.integers(int(self.low), int(self.high), endpoint=True))
            return float(rng.uniform(self.low, self.high))
        margin = 0.5 if self.whole else 0.0  # so that the ends are as likely as the others
        low, high = np.log(self.low - margin), np.log(self.high + margin)
        drawn = float(np.exp(rng.uniform(low, high)))
        return min(max(round(drawn), int(self.low)), int(self.high)) if self.whole else drawn

    @property
    def label(self) -> str:
        """The names, with a + between them."""
        return "+".join(self.names)

    def __repr__(self) -> str:
        values = ", ".join(map(str, self.values)) or f"{self.low:g} to {self.high:g}"
        return f"Axis({self.label}: {values})"


@dataclass(frozen=True)
class Job:
    """One run of a sweep: its parameters, its seed, and a hash of both."""

    id: str
    varied: dict[str, Value]
    parameters: dict[str, Value]
    seed: int


@dataclass(frozen=True, kw_only=True)
class Design:
    """All runs of a sweep.

    Attributes
    ----------
    experiment : Experiment
        The experiment.
    axes : tuple of Axis
        The varied parameters: every combination, or, with `draws`, random ones.
    fixed : dict
        Other parameters that differ from their defaults.
    quick : bool
        Whether the defaults are those of ``--quick``.
    seeds : int
        Seeds 0, 1, ... of every combination.
    draws : int
        How many random combinations; 0 for a grid. They are the same every time, and one that is
        drawn twice is run once.

    Examples
    --------
    >>> from featavg.lab import registry
    >>> design = Design.of(registry.find("figure2-synthetic"), seeds=2,
    ...                    axes={"learning_rate": [1e-4, 1e-3], "samples": [100, 200, 400]})
    >>> len(design.jobs())
    12
    """

    experiment: Experiment
    axes: tuple[Axis, ...]
    fixed: dict[str, Value] = field(default_factory=dict)
    quick: bool = False
    seeds: int = 1
    draws: int = 0

    def __post_init__(self) -> None:
        _check_most("seeds", checks.count("seeds", self.seeds), _MOST_JOBS)
        _check_most("draws", checks.count("draws", self.draws, minimum=0), _MOST_DRAWS)
        if not isinstance(self.quick, bool):
            raise InputError(f"quick must be true or false; got {self.quick!r}.")
        if self.experiment.has_own_axes:
            raise InputError(f"{self.experiment.id} has axes of its own, so none must be given.")
        if not self.axes:
            raise InputError("axes must name the parameters that are varied; got none.")
        _check_most("values of all axes", sum(len(a.values) for a in self.axes), _MOST_VALUES)
        names = [name for axis in self.axes for name in axis.names] + list(self.fixed)
        kinds = Kinds(self.start)
        for name in names:
            kinds.check_name(name)
            if names.count(name) > 1:
                raise InputError(f"{name} must be set once only.")
        object.__setattr__(self, "axes", tuple(axis.fitted(kinds) for axis in self.axes))
        object.__setattr__(self, "fixed", kinds.fit_all(self.fixed))
        if not self.draws:
            for axis in self.axes:
                if not axis.values:
                    raise InputError(f"{axis.label} must have a count, because this is a grid.")
        _check_most("runs of a sweep", self.size, _MOST_JOBS)
        self._check_values()

    def _check_values(self) -> None:
        """Refuse values that are invalid in every run; combinations are left to the runs.

        A value that is invalid at the start may be valid with a value of another axis.
        """
        start = replace(self.start, **self.fixed)
        left = iter(range(_MOST_PAIRS))  # then the runs will tell
        for axis in self.axes:
            others = [other for other in self.axes if other is not axis]
            for value in axis.limits:
                own = dict.fromkeys(axis.names, value)
                try:
                    replace(start, **own)
                except InputError:
                    pairs = (own | dict.fromkeys(o.names, v) for o in others for v in o.limits)
                    tried = (pair for pair, _ in zip(pairs, left, strict=False))
                    if not any(_is_valid(start, pair) for pair in tried) and any(
                        True for _ in left
                    ):
                        raise

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        *,
        axes: Mapping[str, Any],
        fixed: Mapping[str, Value] | None = None,
        **settings: Any,
    ) -> Design:
        """Return a design with axes as `Axis.of` takes them, and `settings` as above."""
        fixed = {} if fixed is None else fixed
        for name, given in (("axes", axes), ("fixed", fixed)):
            if not isinstance(given, Mapping):
                raise InputError(f"{name} must be a table of parameters; got {given!r}.")
        parsed = tuple(Axis.of(names, given) for names, given in axes.items())
        return cls(experiment=experiment, axes=parsed, fixed=dict(fixed), **settings)

    @classmethod
    def from_file(cls, path: Path) -> Design:
        """Read a design from a TOML file with experiment, axes and possibly the other settings."""
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path} must be smaller than {_LARGEST_FILE / 1e6:g} MB.")
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # also a number of 5,000 digits
            reason = str(error).rstrip(".")
            raise InputError(f"{path} must be a TOML file; {reason}.") from None
        unknown = set(content) - _KEYS
        if unknown or not {"experiment", "axes"} <= set(content):
            raise InputError(
                f"{path} must have experiment and axes, and may have quick, seeds, draws and "
                f"fixed; got {', '.join(content) or 'nothing'}."
            )
        experiment = registry.find(content.pop("experiment"), folder=path.parent)
        return cls.of(experiment, **content)

    @property
    def start(self) -> Any:
        """The parameters that the sweep starts from."""
        return self.experiment.quick if self.quick else self.experiment.parameters

    @property
    def size(self) -> int:
        """The number of runs, counting those that are drawn twice."""
        return self.seeds * (self.draws or math.prod(len(axis.values) for axis in self.axes))

    def jobs(self) -> list[Job]:
        """Return all runs, those that share data next to each other."""
        jobs = [
            Job(hash_, varied, parameters, seed)
            for varied, parameters in self._combinations()
            for seed, hash_ in enumerate(self._ids(parameters))
        ]
        shared = self.experiment.data_fields
        start = self._defaults | self.fixed
        # a stable sort: within the same data the order stays
        return sorted(
            jobs,
            key=lambda job: (
                job.seed,
                *(str(job.parameters.get(name, start[name])) for name in shared),
            ),
        )

    def ids(self) -> Iterator[str]:
        """Return the hash of each run, in no particular order and without building the runs."""
        for _, parameters in self._combinations():
            yield from self._ids(parameters)

    def _combinations(self) -> Iterator[tuple[dict[str, Value], dict[str, Value]]]:
        """Return what is varied in each combination, and all parameters that differ."""
        for values in dict.fromkeys(self._drawn()) if self.draws else self._grid():
            varied = {axis.label: value for axis, value in zip(self.axes, values, strict=True)}
            parameters = dict(self.fixed)
            for axis, value in zip(self.axes, values, strict=True):
                parameters |= dict.fromkeys(axis.names, value)
            yield varied, parameters

    def _grid(self) -> Iterable[tuple[Value, ...]]:
        return itertools.product(*(axis.values for axis in self.axes))

    def _drawn(self) -> Iterator[tuple[Value, ...]]:
        for i in range(self.draws):
            rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(i,)))
            yield tuple(axis.draw(rng) for axis in self.axes)

    def _ids(self, parameters: dict[str, Value]) -> Iterator[str]:
        """Return the `json_hash` of experiment, parameters and seed for each seed."""
        about = {"experiment": self.experiment.id, "parameters": self._defaults | parameters}
        digest = hashlib.sha256(_encode(about)[:-1].encode())
        for seed in range(self.seeds):
            whole = digest.copy()
            whole.update(f', "seed": {seed}}}'.encode())
            yield whole.hexdigest()[:20]

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        return asdict(self.start)

    def describe(self) -> dict[str, Any]:
        """Return the design as plain data."""
        return {
            "experiment": registry.address(self.experiment),
            "quick": self.quick,
            "seeds": self.seeds,
            "draws": self.draws,
            "fixed": self.fixed,
            "axes": {
                axis.label: list(axis.values)
                or {"from": axis.low, "to": axis.high, "scale": "log" if axis.log else "linear"}
                for axis in self.axes
            },
        }


def _number(name: str, value: Any) -> float:
    if not is_finite(value):
        raise InputError(f"{name} must have numbers as its ends; got {value!r}.")
    return float(value)


def _check_most(name: str, number: int, most: int) -> None:
    if number > most:
        raise InputError(f"{name} must be at most {most:,}; got {shortened(number)}.")


def _is_valid(start: Any, changes: Mapping[str, Value]) -> bool:
    """Return whether parameters allow these changes together."""
    try:
        replace(start, **changes)
    except InputError:
        return False
    return True

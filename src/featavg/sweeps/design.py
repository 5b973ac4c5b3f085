"""What a sweep runs: a grid of, or random draws from, the parameters of an experiment."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from featavg import _checks
from featavg._checks import InputError
from featavg.experiments.base import Experiment

_LARGEST_FILE = 1_000_000
_MOST_JOBS, _MOST_VALUES = 10_000_000, 100_000
_KEYS = {"experiment", "quick", "seeds", "draws", "fixed", "axes"}

Value = float | int | str | bool


@dataclass(frozen=True)
class Axis:
    """The values that one parameter (or several together) take in a sweep.

    Attributes
    ----------
    names : tuple of str
        The parameters that are set, all to the same value.
    values : tuple
        What a grid goes through, and what random draws choose from.
    low, high : float, optional
        A range instead, from which random draws are taken.
    log : bool
        Whether the range is even in the logarithm.
    """

    names: tuple[str, ...]
    values: tuple[Value, ...] = ()
    low: float = math.nan
    high: float = math.nan
    log: bool = False

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
        values = tuple(_plain(value) for value in given)
        if not values or len(set(values)) < len(values):
            raise InputError(f"{names} must have different values, one at least; got {given!r}.")
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
        log = _checks.choice("scale", given.get("scale", "linear"), ("linear", "log")) == "log"
        low, high = (_number(label, given[key]) for key in ("from", "to"))
        if not low < high or (log and low <= 0):
            raise InputError(
                f"{label} must have from below to{' and above 0' if log else ''}; "
                f"got {low!r} and {high!r}."
            )
        if "count" not in given:
            return cls(names, (), low, high, log)
        count = _checks.count("count", given["count"], minimum=2)
        if count > _MOST_VALUES:
            raise InputError(f"count must be at most {_MOST_VALUES:,}; got {count:,}.")
        values = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
        # what a person would have written, not 9.999999999999999e-05
        return cls(names, tuple(float(f"{value:.12g}") for value in values))

    def draw(self, rng: np.random.Generator) -> Value:
        """Return one random value."""
        if self.values:
            return self.values[int(rng.integers(len(self.values)))]
        if self.log:
            return float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        return float(rng.uniform(self.low, self.high))

    @property
    def label(self) -> str:
        """The names, with a + between them."""
        return "+".join(self.names)

    def __repr__(self) -> str:
        values = ", ".join(map(str, self.values)) or f"{self.low:g} to {self.high:g}"
        return f"Axis({self.label}: {values})"


@dataclass(frozen=True)
class Job:
    """One run of a sweep: what it sets, its seed, and a hash of all that its result depends on."""

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
        What is run.
    axes : tuple of Axis
        What is varied: every combination, or, with `draws`, random ones.
    fixed : dict
        Other parameters that differ from their defaults.
    quick : bool
        Whether the defaults are those of ``--quick``.
    seeds : int
        Seeds 0, 1, ... of every combination.
    draws : int
        How many random combinations; 0 for a grid. They are the same every time.

    Examples
    --------
    >>> from featavg.experiments import REGISTRY
    >>> design = Design.of(REGISTRY["figure2-synthetic"], seeds=2,
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
        _checks.count("seeds", self.seeds)
        _checks.count("draws", self.draws, minimum=0)
        names = [name for axis in self.axes for name in axis.names] + list(self.fixed)
        known = {item.name for item in fields(self.start)}
        for name in names:
            _checks.choice("a parameter", name, sorted(known))
            if names.count(name) > 1:
                raise InputError(f"{name} must be set once only.")
        if not self.draws:
            for axis in self.axes:
                if not axis.values:
                    raise InputError(f"{axis.label} must have a count, because this is a grid.")
        replace(self.start, **self.fixed)  # refuses what cannot be
        if self.size > _MOST_JOBS:
            raise InputError(f"a sweep must have at most {_MOST_JOBS:,} runs; got {self.size:,}.")

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        *,
        axes: Mapping[str, Any],
        fixed: Mapping[str, Value] | None = None,
        quick: bool = False,
        seeds: int = 1,
        draws: int = 0,
    ) -> Design:
        """Return a design with axes as `Axis.of` takes them."""
        return cls(
            experiment=experiment,
            axes=tuple(Axis.of(names, given) for names, given in axes.items()),
            fixed={name: _plain(value) for name, value in (fixed or {}).items()},
            quick=quick,
            seeds=seeds,
            draws=draws,
        )

    @classmethod
    def from_file(cls, path: Path) -> Design:
        """Read a design from a TOML file with experiment, axes and possibly the other settings."""
        from featavg.experiments import REGISTRY

        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path} must be a sweep, and is too large for one.")
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} must be a TOML file; {error}.") from None
        unknown = set(content) - _KEYS
        if unknown or not {"experiment", "axes"} <= set(content):
            raise InputError(
                f"{path} must have experiment and axes, and may have quick, seeds, draws and "
                f"fixed; got {', '.join(content) or 'nothing'}."
            )
        name = content.pop("experiment")
        return cls.of(REGISTRY[_checks.choice("experiment", name, tuple(REGISTRY))], **content)

    @property
    def start(self) -> Any:
        """The parameters that the sweep starts from."""
        return self.experiment.quick if self.quick else self.experiment.parameters

    @property
    def size(self) -> int:
        """The number of runs."""
        return self.seeds * (self.draws or math.prod(len(axis.values) for axis in self.axes))

    def jobs(self) -> list[Job]:
        """Return all runs, those that share data next to each other."""
        jobs = [
            self._job(combination, seed)
            for combination in self._combinations()
            for seed in range(self.seeds)
        ]
        shared = self.experiment.data_fields
        start = asdict(self.start) | self.fixed
        # a stable sort: within the same data the order stays
        return sorted(
            jobs,
            key=lambda job: (
                job.seed,
                *(str(job.parameters.get(name, start[name])) for name in shared),
            ),
        )

    def _combinations(self) -> list[dict[str, Value]]:
        if self.draws:
            streams = np.random.default_rng(0).spawn(self.draws)
            return [{axis.label: axis.draw(rng) for axis in self.axes} for rng in streams]
        labels = [axis.label for axis in self.axes]
        grid = itertools.product(*(axis.values for axis in self.axes))
        return [dict(zip(labels, values, strict=True)) for values in grid]

    def _job(self, varied: dict[str, Value], seed: int) -> Job:
        parameters = dict(self.fixed)
        for axis in self.axes:
            parameters |= dict.fromkeys(axis.names, varied[axis.label])
        about = {
            "experiment": self.experiment.id,
            "revision": self.experiment.revision,
            "parameters": asdict(self.start) | parameters,
            "seed": seed,
        }
        text = json.dumps(about, sort_keys=True)
        return Job(hashlib.sha256(text.encode()).hexdigest()[:20], varied, parameters, seed)

    def describe(self) -> dict[str, Any]:
        """Return the design as plain data."""
        return {
            "experiment": self.experiment.id,
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
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} must have numbers as its ends; got {value!r}.")
    return float(value)


def _plain(value: Any) -> Value:
    """Return a value as Python's own type."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | bool | int | float):
        raise InputError(f"a value must be a number, a word, or true or false; got {value!r}.")
    return value

"""Runs as a report finds them: read from their folders, every field checked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from featavg.drawing.views import View, parsed
from featavg.errors import InputError
from featavg.files import DamagedError, is_file, read_json, subfolders
from featavg.lab import registry
from featavg.lab.experiment import Experiment, run_key
from featavg.manifest import damaged_files
from featavg.reading import LONGEST_TEXT, Scalar, at_most, read_as

# Far above what a run leaves behind.
_MOST_JSON, _MOST_VIEWS, _MOST_RUNS = 1_000_000, 4_000_000, 300
_EXPERIMENT, _KEY = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}"), re.compile(r"[0-9a-f]{12}")
_ESSENTIAL = ("parameters.json", "summary.json", "provenance.json")
_UNCHECKED = (
    "There is no manifest.json, so the run is not finished, or damage to its files would not be "
    "noticed."
)
_AGAINST = ", against the paper"
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """An expectation and what was measured."""

    statement: str
    paper: str
    rule: str
    mean: float | None
    std: float | None
    holds: bool

    @property
    def verdict(self) -> str:
        """Whether it holds, or is only reported."""
        if self.rule == "reported":
            return "reported"
        return "holds" if self.holds else "violated"

    @property
    def contested(self) -> bool:
        """Whether it contradicts the paper, as the statement of such a row says."""
        return self.statement.endswith(_AGAINST)

    @property
    def subject(self) -> str:
        """What was measured, without saying that it contradicts the paper."""
        return self.statement.removesuffix(_AGAINST)


@dataclass(frozen=True)
class Description:
    """The content of ``parameters.json``: what identifies a run."""

    experiment: str
    parameters: Mapping[str, Scalar] = at_most(100)


@dataclass(frozen=True)
class Summary(Description):
    """The content of ``summary.json``."""

    seeds: int = at_most(1000)
    expectations: Sequence[Row] = at_most(300)
    conclusion: str = ""


@dataclass(frozen=True)
class Provenance:
    """The content of ``provenance.json``, and of the file of a seed."""

    versions: Mapping[str, str]
    seconds: float | None


@dataclass(frozen=True)
class SavedSeed:
    """What is known of one seed; its versions where they are not those of the run."""

    seed: int
    seconds: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class SavedRun:
    """A finished run; `damaged` are the files that are not shown because of their checksums."""

    folder: Path
    summary: Summary
    provenance: Provenance
    seeds: tuple[SavedSeed, ...]
    views: tuple[View, ...]
    remark: str
    damaged: frozenset[str] = frozenset()

    @property
    def anchor(self) -> str:
        """The name of its place on a page."""
        return f"{self.summary.experiment}-{self.folder.name}"

    @property
    def title(self) -> str:
        """What it shows."""
        return self.summary.experiment if self.experiment is None else self.experiment.title

    @property
    def experiment(self) -> Experiment | None:
        """The experiment, if this version has it."""
        return registry.experiments().get(self.summary.experiment)

    @property
    def setting(self) -> str:
        """The paper's setting, quick, or empty for parameters of someone's own."""
        if self.experiment is not None:
            for name in _SETTINGS:
                usual = getattr(self.experiment, name)
                if self.experiment.describe(usual)["parameters"] == self.summary.parameters:
                    return _SETTINGS[name]
        return ""

    @property
    def command(self) -> str | None:
        """The command line that repeats the run, or None if no flags of this version do.

        Only parameters that differ from the defaults are named. A parameter that this version does
        not have, or of another type, has no flag; neither has a text with control characters.
        """
        experiment, quick = self.experiment, self.setting == QUICK
        if experiment is None:
            return None
        flags = ["--quick"] if quick else _flags(experiment, self.summary.parameters)
        if flags is None:
            return None
        if len(self.seeds) != experiment.usual_seeds(quick):
            flags += ["--seeds", str(len(self.seeds))]
        return shlex.join(["featavg", "run", experiment.id, *flags])

    @property
    def holds(self) -> bool:
        """Whether everything that was asked for holds."""
        return all(row.verdict != "violated" for row in self.summary.expectations)


PAPER, QUICK = "the paper's setting", "quick"
_SETTINGS = {"parameters": PAPER, "quick": QUICK}


@dataclass(frozen=True)
class Unreadable:
    """A folder that could not be shown, and why."""

    name: str
    reason: str


def find_runs(root: Path) -> tuple[list[SavedRun], list[Unreadable]]:
    """Return the runs in a folder, in the order of the paper, and what could not be read.

    Looks at ``root/<experiment>/<hash of the parameters>`` and nowhere else; follows no links.
    """
    if not root.is_dir():
        raise InputError(f"DIR must be a folder of runs; got {str(root)!r}.")
    runs: list[SavedRun] = []
    unreadable: list[Unreadable] = []
    for place in subfolders(root):
        for folder in [place] if place.is_symlink() else subfolders(place):
            if not _looks_like_a_run(folder):
                continue
            name = folder.relative_to(root).as_posix()
            try:
                if len(runs) == _MOST_RUNS:
                    raise DamagedError(f"a report shows at most {_MOST_RUNS} runs")
                runs.append(_read(folder, place))
            except InputError as error:
                unreadable.append(Unreadable(name[:LONGEST_TEXT], _reason(error)))
    order = list(registry.experiments())
    rank = {PAPER: 0, QUICK: 2}

    def place_on_page(run: SavedRun) -> tuple[Any, ...]:
        name = run.summary.experiment
        known = order.index(name) if name in order else len(order)
        return known, name, rank.get(run.setting, 1), run.folder.name

    return sorted(runs, key=place_on_page), unreadable


def read_run(folder: Path) -> SavedRun:
    """Return the run in a folder."""
    folder = folder.absolute()
    try:
        return _read(folder, folder.parent)
    except InputError as error:
        raise InputError(f"{folder} cannot be read: {_reason(error)}.") from None


def _looks_like_a_run(folder: Path) -> bool:
    """Return whether this is meant to be a run; other folders are ignored."""
    named = _KEY.fullmatch(folder.name) is not None
    return named or folder.is_symlink() or is_file(folder / "parameters.json")


def _reason(error: InputError) -> str:
    return str(error).rstrip(".")[:LONGEST_TEXT]


def _read(folder: Path, place: Path) -> SavedRun:
    if place.is_symlink() or folder.is_symlink():
        raise DamagedError("it is a link, which is not followed")
    if not _EXPERIMENT.fullmatch(place.name) or not _KEY.fullmatch(folder.name):
        raise DamagedError("its name is not that of a run")
    damaged = damaged_files(folder)
    for name in _ESSENTIAL:
        if damaged and name in damaged:
            raise DamagedError(f"{name} {damaged[name]}")
    about = _file(Description, folder / "parameters.json")
    if about.experiment != place.name or run_key(asdict(about)) != folder.name:
        raise DamagedError("its name does not belong to its parameters")
    if not is_file(folder / "summary.json"):
        raise DamagedError("it is not finished: summary.json is missing")
    summary = _file(Summary, folder / "summary.json")
    if Description(summary.experiment, summary.parameters) != about:
        raise DamagedError("summary.json is of other parameters than parameters.json")
    provenance = _file(Provenance, folder / "provenance.json")
    wrong = damaged or {}
    seeds = tuple(_seed(folder / "seeds", seed, provenance, wrong) for seed in range(summary.seeds))
    views, remark = _views(folder / "views.json", wrong)
    remarks = [_UNCHECKED] if damaged is None else [f"{n} {wrong[n]}." for n in sorted(wrong)]
    shown = " ".join([*remarks, remark]).strip()[:LONGEST_TEXT]
    return SavedRun(folder, summary, provenance, seeds, views, shown, frozenset(wrong))


def _file(kind: type[T], path: Path) -> T:
    return read_as(kind, path.name, read_json(path, most=_MOST_JSON))


def _views(path: Path, damaged: Mapping[str, str]) -> tuple[tuple[View, ...], str]:
    """Return the views; a run without readable ones is still shown, with a remark."""
    if path.name in damaged or not (path.exists() or path.is_symlink()):
        return (), ""
    try:
        return tuple(parsed(read_json(path, most=_MOST_VIEWS))), ""
    except InputError as error:
        return (), f"views.json cannot be shown: {_reason(error)}."


def _seed(folder: Path, seed: int, run: Provenance, damaged: Mapping[str, str]) -> SavedSeed:
    if folder.is_symlink():
        return SavedSeed(seed, remark="seeds is a link, which is not followed")
    if not folder.is_dir():  # a sweep keeps no file for a seed
        return SavedSeed(seed)
    if reason := damaged.get(f"seeds/{seed}.json"):
        return SavedSeed(seed, remark=f"{seed}.json {reason}")
    try:
        own = _file(Provenance, folder / f"{seed}.json")
    except InputError as error:
        return SavedSeed(seed, remark=_reason(error))
    return SavedSeed(seed, own.seconds, {} if own.versions == run.versions else own.versions)


def _flags(experiment: Experiment, parameters: Mapping[str, Scalar]) -> list[str] | None:
    usual = asdict(experiment.parameters)
    if set(parameters) != set(usual):
        return None
    flags = []
    for name, value in parameters.items():
        default = usual[name]
        if value == default and type(value) is type(default):
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool) and isinstance(default, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif _has_a_flag(value, default):
            flags.append(f"--{flag}={value}")  # with =, so that -1 is not taken for a flag
        else:
            return None
    return flags


def _has_a_flag(value: Any, default: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, str):
        return value.isprintable() and isinstance(default, str | None)
    return not isinstance(default, str)

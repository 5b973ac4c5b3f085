"""Runs as a report finds them: read from their folders, every field checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from featavg.errors import InputError
from featavg.files import DamagedError, is_file, read_json, subfolders
from featavg.lab import registry
from featavg.lab.experiment import run_key
from featavg.plot.read_views import parsed
from featavg.plot.views import View

# Far above what a run leaves behind.
_MOST_JSON, _MOST_VIEWS, _LONGEST = 1_000_000, 4_000_000, 2000
_MOST_ROWS, _MOST_PARAMETERS, _MOST_SEEDS, _MOST_RUNS = 300, 100, 1000, 300
_EXPERIMENT, _KEY = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}"), re.compile(r"[0-9a-f]{12}")

FILES = (
    "figure.svg",
    "figure.png",
    "results.csv",
    "scalars.csv",
    "summary.json",
    "parameters.json",
)
"""What a page links to, where it is there."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Row:
    """An expectation and what was measured."""

    statement: str
    quantity: str
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


@dataclass(frozen=True)
class SavedSeed:
    """What is known of one seed; its versions where they are not those of the run."""

    seed: int
    seconds: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class SavedRun:
    """A finished run."""

    folder: Path
    experiment: str
    key: str
    parameters: Mapping[str, Scalar]
    rows: tuple[Row, ...]
    conclusion: str
    seeds: tuple[SavedSeed, ...]
    seconds: float
    versions: Mapping[str, str]
    views: tuple[View, ...]
    files: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether everything that was asked for holds."""
        return all(row.verdict != "violated" for row in self.rows)


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
        raise InputError(f"DIR must be a folder of runs; got {root}.")
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
                unreadable.append(Unreadable(name[:_LONGEST], str(error).rstrip(".")))
    order = {name: position for position, name in enumerate(registry.experiments())}
    runs.sort(key=lambda r: (order.get(r.experiment, len(order)), r.experiment, _rank(r), r.key))
    return runs, unreadable


def _looks_like_a_run(folder: Path) -> bool:
    """Return whether this is meant to be a run; other folders are ignored."""
    named = _KEY.fullmatch(folder.name) is not None
    return named or folder.is_symlink() or is_file(folder / "parameters.json")


def _rank(run: SavedRun) -> int:
    """Put the paper's setting first, the quick one last."""
    return {"the paper's setting": 0, "quick": 2}.get(setting_name(run), 1)


def setting_name(run: SavedRun) -> str:
    """Return "the paper's setting", "quick", or "" for parameters of someone's own."""
    experiment = registry.experiments().get(run.experiment)
    if experiment is None:
        return ""
    for name, parameters in (
        ("the paper's setting", experiment.parameters),
        ("quick", experiment.quick),
    ):
        if experiment.describe(parameters)["parameters"] == run.parameters:
            return name
    return ""


def _read(folder: Path, place: Path) -> SavedRun:
    for link in (place, folder):
        if link.is_symlink():
            raise DamagedError("it is a link, which is not followed")
    if not _EXPERIMENT.fullmatch(place.name) or not _KEY.fullmatch(folder.name):
        raise DamagedError("its name is not that of a run")
    about = _description(folder)
    if about["experiment"] != place.name or run_key(about) != folder.name:
        raise DamagedError("its name does not belong to its parameters")
    if not is_file(folder / "summary.json"):
        raise DamagedError("it is not finished: summary.json is missing")
    summary = _object(read_json(folder / "summary.json", most=_MOST_JSON), "summary.json")
    if any(summary.get(name) != value for name, value in about.items()):
        raise DamagedError("summary.json is of other parameters than parameters.json")
    provenance = read_json(folder / "provenance.json", most=_MOST_JSON)
    provenance = _object(provenance, "provenance.json")
    versions = _versions(provenance.get("versions"))
    seeds = _count(summary.get("seeds"), "seeds", most=_MOST_SEEDS)
    views, remarks = _views(folder)
    found = tuple(_seed(folder, seed, versions) for seed in range(seeds))
    return SavedRun(
        folder=folder,
        experiment=place.name,
        key=folder.name,
        parameters=about["parameters"],
        rows=tuple(_row(item) for item in _rows(summary.get("expectations"))),
        conclusion=_text(summary.get("conclusion", ""), "conclusion"),
        seeds=found,
        seconds=_number(provenance.get("seconds"), "seconds") or 0.0,
        versions=versions,
        views=views,
        files=tuple(name for name in FILES if is_file(folder / name)),
        remarks=remarks,
    )


def _description(folder: Path) -> dict[str, Any]:
    """Return what `Experiment.describe` wrote, and nothing else that may be there."""
    data = _object(read_json(folder / "parameters.json", most=_MOST_JSON), "parameters.json")
    return {
        "experiment": _text(data.get("experiment"), "experiment"),
        "parameters": _parameters(data.get("parameters")),
    }


def _views(folder: Path) -> tuple[tuple[View, ...], tuple[str, ...]]:
    """Return the views; a run without readable ones is still shown, with a remark."""
    if not (folder / "views.json").exists() and not (folder / "views.json").is_symlink():
        return (), ()
    try:
        return tuple(parsed(read_json(folder / "views.json", most=_MOST_VIEWS))), ()
    except InputError as error:
        return (), (f"views.json cannot be shown: {str(error).rstrip('.')}.",)


def _seed(folder: Path, seed: int, versions: Mapping[str, str]) -> SavedSeed:
    if (folder / "seeds").is_symlink():
        return SavedSeed(seed, remark="seeds is a link, which is not followed")
    if not (folder / "seeds").is_dir():  # a sweep keeps no file for a seed
        return SavedSeed(seed)
    try:
        about = read_json(folder / "seeds" / f"{seed}.json", most=_MOST_JSON)
        item = _object(about, "a seed")
        own = _versions(item.get("versions"))
        seconds = _number(item.get("seconds"), "seconds")
        return SavedSeed(seed, seconds, {} if own == versions else own)
    except InputError as error:
        return SavedSeed(seed, remark=str(error))


def _row(data: Any) -> Row:
    item = _object(data, "an expectation")
    holds = item.get("holds")
    if not isinstance(holds, bool):
        raise DamagedError("holds must be true or false")
    return Row(
        statement=_text(item.get("statement"), "statement"),
        quantity=_text(item.get("quantity"), "quantity"),
        paper=_text(item.get("paper"), "paper"),
        rule=_text(item.get("rule"), "rule"),
        mean=_number(item.get("mean"), "mean"),
        std=_number(item.get("std"), "std"),
        holds=holds,
    )


def _rows(data: Any) -> list[Any]:
    if not isinstance(data, list) or len(data) > _MOST_ROWS:
        raise DamagedError(f"expectations must be a list of at most {_MOST_ROWS}")
    return data


def _parameters(data: Any) -> dict[str, Scalar]:
    item = _object(data, "parameters")
    if len(item) > _MOST_PARAMETERS:
        raise DamagedError(f"there must be at most {_MOST_PARAMETERS} parameters")
    for name, value in item.items():
        _text(name, "the name of a parameter")
        if isinstance(value, str):
            _text(value, "a parameter")
        elif isinstance(value, int) and abs(value) >= 10**400:
            raise DamagedError(f"{name[:40]!r} is too large")
        elif not isinstance(value, int | float | None):
            raise DamagedError(f"{name[:40]!r} must be a number or a text")
    return item


def _versions(data: Any) -> dict[str, str]:
    item = _object(data, "versions")
    return {
        _text(name, "versions"): _text(value, "versions") for name, value in list(item.items())[:30]
    }


def _object(data: Any, name: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise DamagedError(f"{name} must hold an object")
    return data


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise DamagedError(f"{name} must be a text of at most {_LONGEST} characters")
    return value


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e308:
        raise DamagedError(f"{name} must be a number")
    return float(value) if math.isfinite(value) else None


def _count(value: Any, name: str, *, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise DamagedError(f"{name} must be a count of at most {most}")
    return value

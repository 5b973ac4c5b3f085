"""Two runs, or two folders of runs, side by side on one HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from featavg import __version__
from featavg.apps import html
from featavg.apps.report import page, wording
from featavg.apps.report.images import Image
from featavg.apps.report.saved import Row, SavedRun, Unreadable, find_runs, read_run
from featavg.drawing.views import ClaimRow, Claims, View, plain
from featavg.errors import InputError
from featavg.files import is_file, write_atomically

DEFAULT = Path("comparison.html")
"""Where a comparison is written unless told otherwise."""

_STANDARD_ERRORS = 2  # from which on a difference is clear


@dataclass(frozen=True)
class Compared:
    """A row of two runs; one of them may lack it."""

    statement: str
    paper: str
    one: Row | None
    other: Row | None
    seeds: tuple[int, int]

    @property
    def difference(self) -> float | None:
        """What was measured in the second run minus what was in the first."""
        means = [row.mean for row in (self.one, self.other) if row is not None]
        if len(means) < 2 or means[0] is None or means[1] is None:
            return None
        return means[1] - means[0]

    @property
    def is_clear(self) -> bool:
        """Whether the difference is larger than two standard errors of it, over seeds."""
        stds = [row.std for row in (self.one, self.other) if row is not None]
        if self.difference is None or None in stds or min(self.seeds) < 2:
            return False
        pairs = zip(stds, self.seeds, strict=True)
        error = math.sqrt(sum((std or 0.0) ** 2 / seeds for std, seeds in pairs))
        return abs(self.difference) > _STANDARD_ERRORS * error


@dataclass(frozen=True)
class Pair:
    """Two runs of one experiment."""

    one: SavedRun
    other: SavedRun

    @property
    def runs(self) -> tuple[SavedRun, SavedRun]:
        """Both runs."""
        return self.one, self.other

    @property
    def parameters(self) -> list[tuple[str, Any, Any]]:
        """The parameters that differ."""
        return _differing(self.one.summary.parameters, self.other.summary.parameters)

    @property
    def versions(self) -> list[tuple[str, Any, Any]]:
        """The versions that differ, of the code that measures ("source") and of packages."""
        return _differing(self.one.provenance.versions, self.other.provenance.versions)

    @property
    def rows(self) -> list[Compared]:
        """What was measured in both, in the order of the first run."""
        rows = [{row.statement: row for row in run.summary.expectations} for run in self.runs]
        seeds = (len(self.one.seeds), len(self.other.seeds))
        found = []
        for statement in dict.fromkeys([*rows[0], *rows[1]]):
            one, other = (side.get(statement) for side in rows)
            paper = next(row.paper for row in (one, other) if row is not None)
            found.append(Compared(statement, paper, one, other, seeds))
        return found

    @property
    def claims(self) -> list[tuple[ClaimRow, ClaimRow]]:
        """The claims whose verdicts differ."""
        one, other = (_claims(run) for run in self.runs)
        both = ((one[name], other[name]) for name in one if name in other)
        return [(a, b) for a, b in both if a.verdict != b.verdict]


def _claims(run: SavedRun) -> dict[str, ClaimRow]:
    views = (view for view in run.views if isinstance(view, Claims))
    return {claim.id: claim for view in views for claim in view.claims}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = dict.fromkeys([*one, *other])
    pairs = ((name, one.get(name, "–"), other.get(name, "–")) for name in names)
    return [(name, a, b) for name, a, b in pairs if a != b]


def pairs(one: Sequence[SavedRun], other: Sequence[SavedRun]) -> Iterator[Pair]:
    """Yield the runs of each experiment in pairs: those of equal parameters, then in order."""
    for experiment in dict.fromkeys(run.summary.experiment for run in one):
        own, others = (
            [run for run in runs if run.summary.experiment == experiment] for runs in (one, other)
        )
        equal = {run.folder.name for run in own} & {run.folder.name for run in others}
        by_name = {run.folder.name: run for run in others}
        yield from (Pair(run, by_name[run.folder.name]) for run in own if run.folder.name in equal)
        left = ([r for r in runs if r.folder.name not in equal] for runs in (own, others))
        yield from (Pair(a, b) for a, b in zip(*left, strict=False))


@dataclass(frozen=True)
class WrittenComparison:
    """Where a comparison is, how large, and what it shows."""

    path: Path
    size: int
    pairs: tuple[Pair, ...]
    unreadable: tuple[Unreadable, ...]


def write_comparison(one: Path, other: Path, out: Path | None = None) -> WrittenComparison:
    """Write a page that compares two runs, or two folders of runs.

    Paper: none, an extension.

    Parameters
    ----------
    one, other : path
        The folder of a run, or a folder of runs; what they hold is not trusted. Runs of the same
        experiment are compared: those of the same parameters, or else in their order.
    out : path, optional
        The file to write; ``comparison.html`` in the current folder by default.
    """
    sides = [_runs(path) for path in (one, other)]
    found = tuple(pairs(sides[0][0], sides[1][0]))
    if not found:
        names = [", ".join(dict.fromkeys(r.summary.experiment for r in runs)) for runs, _ in sides]
        raise InputError(
            "A and B must have runs of the same experiment; got "
            f"{names[0] or 'no runs'} and {names[1] or 'no runs'}."
        )
    path = DEFAULT if out is None else out
    if path.is_dir():
        raise InputError(f"out must be a file, not a folder; got {str(path)!r}.")
    unreadable = (*sides[0][1], *sides[1][1])
    alone = [
        _alone(runs, [pair.runs[side] for pair in found]) for side, (runs, _) in enumerate(sides)
    ]
    named = [(str(one), alone[0]), (str(other), alone[1])]
    content = _page(found, named, unreadable, path.parent).encode()
    write_atomically(path, content)
    return WrittenComparison(path, len(content), found, unreadable)


def _runs(path: Path) -> tuple[list[SavedRun], list[Unreadable]]:
    return ([read_run(path)], []) if is_file(path / "parameters.json") else find_runs(path)


def _alone(runs: Sequence[SavedRun], paired: Sequence[SavedRun]) -> list[str]:
    """Return the runs that are in no pair, by experiment and folder."""
    in_pairs = {run.folder for run in paired}
    left = [run for run in runs if run.folder not in in_pairs]
    return [f"{run.summary.experiment}/{run.folder.name}" for run in left]


def _page(
    found: Sequence[Pair],
    names: Sequence[tuple[str, list[str]]],
    unreadable: Sequence[Unreadable],
    beside: Path,
) -> str:
    def render(images: Mapping[Path, Image]) -> str:
        drawn: list[View] = []
        shown = [
            (
                pair,
                [page.item(r, images.get(r.folder), beside, drawn) for r in (pair.one, pair.other)],
            )
            for pair in found
        ]
        return html.render(
            page.__name__.rpartition(".")[0],
            "comparison.html",
            scripts=page.SCRIPTS,
            filters=wording.FILTERS,
            data=page.json_for_html(plain(drawn)),
            pairs=shown,
            names=names,
            unreadable=unreadable,
            version=__version__,
        )

    without_views = [run for pair in found for run in pair.runs if _are_all_claims(run.views)]
    return page.with_images(without_views, render)


def _are_all_claims(views: Sequence[View]) -> bool:
    """Return whether scripts draw none of these views, so that the saved figure is shown."""
    return all(isinstance(view, Claims) for view in views)

"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Column, Table

from featavg.datasets import WEIGHTS, Place, declared
from featavg.drawing.views import HOLDS, NOT_STATED, VIOLATED
from featavg.experiments.ledger import Entry
from featavg.lab.expectations import Outcome
from featavg.lab.experiment import Experiment
from featavg.lab.runner import Run

_CLOSE = (0, 1, 0, 0)


def _table(*columns: Column | str, **look: Any) -> Table:
    return Table(*columns, box=box.SIMPLE_HEAD, highlight=False, **look)


def _numbers(name: str) -> Column:
    return Column(name, justify="right", no_wrap=True)


def experiment_table(experiments: Sequence[Experiment]) -> Table:
    """Return the list of experiments; ``[vision]`` stands for the extra that one needs."""
    table = _table(Column("id", no_wrap=True), "paper", "what it shows", "needs")
    for experiment in experiments:
        needs = f"[{experiment.extra}]" if experiment.extra else ""
        table.add_row(experiment.id, experiment.paper, experiment.title, escape(needs))
    return table


_STATES = {
    "cached": "[green]ready[/green]",
    "found": "found, unchecked",
    "corrupt": "[bold red]corrupt[/bold red]",
    "absent": "not here",
}


def data_table(places: Sequence[Place]) -> Table:
    """Return the list of data sets and weights, their states and places."""
    others = ("what", "state", "where, or what to do")
    table = _table(Column("name", no_wrap=True), *(Column(o, overflow="fold") for o in others))
    for place in places:
        entry = WEIGHTS.get(place.name) or declared()[place.name]
        where = escape(str(place.path)) if place.path else f"comes from: {place.source}"
        if place.state in ("corrupt", "absent"):
            where += f"; featavg data get {place.name}"
        table.add_row(place.name, entry.summary, _STATES[place.state], where)
    return table


def outcome_table(runs: Sequence[Run], *, width: int) -> Table:
    """Return every expectation: the paper's number, ours, whether it holds; and the time.

    A table less than 96 characters wide leaves out the expected ranges.
    """
    wide = width >= 96
    columns = ("paper/theory", "ours ± std", *(["expected"] if wide else []), "holds", "time")
    table = _table(Column("", overflow="fold"), *map(_numbers, columns), padding=_CLOSE)
    for finished in runs:
        seeds = len(finished.outcomes[0].values)
        table.add_section()
        table.add_row(
            f"[bold]{finished.experiment.id}[/bold], {seeds} seed{'s' if seeds > 1 else ''}",
            *[""] * (len(columns) - 1),
            f"{finished.seconds:.1f} s",
        )
        for outcome in finished.outcomes:
            table.add_row(
                f"  {outcome.expectation.statement}",
                outcome.expectation.paper,
                measured(outcome),
                *([outcome.expectation.rule] if wide else []),
                _verdict(outcome),
            )
    return table


def _verdict(outcome: Outcome) -> str:
    """Return yes or no, or a dash where nothing is expected."""
    if outcome.expectation.rule == "reported":
        return "–"
    return "[green]yes[/green]" if outcome.holds else "[bold red]NO[/bold red]"


def measured(outcome: Outcome) -> str:
    """Return mean ± std, or the value alone of a single seed, with sensible digits."""
    digits = 1 if abs(outcome.mean) >= 10 else 3
    text = f"{outcome.mean:.{digits}f}"
    if not np.isnan(outcome.std):
        text += f" ± {outcome.std:.{digits}f}"
    return text.replace("-0.000", "0.000")


_BAR = 6
_COLOURS = {HOLDS: "green", VIOLATED: "red", NOT_STATED: "dim"}


def ledger_table(ledger: Sequence[Entry]) -> Table:
    """Return the claims ledger, grouped by section, with the slack of each as a bar."""
    table = _table(
        Column("claim", overflow="fold", ratio=1),
        *map(_numbers, ("measured", "limit")),
        Column("10^-6  slack  10^6", no_wrap=True, justify="center"),
        Column("result", no_wrap=True),
        padding=_CLOSE,
    )
    section = ""
    for entry in ledger:
        if entry.claim.section != section:
            section = entry.claim.section
            table.add_section()
            table.add_row(f"[bold]{section}[/bold]")
        mark = "†" if entry.claim.reading else ""
        text = f"[bold]{entry.claim.id}{mark}[/bold] {entry.claim.statement}"
        if entry.typical.note:
            text += f" [dim]({entry.typical.note})[/dim]"
        table.add_row(
            text,
            _number(entry.typical.measured),
            _number(entry.typical.bound),
            slack_bar(entry.typical.slack),
            _result(entry),
        )
    return table


def slack_bar(slack: float) -> str:
    """Return a bar from the middle: to the right where there is room, to the left where not.

    Examples
    --------
    >>> slack_bar(100.0), slack_bar(0.001)
    ('······│██····', '···███│······')
    """
    if np.isnan(slack):
        return " " * (2 * _BAR + 1)
    size = float(np.clip(np.log10(max(slack, 1e-300)), -_BAR, _BAR))
    cells = int(np.ceil(abs(size) - 1e-9))
    if slack >= 1:
        return "·" * _BAR + "│" + "█" * cells + "·" * (_BAR - cells)
    cells = max(cells, 1)
    return "·" * (_BAR - cells) + "█" * cells + "│" + "·" * _BAR


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value + 0.0:.3g}"


def _result(entry: Entry) -> str:
    seeds = len(entry.findings)
    text = entry.verdict if entry.verdict != NOT_STATED else "not stated"
    if 0 < entry.violations < seeds:
        text += f" in {entry.violations}/{seeds}"
    return f"[{_COLOURS[entry.verdict]}]{text}[/]"

"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.table import Table

from featavg.experiments.base import Experiment, Outcome
from featavg.experiments.runner import Run


def experiment_table(experiments: Sequence[Experiment]) -> Table:
    """Return the list of experiments."""
    table = Table(box=box.SIMPLE_HEAD, highlight=False)
    for column in ("id", "paper", "what it shows"):
        table.add_column(column, no_wrap=column == "id")
    for experiment in experiments:
        table.add_row(experiment.id, experiment.paper, experiment.title)
    return table


def outcome_table(runs: Sequence[Run], *, width: int) -> Table:
    """Return every expectation: the paper's number, ours, whether it holds; and the time.

    A table less than 96 characters wide leaves out what was asked for.
    """
    wide = width >= 96
    table = Table(box=box.SIMPLE_HEAD, highlight=False, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    columns = ("paper/theory", "ours ± std", *(["asked for"] if wide else []), "holds", "time")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
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
    """Return yes or no, or a dash for what is reported without being asked for."""
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

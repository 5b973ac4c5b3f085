"""The commands that run experiments: their flags, and how results are printed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from featavg.apps.cli.tables import outcome_table
from featavg.apps.cli.terminal import NOT_REPRODUCED, OK, Terminal
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import plain_types
from featavg.lab.run_folder import to_json
from featavg.lab.runner import Run
from featavg.lab.runner import run as run_experiment

CONTINUES = "; finished seeds are saved, and the same command (without --fresh) continues"


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the flags of every command that runs experiments."""
    parser.set_defaults(if_interrupted=CONTINUES)
    parser.add_argument("--quick", action="store_true", help="a smaller problem, fewer seeds")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where to write (default: runs)",
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what is saved")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_parameters(parser: argparse.ArgumentParser, experiment: Experiment) -> None:
    """Add the flags of an experiment, one for each of its parameters."""
    add_run_options(parser)
    own = parser.add_argument_group("parameters of this experiment")
    kinds = plain_types(type(experiment.parameters))
    for field in fields(experiment.parameters):
        usual, quick = (getattr(p, field.name) for p in (experiment.parameters, experiment.quick))
        values = [] if usual is None else [f"default {usual}"]
        values += [] if quick == usual else [f"{quick} with --quick"]
        shown = f" ({'; '.join(values)})" if values else ""
        kind, choices = kinds[field.name]
        form: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
        if kind is not bool:
            metavar = kind.__name__.upper() if choices is None else "|".join(choices)
            form = {"type": kind, "choices": choices, "metavar": metavar}
        own.add_argument(
            f"--{field.name.replace('_', '-')}",
            default=argparse.SUPPRESS,
            help=(field.metadata.get("help", "") + shown).replace("%", "%%"),
            **form,
        )


def chosen_parameters(experiment: Experiment, options: argparse.Namespace) -> Any:
    """Return the parameters that the flags give."""
    start = experiment.quick if options.quick else experiment.parameters
    given = {f.name: getattr(options, f.name) for f in fields(start) if hasattr(options, f.name)}
    return replace(start, **given)


def execute(experiment: Experiment, options: argparse.Namespace) -> Run:
    """Run an experiment with the parameters that the flags give."""
    seeds = experiment.usual_seeds(options.quick) if options.seeds is None else options.seeds
    return run_experiment(
        experiment,
        chosen_parameters(experiment, options),
        seeds=seeds,
        out=options.out,
        fresh=options.fresh,
        progress=True,
    )


def exit_code(runs: Sequence[Run]) -> int:
    """Return whether every expectation holds, as an exit code."""
    return OK if all(finished.holds for finished in runs) else NOT_REPRODUCED


def summary(finished: Run) -> dict[str, Any]:
    """Return a run as JSON shows it: its summary, its folder and its time."""
    return finished.summary() | {"folder": str(finished.folder), "seconds": finished.seconds}


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(to_json(value).decode(), end="")


def print_runs(runs: Sequence[Run], report: Path | None = None) -> None:
    """Print the table of all expectations, the figures, the conclusions and the verdict."""
    terminal = Terminal()
    terminal.print(outcome_table(runs, width=terminal.width))
    for finished in runs:
        terminal.print_plain(f"{finished.experiment.id}: {finished.folder / 'figure.png'}")
        if finished.conclusion:
            terminal.print(finished.conclusion, highlight=False)
    if report is not None:
        terminal.print_plain(f"report: {report}")
    reused = sum(finished.reused for finished in runs)
    if reused:
        were = "1 seed was" if reused == 1 else f"{reused} seeds were"
        terminal.print(f"{were} saved before; --fresh measures again.")
    rules = {outcome.expectation.rule for finished in runs for outcome in finished.outcomes}
    verdict = "Every expectation holds."
    if exit_code(runs) != OK:
        verdict = "Not every expectation holds."
    elif rules <= {"reported"}:
        verdict = "There are no expectations; the numbers are only reported."
    terminal.print(f"[bold]{verdict}[/bold]")

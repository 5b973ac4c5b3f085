"""`featavg list`, `run`, `theory` and `reproduce`: the commands on experiments."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from joblib import cpu_count

from featavg.apps.cli import tables
from featavg.apps.cli.terminal import (
    NOT_REPRODUCED,
    OK,
    Parser,
    Terminal,
    complain,
    print_json,
    whole_number,
)
from featavg.drawing.views import HOLDS, NOT_STATED, VIOLATED
from featavg.experiments import EXPERIMENTS, ledger
from featavg.files import to_json, write_atomically
from featavg.lab import registry
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import plain_types
from featavg.lab.runner import Run
from featavg.lab.runner import run as run_experiment

_CONTINUES = "; finished seeds are saved, and the same command (without --fresh) continues"


def add_parsers(commands: Any) -> None:
    """Add the commands; the flags of an experiment are added once it is known which one is run."""
    commands.add_parser("list", help="list the experiments").set_defaults(command=list_all)
    one = commands.add_parser(
        "run",
        help="run one experiment",
        description=(
            "Run one experiment. ID is one of those that 'featavg list' shows, or a Python file "
            "with an EXPERIMENT, or with several EXPERIMENTS, then FILE:ID. Each has flags of its "
            "own: featavg run ID --help."
        ),
        epilog=(
            "Examples: featavg run figure2-synthetic --quick; featavg run ./mine.py --seeds 2; "
            "featavg run ./mine.py --help."
        ),
    )
    one.add_argument("experiment", metavar="ID", help="the experiment: its id or its file")
    flags = one.add_argument("flags", nargs=argparse.REMAINDER, metavar="...", help="its flags")
    flags.required = False
    one.set_defaults(command=run, if_interrupted=_CONTINUES)
    claims = commands.add_parser(
        "theory",
        help="check every measurable statement of the paper",
        description=(
            "Train both networks at one scale and check every measurable statement of the paper: "
            "the bound, the measured value, and the factor between them. Saved like any "
            "experiment, as by 'featavg run ledger'."
        ),
        epilog=(
            "Examples: featavg theory; featavg theory --preset theorem --clusters 3. A statement "
            "marked † has no constant in the paper, or is garbled in print: results.csv says how "
            "it was read. Violated claims are a result, not an error: the exit code is 1 only if "
            "an identity fails."
        ),
    )
    _add_parameters(claims, ledger.EXPERIMENT)
    claims.set_defaults(command=theory)
    every = commands.add_parser(
        "reproduce",
        help="run every synthetic experiment and print a summary",
        description=(
            "Run every synthetic experiment of the paper, draw its figure, and compare with the "
            "paper; with --all also the results beyond it, which 'featavg list' marks as "
            "extensions."
        ),
    )
    _add_run_options(every)
    every.add_argument(
        "--all", action="store_true", help="also the results beyond it (20 minutes on two cores)"
    )
    every.set_defaults(command=reproduce)


def list_all(_: argparse.Namespace) -> int:
    """Print the experiments of featavg and of installed plugins."""
    Terminal().print(tables.experiment_table(list(registry.experiments().values())))
    for sentence in registry.broken_plugins():
        complain(sentence)
    return OK


def run(options: argparse.Namespace) -> int:
    """Run one experiment and print what it found."""
    experiment, chosen = parse_flags(options)
    finished = _execute(experiment, chosen)
    if chosen.json:
        print_json(_summary(finished))
    else:
        _print_runs([finished])
    return _exit_code([finished])


def theory(options: argparse.Namespace) -> int:
    """Check all claims and print the ledger."""
    finished = _execute(ledger.EXPERIMENT, options)
    entries, ours = (of(finished.results) for of in (ledger.entries, ledger.own_entries))
    if options.json:
        plain = {"claims": entries, "ours": ours}
        listed = {name: [entry.summary() for entry in some] for name, some in plain.items()}
        print_json({**finished.summary(), **listed})
    else:
        Terminal().print(
            tables.ledger_table([*entries, *ours]),
            "† no constant given, or garbled: results.csv says how it was read. Violated claims "
            "are a result; the expectation below is that no identity of gradient descent fails.",
        )
        _print_runs([finished], verdict=_on_claims(entries, finished.holds))
    return _exit_code([finished])


def _on_claims(entries: Sequence[ledger.Entry], holds: bool) -> str:
    """Return how many claims hold, and whether the expectations of the experiment do."""
    count = Counter(entry.verdict for entry in entries)
    parts = [
        f"{count[HOLDS]} of {len(entries)} claims hold in every seed",
        f"{count[VIOLATED]} are violated in at least one",
    ]
    parts += [f"{count[NOT_STATED]} are {NOT_STATED}"] if count[NOT_STATED] else []
    identities = "every identity of gradient descent holds, as it must"
    return ", ".join(parts) + f"; {identities if holds else 'not every expectation holds'}."


def reproduce(options: argparse.Namespace) -> int:
    """Run all synthetic experiments, write a summary and a report, and print what they found."""
    from featavg.apps.report.page import write_report

    wanted = ("figures", "beyond") if options.all else ("figures",)
    runs = [_execute(one, options) for one in EXPERIMENTS.values() if one.series in wanted]
    summaries = [_summary(finished) for finished in runs]
    name = "summary-quick.json" if options.quick else "summary.json"
    write_atomically(options.out / name, to_json(summaries))
    report = write_report(options.out)
    if options.json:
        print_json(summaries)
    else:
        _print_runs(runs, report.path)
    return _exit_code(runs)


def parse_flags(options: argparse.Namespace) -> tuple[Experiment, argparse.Namespace]:
    """Return the experiment that `featavg run` was given, and the values of its own flags."""
    experiment = registry.find(options.experiment, name="ID")
    extension = experiment.paper.removeprefix("none, ")
    where = f"{experiment.paper} of the paper"
    if extension != experiment.paper:
        where = f"Not in the paper: {extension}"
    parser = Parser(
        prog=f"featavg run {options.experiment}", description=f"{experiment.title}. {where}."
    )
    _add_parameters(parser, experiment)
    return experiment, parser.parse_args(options.flags)


def chosen_parameters(experiment: Experiment, options: argparse.Namespace) -> Any:
    """Return the parameters that the flags give."""
    start = experiment.quick if options.quick else experiment.parameters
    given = {f.name: getattr(options, f.name) for f in fields(start) if hasattr(options, f.name)}
    return replace(start, **given)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the flags of every command that runs experiments."""
    parser.set_defaults(if_interrupted=_CONTINUES)
    parser.add_argument("--quick", action="store_true", help="a smaller problem, fewer seeds")
    parser.add_argument("--seeds", type=whole_number, metavar="N", help="how many seeds")
    parser.add_argument(
        "--workers",
        type=whole_number,
        default=cpu_count(),
        metavar="N",
        help="how many seeds to measure at once (default: as many as there are cores); experiments "
        "on images always measure one at a time, with several threads",
    )
    out = "where to write (default: runs)"
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help=out)
    parser.add_argument("--fresh", action="store_true", help="measure again what is saved")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_parameters(parser: argparse.ArgumentParser, experiment: Experiment) -> None:
    """Add the flags of an experiment, one for each of its parameters."""
    _add_run_options(parser)
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
            read = whole_number if kind is int else kind
            form = {"type": read, "choices": choices, "metavar": metavar}
        own.add_argument(
            f"--{field.name.replace('_', '-')}",
            default=argparse.SUPPRESS,
            help=(field.metadata.get("help", "") + shown).replace("%", "%%"),
            **form,
        )


def _execute(experiment: Experiment, options: argparse.Namespace) -> Run:
    """Run an experiment with the parameters that the flags give."""
    return run_experiment(
        experiment,
        chosen_parameters(experiment, options),
        seeds=experiment.usual_seeds(options.quick) if options.seeds is None else options.seeds,
        out=options.out,
        workers=options.workers,
        fresh=options.fresh,
        progress=True,
    )


def _exit_code(runs: Sequence[Run]) -> int:
    return OK if all(finished.holds for finished in runs) else NOT_REPRODUCED


def _summary(finished: Run) -> dict[str, Any]:
    return finished.summary() | {"folder": str(finished.folder), "seconds": finished.seconds}


def _print_runs(runs: Sequence[Run], report: Path | None = None, verdict: str = "") -> None:
    """Print the table of all expectations, the figures, the conclusions and the verdict."""
    terminal = Terminal()
    terminal.print(tables.outcome_table(runs, width=terminal.width))
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
    terminal.print(f"[bold]{verdict or _verdict(runs)}[/bold]")


def _verdict(runs: Sequence[Run]) -> str:
    """Return whether the expectations hold, or why there are none."""
    if _exit_code(runs) != OK:
        return "Not every expectation holds."
    if any(o.expectation.rule != "reported" for finished in runs for o in finished.outcomes):
        return "Every expectation holds."
    names = [n for finished in runs for n in finished.experiment.changed(finished.parameters)]
    if names and all(finished.experiment.calibrated for finished in runs):
        return (
            "The numbers are only reported: limits are known for the default setting, and these "
            f"parameters were changed: {', '.join(names)}."
        )
    return "There are no expectations; the numbers are only reported."

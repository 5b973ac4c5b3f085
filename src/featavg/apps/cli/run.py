"""`featavg run`: run one experiment."""

from __future__ import annotations

import argparse
from typing import Any

from featavg.apps.cli.running import (
    CONTINUES,
    add_parameters,
    execute,
    exit_code,
    print_json,
    print_runs,
    summary,
)
from featavg.apps.cli.terminal import Parser
from featavg.lab import registry
from featavg.lab.experiment import Experiment


def add_parser(commands: Any) -> None:
    """Add the command; the flags of an experiment are added once it is known which one is run."""
    parser = commands.add_parser(
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
    parser.add_argument("experiment", metavar="ID", help="the experiment: its id or its file")
    flags = parser.add_argument("flags", nargs=argparse.REMAINDER, metavar="...", help="its flags")
    flags.required = False
    parser.set_defaults(command=run, if_interrupted=CONTINUES)


def run(options: argparse.Namespace) -> int:
    """Run the experiment and print what it found."""
    experiment, chosen = parse_flags(options)
    finished = execute(experiment, chosen)
    if chosen.json:
        print_json(summary(finished))
    else:
        print_runs([finished])
    return exit_code([finished])


def parse_flags(options: argparse.Namespace) -> tuple[Experiment, argparse.Namespace]:
    """Return the experiment that was named, and what its own flags say."""
    experiment = registry.find(options.experiment, name="ID")
    parser = Parser(
        prog=f"featavg run {options.experiment}",
        description=f"{experiment.title}. {_in_the_paper(experiment)}.",
    )
    add_parameters(parser, experiment)
    return experiment, parser.parse_args(options.flags)


def _in_the_paper(experiment: Experiment) -> str:
    """Return where in the paper an experiment is."""
    extension = experiment.paper.removeprefix("none, ")
    if extension != experiment.paper:
        return f"Not in the paper: {extension}"
    return f"{experiment.paper} of the paper"

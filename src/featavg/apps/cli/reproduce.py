"""`featavg reproduce`: run every synthetic experiment of the paper."""

from __future__ import annotations

import argparse
from typing import Any

from featavg.apps.cli.running import (
    add_run_options,
    execute,
    exit_code,
    print_json,
    print_runs,
    summary,
)
from featavg.experiments import EXPERIMENTS
from featavg.files import write_atomically
from featavg.lab.run_folder import to_json


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "reproduce",
        help="run every synthetic experiment and print a summary",
        description="Run every synthetic experiment, draw its figure, and compare with the paper.",
    )
    add_run_options(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the experiments, write a summary and a report, and print what they found."""
    from featavg.apps.report.page import write_report

    runs = [execute(one, options) for one in EXPERIMENTS.values() if one.in_reproduce]
    summaries = [summary(finished) for finished in runs]
    name = "summary-quick.json" if options.quick else "summary.json"
    write_atomically(options.out / name, to_json(summaries))
    report = write_report(options.out)
    if options.json:
        print_json(summaries)
    else:
        print_runs(runs, report.path)
    return exit_code(runs)

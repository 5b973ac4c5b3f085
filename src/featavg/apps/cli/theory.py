"""`featavg theory`: check every measurable statement of the paper."""

from __future__ import annotations

import argparse
from typing import Any

from featavg.apps.cli.running import add_parameters, execute, exit_code, print_json, print_runs
from featavg.apps.cli.tables import ledger_table
from featavg.apps.cli.terminal import Terminal
from featavg.experiments import ledger


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
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
    add_parameters(parser, ledger.EXPERIMENT)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Check all claims and print the ledger."""
    finished = execute(ledger.EXPERIMENT, options)
    entries = ledger.entries(finished.results)
    if options.json:
        print_json({**finished.summary(), "claims": [entry.summary() for entry in entries]})
        return exit_code([finished])
    terminal = Terminal()
    terminal.print(ledger_table(entries))
    terminal.print(
        "† no constant given, or garbled: results.csv says how it was read. Violated claims are a "
        "result; the expectation below is that no identity of gradient descent fails."
    )
    print_runs([finished])
    return exit_code([finished])

"""`featavg list`: list the experiments."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from featavg.apps.cli.tables import experiment_table
from featavg.apps.cli.terminal import OK, Terminal
from featavg.lab import registry


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("list", help="list the experiments")
    parser.set_defaults(command=run)


def run(_: argparse.Namespace) -> int:
    """Print the experiments of featavg and of installed plugins."""
    Terminal().print(experiment_table(list(registry.experiments().values())))
    for sentence in registry.broken_plugins():
        print(f"featavg: {sentence}", file=sys.stderr)
    return OK

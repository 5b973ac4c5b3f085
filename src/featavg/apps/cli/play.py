"""`featavg play`: open the playground."""

from __future__ import annotations

import argparse
from typing import Any

from featavg.apps.play import launch


def add_parser(commands: Any) -> None:
    """Add the command."""
    launch.add_parser(commands)


def run(options: argparse.Namespace) -> int:
    """Serve the playground until Ctrl-C."""
    return launch.play(options)

"""`featavg report`: write one web page of all runs in a folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="write one web page of all runs in a folder",
        description=(
            "Write one self-contained web page of all runs in a folder: results, interactive "
            "figures, the claims, parameters and versions. A run that cannot be read is named on "
            "the page, and the others are shown."
        ),
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="the folder (default: runs)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the page (default: report.html in DIR)"
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Write the page, and print how many runs it shows."""
    from featavg.apps.report.page import write_report

    written = write_report(options.folder, options.out)
    for folder in written.unreadable:
        print(f"featavg: {folder.name!r} is not shown: {folder.reason}.", file=sys.stderr)
    runs = len(written.runs)
    size = f"{written.size / 1e6:.1f} MB"
    print(f"{written.path} ({runs} run{'s' if runs != 1 else ''}, {size})")
    return 0

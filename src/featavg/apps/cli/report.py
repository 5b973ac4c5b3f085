"""`featavg report`: one web page of all runs in a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from featavg.apps.cli.terminal import OK, complain


def add_parsers(commands: Any) -> None:
    """Add the commands."""
    runs = commands.add_parser(
        "report",
        help="write one web page of all runs in a folder",
        description=(
            "Write one self-contained web page of all runs in a folder: results, interactive "
            "figures, the claims, parameters and versions. A run that cannot be read is named on "
            "the page, and the others are shown."
        ),
    )
    folder = "the folder (default: runs)"
    runs.add_argument(
        "folder", nargs="?", type=Path, default=Path("runs"), metavar="DIR", help=folder
    )
    page = "the page (default: report.html in DIR)"
    runs.add_argument("--out", type=Path, metavar="FILE", help=page)
    runs.set_defaults(command=report)


def report(options: argparse.Namespace) -> int:
    """Write the report, and print how many runs it shows."""
    from featavg.apps.report.page import write_report

    written = write_report(options.folder, options.out)
    for folder in written.unreadable:
        complain(f"{folder.name!r} is not shown: {folder.reason}.")
    for run in written.runs:
        for name in sorted(run.damaged):
            complain(f"{run.folder / name} is damaged and not shown.")
    runs = len(written.runs)
    size = f"{written.size / 1e6:.1f} MB"
    print(f"{written.path} ({runs} run{'s' if runs != 1 else ''}, {size})")
    return OK

"""`featavg report`: one web page of all runs in a folder, or of two side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featavg.apps.cli.terminal import OK, complain, printable

if TYPE_CHECKING:
    from featavg.apps.report.saved import SavedRun, Unreadable


def add_parsers(commands: Any) -> None:
    """Add the commands."""
    parser = commands.add_parser(
        "report",
        help="write one web page of all runs in a folder, or compare two",
        description=(
            "Write one self-contained web page of all runs in a folder: which checks and which "
            "statements of the paper hold, interactive figures, parameters and versions. A run "
            "that cannot be read is named on the page, and the others are shown. With a second "
            "folder, write a page that compares the runs of both side by side; each may also be "
            "the folder of a single run."
        ),
        epilog="Examples: featavg report; featavg report runs/figure1/eb030a81130d old-runs",
    )
    folder = "the folder (default: runs)"
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("runs"), metavar="DIR", help=folder
    )
    other = "a folder to compare with"
    parser.add_argument("other", nargs="?", type=Path, metavar="OTHER", help=other)
    page = "the page (default: report.html in DIR, and comparison.html here if there is an OTHER)"
    parser.add_argument("--out", type=Path, metavar="FILE", help=page)
    parser.set_defaults(command=report)


def report(options: argparse.Namespace) -> int:
    """Write the report or the comparison, and print what it shows."""
    if options.other is not None:
        return _compare(options)
    from featavg.apps.report.page import write_report

    written = write_report(options.folder, options.out)
    _complain_of(written.runs, written.unreadable)
    number = _counted(len(written.runs), "run")
    print(f"{printable(str(written.path))} ({number}, {written.size / 1e6:.1f} MB)")
    return OK


def _compare(options: argparse.Namespace) -> int:
    from featavg.apps.report.comparison import write_comparison

    written = write_comparison(options.folder, options.other, options.out)
    runs = [run for pair in written.pairs for run in (pair.one, pair.other)]
    _complain_of(runs, written.unreadable)
    number = _counted(len(written.pairs), "pair")
    print(f"{printable(str(written.path))} ({number} of runs, {written.size / 1e6:.1f} MB)")
    return OK


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _complain_of(runs: Sequence[SavedRun], unreadable: Sequence[Unreadable]) -> None:
    """Name the folders and files that are not shown."""
    for folder in unreadable:
        complain(f"{folder.name!r} is not shown: {folder.reason}.")
    for run in runs:
        for name in sorted(run.damaged):
            complain(f"{run.folder / name} is damaged and not shown.")

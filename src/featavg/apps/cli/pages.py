"""`featavg report` and `audit`: the commands that write a web page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table

from featavg.apps.cli.terminal import OK, Terminal, complain, print_json, whole_number
from featavg.files import to_json, write_atomically
from featavg.lab.run_folder import check_writable


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
    points = commands.add_parser(
        "audit",
        help="audit your own features: do coarse labels average them, and what does that cost?",
        description=(
            "Learn whether a network trained on your coarse labels averages features, what that "
            "costs in robustness, and what finer labels would give. FILE has a matrix of features "
            "(embeddings, for instance) and labels: .npz with X and y, .csv or .parquet with a "
            "column of labels, or X.npy beside y.npy. A column without a name that only numbers "
            "the rows (the index that pandas writes) is left out. A quarter of the points is held "
            "out before anything is computed. Prints a table and a verdict, and writes audit.json "
            "and audit.html."
        ),
        epilog=(
            "Examples: featavg audit embeddings.npz; featavg audit points.csv --label species "
            "--subclass variety --out report"
        ),
    )
    points.add_argument("file", type=Path, metavar="FILE", help="the features and labels")
    points.add_argument("--label", metavar="COLUMN", help="the column or array of coarse labels")
    points.add_argument("--subclass", metavar="COLUMN", help="the column of finer labels, if any")
    points.add_argument(
        "--points", type=whole_number, default=500, help="held-out points to certify (500)"
    )
    points.add_argument(
        "--seed", type=whole_number, default=0, help="the seed of all randomness (0)"
    )
    out = "where to write (default: FILE-audit beside FILE)"
    points.add_argument("--out", type=Path, metavar="DIR", help=out)
    points.add_argument("--json", action="store_true", help="print the result as JSON")
    points.set_defaults(command=audit)


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


def audit(options: argparse.Namespace) -> int:
    """Audit a file, and write and print the result."""
    from featavg.apps.audit import page as audit_page
    from featavg.auditing.audit import audit as audit_points
    from featavg.auditing.files import read

    out = options.out or options.file.with_name(f"{options.file.stem}-audit")
    check_writable(out)
    table = read(options.file, label=options.label, subclass=options.subclass)
    found = audit_points(
        table.x,
        table.y,
        table.subclass,
        points=options.points,
        random_state=options.seed,
        progress=True,
    )
    hints = [*table.notes, *found.hints]
    summary = found.summary() | {"hints": hints}
    write_atomically(out / "audit.json", to_json(summary))
    write_atomically(out / "audit.html", audit_page.page(found, options.file.name, hints).encode())
    if options.json:
        print_json(summary)
        return OK
    shown = Table("", "coarse labels", "subclasses")
    for row in audit_page.table_rows(found):
        shown.add_row(*row)
    terminal = Terminal()
    terminal.print(shown)
    for text in (found.verdict, *hints):
        terminal.print(text, highlight=False, markup=False)
    terminal.print_plain(str(out / "audit.html"))
    return OK

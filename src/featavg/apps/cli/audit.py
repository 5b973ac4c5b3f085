"""`featavg audit`: audit your own features."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table as RichTable

from featavg.apps.cli.terminal import OK, Terminal
from featavg.files import write_atomically
from featavg.lab.run_folder import check_writable, to_json

_DESCRIPTION = (
    "Learn whether a network trained on your coarse labels averages features, what that costs in "
    "robustness, and what finer labels would give. FILE has a matrix of features (embeddings, for "
    "instance) and labels: .npz with X and y, .csv or .parquet with a column of labels, or "
    "X.npy beside y.npy. A column without a name that only numbers the rows (the index that pandas "
    "writes) is left out. A quarter of the points is held out before anything is computed. Prints "
    "a table and a verdict, and writes audit.json and audit.html."
)
_EXAMPLES = (
    "Examples: featavg audit embeddings.npz; featavg audit points.csv --label species "
    "--subclass variety --out report"
)


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "audit",
        help="audit your own features: do coarse labels average them, and what does that cost?",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the features and labels")
    parser.add_argument("--label", metavar="COLUMN", help="the column or array of coarse labels")
    parser.add_argument("--subclass", metavar="COLUMN", help="the column of finer labels, if any")
    parser.add_argument("--points", type=int, default=500, help="held-out points to certify (500)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of all randomness (0)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write (default: FILE-audit beside FILE)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Audit a file, and write and print the result."""
    from featavg.apps.audit.page import page, table_rows
    from featavg.auditing.audit import audit
    from featavg.auditing.files import read

    out = options.out or options.file.with_name(f"{options.file.stem}-audit")
    check_writable(out)
    table = read(options.file, label=options.label, subclass=options.subclass)
    found = audit(
        table.x,
        table.y,
        table.subclass,
        points=options.points,
        random_state=options.seed,
        progress=True,
    )
    hints = [*table.notes, *found.hints]
    content = to_json(found.summary() | {"hints": hints})
    write_atomically(out / "audit.json", content)
    write_atomically(out / "audit.html", page(found, options.file.name, hints).encode())
    if options.json:
        print(content.decode(), end="")
        return OK
    shown = RichTable("", "coarse labels", "subclasses")
    for row in table_rows(found):
        shown.add_row(*row)
    terminal = Terminal()
    terminal.print(shown)
    for text in (found.verdict, *hints):
        terminal.print(text, highlight=False, markup=False)
    terminal.print_plain(str(out / "audit.html"))
    return OK

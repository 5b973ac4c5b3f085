"""`featavg audit`: an audit of the features in a file."""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from featavg import checks
from featavg.apps.cli.outputs import check_outputs, folder_beside
from featavg.apps.cli.terminal import OK, Terminal, print_json, whole_number
from featavg.errors import InputError
from featavg.files import DamagedError, read_bytes, to_json, write_atomically

if TYPE_CHECKING:
    from featavg.auditing.verdict import Audit

_DESCRIPTION = (
    "Learn whether a network trained on your coarse labels averages features, what that costs in "
    "robustness, and which points to label more finely. FILE has a matrix of features (embeddings, "
    "for instance) and labels: .npz with X and y, .csv or .parquet with a column of labels, or "
    "X.npy beside y.npy. A column without a name that only numbers the rows (the index that pandas "
    "writes) is left out. A quarter of the points is held out before anything is computed. Prints "
    "a table and a verdict, and writes audit.html, audit.json, points.csv (the radius of each "
    "held-out point for each classifier, weakest first) and label-next.csv."
)
_NEXT = "label-next.csv"
_HASH = "label_next_sha256"  # in audit.json
_MOST = 1 << 28  # bytes of a file that was written before
_BEGINNINGS = {
    "points.csv": r"(id|row|index),class,subclass,radius_averaging,kind_averaging,",
    _NEXT: r"order,(id|row|index),class,subclass\n",
    "audit.json": r'\{\s*"classes": ',
    "audit.html": r"<!doctype html>.*<title>Audit of ",
}
_EXAMPLES = (
    "Examples: featavg audit embeddings.npz; featavg audit points.csv --label species --subclass "
    "variety --id specimen --drop collector --drop year --standardize --out report"
)


def add_parsers(commands: Any) -> None:
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
    add_columns(parser)
    standardize = "divide each feature by its standard deviation first; radii are then in these"
    parser.add_argument("--standardize", action="store_true", help=standardize)
    parser.add_argument(
        "--points", type=whole_number, default=500, help="held-out points to certify (500)"
    )
    budget = "points to suggest for finer labels (two for each subclass that is found)"
    parser.add_argument("--budget", type=whole_number, metavar="N", help=budget)
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="the seed of all randomness (0)"
    )
    out = "where to write (default: FILE-audit beside FILE)"
    parser.add_argument("--out", type=Path, metavar="DIR", help=out)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(command=audit)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the flags for columns that are no features."""
    ids = "the column or array that names the points"
    parser.add_argument("--id", metavar="COLUMN", help=ids)
    drop = "a column to leave out; may be given several times"
    parser.add_argument("--drop", metavar="COLUMN", action="append", default=[], help=drop)


def audit(options: argparse.Namespace) -> int:
    """Audit a file, and write and print the result."""
    from featavg.apps.audit.page import Source, page, table_rows
    from featavg.auditing.audit import audit as audit_points
    from featavg.auditing.files import read

    out = options.out or folder_beside(options.file, "audit", "FILE")
    checks.seed("seed", options.seed)
    check_outputs(out, _BEGINNINGS, [options.file])
    _check_not_filled_in(out)
    columns = {name: getattr(options, name) for name in ("label", "subclass", "id", "drop")}
    table = read(options.file, **columns)
    found = audit_points(
        table.x,
        table.y,
        table.subclass,
        points=options.points,
        standardize=options.standardize,
        budget=options.budget,
        random_state=options.seed,
        progress=True,
    )
    hints = [*table.notes, *found.hints]
    source = Source(options.file.name, _command(options), table.ids, table.id_name)
    summary = found.summary() | {"hints": hints, "command": source.command}
    tables = _tables(found, table.ids, table.id_name)
    if _NEXT in tables:
        summary[_HASH] = _sha256(tables[_NEXT])
    (out / _NEXT).unlink(missing_ok=True)  # of an audit before; there is none without its hash
    write_atomically(out / "audit.json", to_json(summary))
    for name, content in tables.items():
        write_atomically(out / name, content)
    write_atomically(out / "audit.html", page(found, source, hints).encode())
    if options.json:
        print_json(summary)
        return OK
    shown = Table("", *(estimator for _, estimator, _, _ in found.networks))
    for row in table_rows(found):
        shown.add_row(*row)
    terminal = Terminal()
    terminal.print(shown)
    for text in (found.verdict, *hints):
        terminal.print(text, highlight=False, markup=False)
    terminal.print_plain(str(out / "audit.html"))
    return OK


def _check_not_filled_in(out: Path) -> None:
    """Refuse a folder whose list of points to label has changed since an audit wrote it."""
    if not (out / _NEXT).exists():
        return
    try:
        listed, about = (read_bytes(out / name, most=_MOST) for name in (_NEXT, "audit.json"))
    except DamagedError:
        listed, about = b"", b""
    if f'"{_HASH}": "{_sha256(listed)}"'.encode() not in about:
        raise InputError(
            f"out must be another folder, because {_NEXT} in it would be overwritten and has "
            f"changed since it was written; got {str(out)!r}."
        )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _command(options: argparse.Namespace) -> str:
    """Return the command line that repeats the audit."""
    flags = [f"--{name}={getattr(options, name)}" for name in ("label", "subclass", "id", "budget")]
    given = [flag for flag in flags if not flag.endswith("=None")]
    given += [f"--drop={name}" for name in options.drop]
    given += ["--standardize"] if options.standardize else []
    given += [f"--points={options.points}"] if options.points != 500 else []
    return shlex.join(["featavg", "audit", str(options.file), *given, f"--seed={options.seed}"])


def _tables(found: Audit, ids: Sequence[Any], id_name: str) -> dict[str, bytes]:
    """Return the files of single points: their radii, and those to label next."""
    names, rows = found.weakest(ids)
    files = {"points.csv": _csv([id_name, *names[1:]], rows)}
    suggested = [[i, *row] for i, row in enumerate(found.suggested.rows(ids), 1)]
    if suggested:
        files[_NEXT] = _csv(["order", id_name, "class", "subclass"], suggested)
    return files


def _csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([names, *rows])
    return text.getvalue().encode()

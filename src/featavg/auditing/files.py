"""Reading feature matrices from files: npz, csv, parquet, or a pair of npy files.

Files are not trusted: nothing in them is executed, and their size is limited.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from featavg.array_files import honest_size, open_arrays, read_array
from featavg.auditing.columns import Columns
from featavg.auditing.table import Roles, Table, check_shapes, listed, make_table
from featavg.errors import InputError
from featavg.files import DamagedError
from featavg.parquet_files import read_parquet

LARGEST = 4 << 30
"""The maximum number of bytes of a file, and of the content of an archive."""

_MATRICES = ("X", "x", "features", "embeddings", "data")
_WITH_COLUMNS = (".csv", ".parquet", ".pq")


def read(
    path: str | Path,
    *,
    label: str | None = None,
    subclass: str | None = None,
    id: str | None = None,  # noqa: A002  as on the command line
    drop: Sequence[str] = (),
    need_labels: bool = True,
) -> Table:
    """Read features and labels.

    ``.npz``: arrays X and y (or features/embeddings and labels/target), possibly subclass.
    ``.csv`` and ``.parquet``: a column of labels, possibly one of subclasses and one of ids, and
    columns of numbers; an unnamed column of row numbers, as pandas writes it, is left out.
    ``.npy``: the features; the labels are in ``NAME_y.npy`` or ``y.npy`` in the same folder, or in
    ``y_train.npy`` for ``X_train.npy``.

    Parameters
    ----------
    path : path
        The file.
    label, subclass : str, optional
        The column, array or (for npy) file of the labels and of the subclasses; by default y,
        label, labels, target or class, and subclass.
    id : str, optional
        The column, array or file of what points are called; it is no feature.
    drop : sequence of str
        Columns that are left out.
    need_labels : bool
        Whether to refuse a file without labels.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"FILE must be a file; {path} is a folder.")
    readers = {".npz": _npz, ".npy": _npy, ".csv": _csv, ".parquet": _parquet, ".pq": _parquet}
    suffix = path.suffix.lower()
    reader = readers.get(suffix)
    if reader is None:
        raise InputError(f"FILE must end in {', '.join(readers)}; got {path.name}.")
    if drop and suffix not in _WITH_COLUMNS:
        raise InputError(
            f"drop must name columns of a csv or parquet file; got {drop[0]!r} for {path.name}, "
            "whose features are one array."
        )
    if not path.exists():
        raise InputError(f"there is no file {path}.")
    if not path.is_file():
        raise InputError(f"FILE must be an ordinary file; got {path}.")
    _check_size(path.name, path.stat().st_size)
    try:
        return reader(path, Roles(label, subclass, id, tuple(drop), need_labels))
    except DamagedError as error:
        reason = str(error).removeprefix(f"cannot read {path.name}: ")
    except InputError:
        raise
    except (ValueError, csv.Error, OSError) as error:
        reason = " ".join(str(error).split())
    raise InputError(
        f"FILE must have the format of its suffix, and {path.name} cannot be read as "
        f"{path.suffix[1:].lower()} ({reason.rstrip('.')[:300]})."
    )


def _check_size(name: str, size: int) -> None:
    if size > LARGEST:
        raise InputError(f"FILE must have at most {LARGEST >> 30} GB, unpacked; {name} has more.")


def _npz(path: Path, roles: Roles) -> Table:
    with open_arrays(path, most=LARGEST) as file:
        names = list(file.declared)
        matrix = _matrix(names)
        found = roles.found(names)
        parts = (matrix, found.label, found.subclass, found.id)
        check_shapes(*(file.declared.get(name or "") for name in parts))
        x, y, z, ids = (None if name is None else file.read(name) for name in parts)
    return make_table(x, y, z, ids, found.label or "")


def _matrix(names: list[str]) -> str:
    """Return the name of the array of features."""
    found = [name for name in names if name in _MATRICES or name.lower() in _MATRICES]
    if len(found) == 1:
        return found[0]
    first, *others = _MATRICES
    under = f"one of the names {', '.join(_MATRICES)} only" if found else f"the name {first}"
    usual = "" if found else f" (or {', '.join(others)})"
    several = "the arrays" if len(names) > 1 else "the array"
    held = f"{several} {listed(names, ' and ')}" if names else "no arrays"
    raise InputError(f"FILE must hold the features under {under}{usual}; got {held}.")


def _npy(path: Path, roles: Roles) -> Table:
    name = path.stem
    paired = [f"y{name[1:]}.npy"] if name[:1] in "Xx" else []
    usual = dict.fromkeys([*paired, f"{name}_y.npy", "y.npy"])
    beside = [roles.label] if roles.label else list(usual)
    found = next((path.parent / other for other in beside if (path.parent / other).is_file()), None)
    finer, ids = (
        None if other is None else _array(path.parent / other)
        for other in (roles.subclass, roles.id)
    )
    if (found is None or found == path) and roles.label is None and not roles.need_labels:
        return make_table(_array(path), None, finer, ids, "")
    if found is None or found == path:
        raise InputError(
            f"label must be a file beside {path.name}; looked for {', '.join(beside)}."
        )
    return make_table(_array(path), _array(found), finer, ids, found.name)


def _array(path: Path) -> Any:
    return read_array(path, most=LARGEST)


def _csv(path: Path, roles: Roles) -> Table:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except UnicodeDecodeError:
        raise InputError(
            f"FILE must be encoded in UTF-8; {path.name} is not: save it as UTF-8, which "
            "spreadsheets call 'CSV UTF-8'."
        ) from None
    _check_separator(path.name, rows)
    if len(rows) < 2 or not rows[0]:
        raise InputError(f"FILE must have a row of names and rows of values; got {path.name}.")
    header = rows[0]
    numbers = [number for number, row in enumerate(rows[1:], 2) if row]
    body = [rows[number - 1] for number in numbers]
    for number, row in zip(numbers, body, strict=True):
        if len(row) != len(header):
            many = "1 value" if len(header) == 1 else f"{len(header)} values"
            raise InputError(
                f"FILE must have {many} in each row; row {number} of {path.name} has {len(row)}."
            )
    return Columns.of(path.name, header, zip(*body, strict=True), numbers).table(roles)


def _check_separator(name: str, rows: list[list[str]]) -> None:
    """Refuse a file whose first row is one value for a comma, and several for another sign."""
    header = rows[0] if rows else []
    for separator, called in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if len(header) == 1 and separator in header[0]:
            raise InputError(
                f"FILE must have commas between values; {name} has {called}: save it with commas, "
                "and with points in decimal numbers."
            )


def _parquet(path: Path, roles: Roles) -> Table:
    room = honest_size(path.stat().st_size)
    with path.open("rb") as file:
        names, columns = read_parquet(file, most_values=room // 8, most_bytes=min(room, LARGEST))
    numbers = range(1, len(columns[0]) + 1 if columns else 1)
    return Columns.of(path.name, names, columns, numbers).table(roles)

"""Feature matrices from files: npz, csv, parquet, or a pair of npy files.

A file is hostile until it has been checked: nothing in it is executed, and its size is capped.
"""

from __future__ import annotations

import csv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from featavg import _checks
from featavg._checks import FloatArray, InputError

LARGEST = 4 << 30
"""Bytes of a file, and of what an archive unpacks to, that are read at most."""

_LABELS = ("y", "label", "labels", "target", "class")
_SUBCLASSES = ("subclass", "subclasses", "subclass_label")
_MATRICES = ("X", "x", "features", "embeddings", "data")


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds: the features, their names, the labels, and subclasses if it has any."""

    x: FloatArray
    y: np.ndarray[Any, Any]
    subclass: np.ndarray[Any, Any] | None
    label: str


def read(path: str | Path, *, label: str | None = None, subclass: str | None = None) -> Table:
    """Read points and labels.

    ``.npz``: arrays X and y (or features/embeddings and labels/target), possibly subclass.
    ``.csv`` and ``.parquet``: a column of labels, possibly one of subclasses, all others numbers.
    ``.npy``: the features; the labels are in ``NAME_y.npy`` or ``y.npy`` beside it, or the other
    way round: ``X_train.npy`` belongs to ``y_train.npy``.

    Parameters
    ----------
    path : path
        The file.
    label, subclass : str, optional
        The column, array or (for npy) file that has the labels and subclasses, where it is not
        called y, label, labels, target or class, and subclass.
    """
    path = Path(path)
    readers = {".npz": _npz, ".npy": _npy, ".csv": _csv, ".parquet": _parquet, ".pq": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"FILE must end in {', '.join(readers)}; got {path.name}.")
    if not path.is_file():
        raise InputError(f"FILE must be a file; got {path}.")
    if path.stat().st_size > LARGEST:
        raise InputError(f"FILE must have at most {LARGEST >> 30} GB; {path} has more.")
    try:
        return reader(path, label, subclass)
    except InputError:
        raise
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"FILE must be what its name says, and {path.name} cannot be read as "
            f"{path.suffix[1:].lower()} ({reason})."
        ) from None


def _npz(path: Path, label: str | None, subclass: str | None) -> Table:
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(item.file_size for item in archive.infolist())
    if unpacked > LARGEST:
        raise InputError(f"FILE must unpack to at most {LARGEST >> 30} GB; {path.name} has more.")
    with np.load(path, allow_pickle=False) as arrays:
        names = arrays.files
        matrix = _chosen("an array", None, _MATRICES, names)
        own = _chosen("label", label, _LABELS, names)
        finer = _optional("subclass", subclass, _SUBCLASSES, names)
        return _table(arrays[matrix], arrays[own], None if finer is None else arrays[finer], own)


def _npy(path: Path, label: str | None, subclass: str | None) -> Table:
    name = path.stem
    beside = [label] if label else [f"{name}_y.npy", "y.npy"]
    if not label and name[:1] in "Xx":
        beside.insert(0, f"y{name[1:]}.npy")
    found = next((path.parent / other for other in beside if (path.parent / other).is_file()), None)
    if found is None or found == path:
        raise InputError(f"label must be a file beside {path.name}; looked for {beside}.")
    finer = None if subclass is None else _array(path.parent / subclass)
    return _table(_array(path), _array(found), finer, found.name)


def _array(path: Path) -> Any:
    if path.stat().st_size > LARGEST:
        raise InputError(f"FILE must have at most {LARGEST >> 30} GB; {path} has more.")
    return np.load(path, allow_pickle=False)


def _csv(path: Path, label: str | None, subclass: str | None) -> Table:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        raise InputError(f"FILE must have a row of names and rows of values; {path.name} has not.")
    header, body = rows[0], [row for row in rows[1:] if row]
    for number, row in enumerate(body, 2):
        if len(row) != len(header):
            raise InputError(
                f"FILE must have {len(header)} values in each row; row {number} of {path.name} has "
                f"{len(row)}."
            )
    columns = dict(zip(header, zip(*body, strict=True), strict=True))
    return _columns(columns, label, subclass, path.name)


def _parquet(path: Path, label: str | None, subclass: str | None) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise InputError("Parquet needs PyArrow: pip install 'featavg[cluster]'.") from None
    try:
        file = pq.ParquetFile(path, pre_buffer=False)
        groups = range(file.metadata.num_row_groups)
        if sum(file.metadata.row_group(i).total_byte_size for i in groups) > LARGEST:
            raise InputError(f"FILE must unpack to at most {LARGEST >> 30} GB.")
        table = file.read(use_threads=False)
    except pa.ArrowException as error:
        raise ValueError(error) from None
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return _columns(columns, label, subclass, path.name)


def _columns(columns: dict[str, Any], label: str | None, subclass: str | None, name: str) -> Table:
    own = _chosen("label", label, _LABELS, list(columns))
    finer = _optional("subclass", subclass, _SUBCLASSES, list(columns))
    rest = [column for column in columns if column not in (own, finer)]
    if not rest:
        raise InputError(f"FILE must have columns of features; {name} has none.")
    features = []
    for column in rest:
        try:
            features.append(np.asarray(columns[column], dtype=np.float64))
        except (TypeError, ValueError):
            raise InputError(
                f"every column but label and subclass must have numbers; {column!r} has others."
            ) from None
    finer_values = None if finer is None else np.asarray(columns[finer])
    return _table(np.column_stack(features), np.asarray(columns[own]), finer_values, own)


def _table(x: Any, y: Any, subclass: Any, label: str) -> Table:
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise InputError(
            f"features must be a matrix of numbers; got the shape {x.shape} of {x.dtype}."
        )
    for name, values in (("label", y), ("subclass", subclass)):
        if values is not None and values.shape != (len(x),):
            raise InputError(
                f"{name} must have one value for each of the {len(x)} points; got the shape "
                f"{values.shape}."
            )
    return Table(x.astype(np.float64 if x.dtype != np.float32 else np.float32), y, subclass, label)


def _chosen(what: str, given: str | None, usual: tuple[str, ...], names: list[str]) -> str:
    """Return the name that was given, or the one of the usual ones that is there."""
    if given is not None:
        return _checks.choice(what, given, names)
    found = [name for name in names if name in usual or name.lower() in usual]
    if len(found) != 1:
        many = "more than one" if found else "none"
        listed = f"{', '.join(names[:10])}{', …' if len(names) > 10 else ''}"
        raise InputError(
            f"{what} must be named: {many} of {', '.join(usual)} is there; the file has {listed}."
        )
    return found[0]


def _optional(what: str, given: str | None, usual: tuple[str, ...], names: list[str]) -> str | None:
    if given is not None:
        return _checks.choice(what, given, names)
    return next((name for name in names if name.lower() in usual), None)

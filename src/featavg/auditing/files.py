"""Reading feature matrices from files: npz, csv, parquet, or a pair of npy files.

Files are not trusted: nothing in them is executed, and their size is limited.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from featavg import checks
from featavg.array_files import honest_size, open_arrays, read_array
from featavg.arrays import FloatArray
from featavg.auditing.labels import check_labels
from featavg.errors import InputError
from featavg.files import DamagedError
from featavg.parquet_files import read_parquet

LARGEST = 4 << 30
"""The maximum number of bytes of a file, and of the content of an archive."""

_LABELS = ("y", "label", "labels", "target", "class")
_SUBCLASSES = ("subclass", "subclasses", "subclass_label")
_MATRICES = ("X", "x", "features", "embeddings", "data")
# The names that pandas and R give to a column of row numbers.
_INDICES = ("", "Unnamed: 0", "__index_level_0__")
_LISTED = 10  # the maximum number of names in a message


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a file: the features, the labels, and the subclasses if there are any.

    `y` is an array, or None where labels are not needed and there are none. `notes` are sentences
    for the user about how the file was read.
    """

    x: FloatArray
    y: Any
    subclass: np.ndarray[Any, Any] | None
    label: str
    notes: tuple[str, ...] = ()


def read(
    path: str | Path,
    *,
    label: str | None = None,
    subclass: str | None = None,
    need_labels: bool = True,
) -> Table:
    """Read features and labels.

    ``.npz``: arrays X and y (or features/embeddings and labels/target), possibly subclass.
    ``.csv`` and ``.parquet``: a column of labels, possibly one of subclasses, and columns of
    numbers; an unnamed column of row numbers, as pandas writes it, is left out.
    ``.npy``: the features; the labels are in ``NAME_y.npy`` or ``y.npy`` in the same folder, or in
    ``y_train.npy`` for ``X_train.npy``.

    Parameters
    ----------
    path : path
        The file.
    label, subclass : str, optional
        The column, array or (for npy) file of the labels and of the subclasses; by default y,
        label, labels, target or class, and subclass.
    need_labels : bool
        Whether to refuse a file without labels.
    """
    path = Path(path)
    readers = {".npz": _npz, ".npy": _npy, ".csv": _csv, ".parquet": _parquet, ".pq": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"FILE must end in {', '.join(readers)}; got {path.name}.")
    if not path.is_file():
        raise InputError(f"FILE must be a file; got {path}.")
    _check_size(path.name, path.stat().st_size)
    try:
        return reader(path, label, subclass, need_labels)
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


def _npz(path: Path, label: str | None, subclass: str | None, needed: bool) -> Table:
    with open_arrays(path, most=LARGEST) as file:
        names = list(file.declared)
        matrix = _chosen("an array", None, _MATRICES, names)
        own = _label(label, names, needed)
        finer = _optional("subclass", subclass, _SUBCLASSES, names)
        _check_shapes(*(file.declared.get(name or "") for name in (matrix, own, finer)))
        x, y, z = (None if name is None else file.read(name) for name in (matrix, own, finer))
    return _table(x, y, z, own or "")


def _npy(path: Path, label: str | None, subclass: str | None, needed: bool) -> Table:
    name = path.stem
    paired = [f"y{name[1:]}.npy"] if name[:1] in "Xx" else []
    usual = dict.fromkeys([*paired, f"{name}_y.npy", "y.npy"])
    beside = [label] if label else list(usual)
    found = next((path.parent / other for other in beside if (path.parent / other).is_file()), None)
    finer = None if subclass is None else _array(path.parent / subclass)
    if (found is None or found == path) and label is None and not needed:
        return _table(_array(path), None, finer, "")
    if found is None or found == path:
        raise InputError(
            f"label must be a file beside {path.name}; looked for {', '.join(beside)}."
        )
    return _table(_array(path), _array(found), finer, found.name)


def _array(path: Path) -> Any:
    return read_array(path, most=LARGEST)


def _csv(path: Path, label: str | None, subclass: str | None, needed: bool) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        raise InputError(f"FILE must have a row of names and rows of values; got {path.name}.")
    header = rows[0]
    numbers = [number for number, row in enumerate(rows[1:], 2) if row]
    body = [rows[number - 1] for number in numbers]
    for number, row in zip(numbers, body, strict=True):
        if len(row) != len(header):
            raise InputError(
                f"FILE must have {len(header)} values in each row; row {number} of {path.name} has "
                f"{len(row)}."
            )
    own = _label(label, header, needed)
    return _columns(header, zip(*body, strict=True), own, subclass, path.name, numbers)


def _parquet(path: Path, label: str | None, subclass: str | None, needed: bool) -> Table:
    room = honest_size(path.stat().st_size)
    with path.open("rb") as file:
        names, columns = read_parquet(file, most_values=room // 8, most_bytes=min(room, LARGEST))
    numbers = range(1, len(columns[0]) + 1 if columns else 1)
    return _columns(names, columns, _label(label, names, needed), subclass, path.name, numbers)


def _columns(
    names: list[str],
    values: Iterable[Sequence[Any]],
    own: str | None,
    subclass: str | None,
    file: str,
    numbers: Sequence[int],
) -> Table:
    """Return columns as a table.

    `own` is the column of labels, and `numbers` are the numbers of the rows in the file.
    """
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise InputError(
            f"FILE must have a different name for each column; {file} has {name!r} {times} times."
        )
    columns = dict(zip(names, values, strict=True))
    finer = _optional("subclass", subclass, _SUBCLASSES, names)
    left = [column for column in columns if column not in (own, finer)]
    rest = [column for column in left if not _is_index(column, columns[column])]
    if not rest:
        raise InputError(f"FILE must have columns of features; {file} has none.")
    features = []
    for column in rest:
        try:
            numeric = np.asarray(columns[column], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"columns of features must have numbers only; {column!r} has other values."
            ) from None
        bad = np.flatnonzero(~np.isfinite(numeric))
        if len(bad):
            raise InputError(
                f"features must be finite; column {column!r} has {numeric[bad[0]]} in row "
                f"{numbers[bad[0]]} of {file}."
            )
        features.append(numeric)
    notes = tuple(
        f"The column {column or 'without a name'} only numbers the rows and is left out."
        for column in left
        if column not in rest
    )
    y, z = (None if column is None else np.asarray(columns[column]) for column in (own, finer))
    x = np.column_stack(features)
    return _table(x, y, z, own or "", lambda point: f"in row {numbers[point]} of {file}", notes)


def _is_index(name: str, values: Sequence[Any]) -> bool:
    """Return whether a column is the index of a frame: no name, and distinct whole numbers."""
    if name not in _INDICES or len(set(values)) < len(values):
        return False
    return all(str(value).isdecimal() for value in values)


def _table(
    x: Any,
    y: Any,
    subclass: Any,
    label: str,
    place: Callable[[int], str] = "at index {}".format,
    notes: tuple[str, ...] = (),
) -> Table:
    _check_shapes(x, y, subclass)
    for name, values in (("label", y), ("subclass", subclass)):
        if values is not None:
            check_labels(name, values, place)
    x = x.astype(np.float64 if x.dtype != np.float32 else np.float32)
    checks.finite("features", x)
    return Table(x, y, subclass, label, notes)


def _check_shapes(x: Any, y: Any, subclass: Any) -> None:
    """Refuse arrays, or what a file declares of them, that are not points with their labels."""
    if len(x.shape) != 2 or 0 in x.shape or x.dtype.kind not in "fiub":
        raise InputError(
            f"features must be a matrix of numbers; got the shape {x.shape} of {x.dtype}."
        )
    for name, values in (("label", y), ("subclass", subclass)):
        if values is not None and values.shape != x.shape[:1]:
            raise InputError(
                f"{name} must have one value for each of the {x.shape[0]} points; got the shape "
                f"{values.shape}."
            )


def _label(given: str | None, names: list[str], needed: bool) -> str | None:
    """Return the name of the labels; None where they are not needed and there are none."""
    if not needed and given is None and not any(name.lower() in _LABELS for name in names):
        return None
    return _chosen("label", given, _LABELS, names)


def _chosen(what: str, given: str | None, usual: tuple[str, ...], names: list[str]) -> str:
    """Return the given name, or the only usual one that exists."""
    found = [name for name in names if name in usual or name.lower() in usual]
    if given is None and len(found) != 1:
        many = "more than one" if found else "none"
        raise InputError(
            f"{what} must be named because the file has {many} of {', '.join(usual)}; it has "
            f"{_listed(names)}."
        )
    return _optional(what, given, usual, names) or found[0]


def _optional(what: str, given: str | None, usual: tuple[str, ...], names: list[str]) -> str | None:
    """Return the given name, or the first usual one if any exists."""
    if given is None:
        return next((name for name in names if name.lower() in usual), None)
    if given not in names:
        raise InputError(f"{what} must be one of {_listed(names)}; got {given!r}.")
    return given


def _listed(names: list[str]) -> str:
    """Return the first and the last names, because labels are often the last."""
    half = _LISTED // 2
    shown = names if len(names) <= _LISTED else [*names[:half], "…", *names[-half:]]
    return ", ".join(shown)

"""Feature matrices with their labels, as files hold them, and the names of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.arrays import FloatArray
from featavg.auditing.labels import check_labels
from featavg.errors import InputError, did_you_mean

_LABELS = ("y", "label", "labels", "target", "class")
_SUBCLASSES = ("subclass", "subclasses", "subclass_label")
_LISTED = 10  # the maximum number of names in a message


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a file: the features, the labels, and the subclasses if there are any.

    Attributes
    ----------
    x : array of shape (points, features)
        The features.
    y : array of shape (points,), or None
        The labels; None where they are not needed and there are none.
    subclass : array of shape (points,), or None
        The subclasses, if there are any.
    label : str
        The name of the labels.
    ids : sequence
        What each point is called: its id or, without ids, its row or index in the file.
    id_name : {"id", "row", "index"}
        Which of these it is.
    notes : tuple of str
        Sentences for the user about how the file was read.
    """

    x: FloatArray
    y: Any
    subclass: NDArray[Any] | None
    label: str
    ids: Sequence[Any]
    id_name: str = "index"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roles:
    """Which columns or arrays of a file are what, as far as the user says.

    Attributes
    ----------
    label, subclass, id : str, optional
        The column, array or (for npy) file of the labels, of the subclasses and of the ids.
    drop : tuple of str
        Columns that are left out.
    need_labels : bool
        Whether to refuse a file without labels.
    """

    label: str | None = None
    subclass: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    need_labels: bool = True

    def found(self, names: list[str]) -> Found:
        """Return the names of the parts of a file, given the names of all columns or arrays."""
        for name in self.drop:
            optional("drop", name, (), names)
        left = [name for name in names if name not in self.drop]
        own = self._label(left)
        finer = optional("subclass", self.subclass, _SUBCLASSES, left)
        called = optional("id", self.id, (), left)
        given = [name for name in (own, finer, called) if name is not None]
        if len(set(given)) < len(given):
            raise InputError(
                f"label, subclass and id must have different names; got {', '.join(given)}."
            )
        return Found(own, finer, called, tuple(name for name in left if name not in given))

    def _label(self, names: list[str]) -> str | None:
        if self.need_labels or self.label is not None:
            return _chosen("label", self.label, _LABELS, names)
        usual = any(name.lower() in _LABELS for name in names)
        return _chosen("label", None, _LABELS, names) if usual else None


@dataclass(frozen=True)
class Found:
    """The names of labels, subclasses and ids, where there are any, and of all other parts."""

    label: str | None
    subclass: str | None
    id: str | None
    rest: tuple[str, ...]


def make_table(
    x: Any,
    y: Any,
    subclass: Any,
    ids: Any,
    label: str,
    place: Callable[[int], str] = "at index {}".format,
) -> Table:
    """Return checked arrays as a table; `place` describes where in the file a point is."""
    check_shapes(x, y, subclass, ids)
    for name, values in (("label", y), ("subclass", subclass)):
        if values is not None:
            check_labels(name, values, place)
    x = x.astype(np.float64 if x.dtype != np.float32 else np.float32)
    _check_finite(x)
    named = range(len(x)) if ids is None else np.asarray(ids).tolist()
    return Table(x, y, subclass, label, named, "index" if ids is None else "id")


def check_shapes(x: Any, y: Any, subclass: Any, ids: Any) -> None:
    """Refuse arrays, or what a file declares of them, that are not points with their labels."""
    if len(x.shape) != 2 or 0 in x.shape or x.dtype.kind not in "fiub":
        raise InputError(
            f"features must be a matrix of numbers; got the shape {x.shape} of {x.dtype}."
        )
    for name, values in (("label", y), ("subclass", subclass), ("id", ids)):
        if values is not None and values.shape != x.shape[:1]:
            raise InputError(
                f"{name} must have one value for each of the {x.shape[0]} points; got the shape "
                f"{values.shape}."
            )


def _check_finite(x: FloatArray) -> None:
    """Refuse a matrix with NaN or infinity."""
    bad = np.argwhere(~np.isfinite(x))
    if not len(bad):
        return
    row, column = bad[0]
    many = "1 value is not" if len(bad) == 1 else f"{len(bad)} values are not, the first one"
    raise InputError(
        f"features must be finite; {many}: {x[row, column]} in row {row}, column {column} of the "
        "matrix, counted from 0; fill in such values, or leave out their rows or columns."
    )


def _chosen(what: str, given: str | None, usual: tuple[str, ...], names: list[str]) -> str:
    """Return the given name, or the only usual one that exists."""
    found = [name for name in names if name in usual or name.lower() in usual]
    if given is None and len(found) != 1:
        many = "more than one" if found else "none"
        raise InputError(
            f"{what} must be named because the file has {many} of {', '.join(usual)}; it has "
            f"{listed(names)}."
        )
    return optional(what, given, usual, names) or found[0]


def optional(what: str, given: str | None, usual: tuple[str, ...], names: list[str]) -> str | None:
    """Return the given name, or the first usual one if any exists."""
    if given is None:
        return next((name for name in names if name.lower() in usual), None)
    if given not in names:
        meant = did_you_mean(given, names)
        raise InputError(f"{what} must be one of {listed(names)}; got {given!r}{meant}.")
    return given


def listed(names: list[str], last: str = ", ") -> str:
    """Return the first and the last names, because labels are often the last.

    Examples
    --------
    >>> listed(["a", "b", "c"], " and ")
    'a, b and c'
    """
    half = _LISTED // 2
    shown = names if len(names) <= _LISTED else [*names[:half], "…", *names[-half:]]
    return last.join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)

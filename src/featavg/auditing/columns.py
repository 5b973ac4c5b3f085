"""Columns of a csv or parquet file as a feature matrix with its labels."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.array_files import honest_size
from featavg.arrays import FloatArray
from featavg.auditing.table import Roles, Table, make_table
from featavg.checks import is_missing, parsed
from featavg.errors import InputError, shortened

# The names that pandas and R give to a column of row numbers.
_INDICES = ("", "Unnamed: 0", "__index_level_0__")
# Texts that stand for a missing number.
_GAPS = ("na", "n/a", "null", "none", "?")
_LONGEST_NAME = 1000  # of a column
_LISTED = 3  # the maximum number of places or columns in a message


@dataclass(frozen=True)
class Columns:
    """The columns of a file.

    Attributes
    ----------
    file : str
        The name of the file.
    values : mapping
        The values of each column.
    numbers : sequence of int
        The numbers of the rows in the file.
    """

    file: str
    values: Mapping[str, Sequence[Any]]
    numbers: Sequence[int]

    @classmethod
    def of(
        cls,
        file: str,
        names: list[str],
        values: Iterable[Sequence[Any]],
        numbers: Sequence[int],
    ) -> Columns:
        """Return columns; refuse a very long name, and two of the same name."""
        if too_long := [name for name in names if len(name) > _LONGEST_NAME]:
            raise InputError(
                f"FILE must have names of columns of at most {_LONGEST_NAME:,} characters; "
                f"{file} has {shortened(too_long[0])}."
            )
        name, times = Counter(names).most_common(1)[0] if names else ("", 0)
        if times > 1:
            raise InputError(
                f"FILE must have a different name for each column; {file} has {name!r} {times} "
                "times."
            )
        return cls(file, dict(zip(names, values, strict=True)), numbers)

    def table(self, roles: Roles) -> Table:
        """Return the columns that have a role as what they are, and all others as features."""
        found = roles.found(list(self.values))
        rest = [name for name in found.rest if not _is_index(name, self.values[name])]
        if not rest:
            raise InputError(f"FILE must have columns of features; {self.file} has none.")
        y, z = (
            None if name is None else self._labels(name) for name in (found.label, found.subclass)
        )
        ids = None if found.id is None else _objects(self.values[found.id])
        table = make_table(self._features(rest), y, z, ids, found.label or "", self._place)
        if ids is None:
            table = replace(table, ids=self.numbers, id_name="row")
        return replace(table, notes=tuple(self._notes(roles, found.rest, rest)))

    def _labels(self, name: str) -> NDArray[Any]:
        """Return a column of labels; refuse one that is too long, because an array pads all."""
        values = self.values[name]
        lengths = [len(value) if isinstance(value, str | bytes) else 0 for value in values]
        longest = max(lengths, default=0)
        if 4 * longest * len(values) > honest_size(sum(lengths)):
            point = lengths.index(longest)
            raise InputError(
                f"labels must be short; column {shortened(name)} has one of {longest:,} characters "
                f"{self._place(point)}, {shortened(values[point])}."
            )
        return np.asarray(values)

    def _place(self, point: int) -> str:
        return f"in row {self.numbers[point]} of {self.file}"

    def _notes(self, roles: Roles, left: Sequence[str], rest: Sequence[str]) -> Iterable[str]:
        for name in left:
            if name not in rest:
                called = name or "without a name"
                yield f"The column {called} only numbers the rows and is left out."
        for name in rest:
            if _looks_like_ids(name, self.values[name]):
                yield (
                    f"The column {name} has a different whole number in each row, as an id has, "
                    f"and is used as a feature: {_flag('id', name)} or {_flag('drop', name)} "
                    "leaves it out."
                )
        if roles.id is not None:
            values = self.values[roles.id]
            if repeated := len(values) - len(set(values)):
                yield f"The column {roles.id} is not unique: {repeated} of its values are repeated."

    def _features(self, names: Sequence[str]) -> FloatArray:
        """Return columns of numbers; refuse texts, missing values and infinity."""
        columns, missing = [], dict[str, list[int]]()
        for name in names:
            values = self.values[name]
            try:
                if any(isinstance(value, str) and "_" in value for value in values):
                    raise ValueError  # 1_0 is a number in Python alone
                numeric: FloatArray = np.asarray(values, dtype=np.float64)
            except (TypeError, ValueError):
                numeric = self._with_gaps(name)
            gaps = np.flatnonzero(np.isnan(numeric)).tolist()
            if gaps:
                missing[name] = gaps
            elif not np.isfinite(numeric).all():
                bad = int(np.flatnonzero(~np.isfinite(numeric))[0])
                raise InputError(
                    f"features must be finite; column {name!r} has {numeric[bad]} "
                    f"{self._place(bad)}: correct it, leave out the row, or leave out the column "
                    f"with {_flag('drop', name)}."
                )
            columns.append(numeric)
        if missing:
            raise InputError(self._missing(missing))
        return np.column_stack(columns)

    def _with_gaps(self, name: str) -> FloatArray:
        """Return a column whose missing values are NaN; refuse one of other texts."""
        values = self.values[name]
        numbers = np.full(len(values), np.nan)
        for point, value in enumerate(values):
            if is_missing(value) or str(value).strip().lower() in _GAPS:
                continue
            try:
                numbers[point] = parsed(value)
            except (TypeError, ValueError):
                raise InputError(
                    f"columns of features must have numbers only; {name!r} has "
                    f"{shortened(value, 40)} {self._place(point)}: leave the column out with "
                    f"{_flag('drop', name)}, or with {_flag('id', name)} if it names the points."
                ) from None
        return numbers

    def _missing(self, missing: Mapping[str, list[int]]) -> str:
        """Return which values are missing, and what to do."""
        places = [(point, name) for name, points in missing.items() for point in points]
        shown = [f"row {self.numbers[p]}, column {n!r}" for p, n in sorted(places)[:_LISTED]]
        many = "value is" if len(places) == 1 else "values are"
        more = "; …" if len(places) > len(shown) else ""
        names = list(missing) if len(missing) <= _LISTED else ["COLUMN"]
        flags = " ".join(_flag("drop", name) for name in names)
        return (
            f"features must have a value for every point; {len(places)} {many} missing in "
            f"{self.file} ({'; '.join(shown)}{more}): fill in what is missing, leave out these "
            f"rows, or leave out {'the column' if len(names) == 1 else 'the columns'} with {flags}."
        )


def _flag(flag: str, column: str) -> str:
    """Return what to add to the command line."""
    return f"--{flag} {shlex.quote(column)}"


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as they are, which takes no more memory for a long one among short ones."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _is_index(name: str, values: Sequence[Any]) -> bool:
    """Return whether a column is the index of a frame: no name, and distinct whole numbers."""
    return name in _INDICES and _are_distinct_counts(values)


def _looks_like_ids(name: str, values: Sequence[Any]) -> bool:
    """Return whether a column has the name and the values of an id."""
    last = name.lower().replace("-", "_").replace(" ", "_").split("_")[-1]
    named = last in ("id", "uuid", "index", "key") or name.endswith("Id")
    return named and _are_distinct_counts(values)


def _are_distinct_counts(values: Sequence[Any]) -> bool:
    if len(set(values)) < len(values):
        return False
    return all(str(value).isdecimal() for value in values)

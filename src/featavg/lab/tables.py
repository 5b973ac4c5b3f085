"""Measurements of experiments, and tidy tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.errors import InputError, shortened

Measurements = Mapping[str, Any]
"""The measurements of one seed: a number or array for each quantity."""

Results = Mapping[str, FloatArray]
"""The measurements of all seeds, stacked: the first axis of each array is the seed."""


@dataclass(frozen=True)
class Table:
    """A tidy table: one row for each observation."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(
                    f"each row of a table must have a value for each column {self.columns}; "
                    f"got {shortened(row)}."
                )

    @classmethod
    def of_groups(
        cls,
        columns: tuple[str, ...],
        groups: Mapping[tuple[Any, ...], Iterable[FloatArray]],
        axes: Sequence[Sequence[Any]] | None = None,
    ) -> Table:
        """Return the rows of several groups of arrays, by their labels; see `tidy_rows`."""
        parts = (tidy_rows(*g, label=label, axes=axes) for label, g in groups.items())
        return cls(columns, [row for part in parts for row in part])


def prefixed(name: str, measurements: Measurements) -> dict[str, Any]:
    """Return measurements under longer names, ``radius`` of ``coarse`` as ``coarse_radius``."""
    return {f"{name}_{key}": value for key, value in measurements.items()}


def stacked(rows: Sequence[Measurements]) -> dict[str, FloatArray]:
    """Return an array of each quantity from measurements at several times."""
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def tidy_rows(
    *values: FloatArray, label: Sequence[Any] = (), axes: Sequence[Sequence[Any]] | None = None
) -> list[tuple[Any, ...]]:
    """Return a row for each entry of arrays of one shape, whose first axis is the seed.

    Parameters
    ----------
    *values : arrays
        A column each, the last ones of the row.
    label : sequence
        Columns after the seed that are the same in all rows.
    axes : sequence of sequences, optional
        Columns after the label: what each position along the second and later axes stands for,
        by default its number. Axes beyond those given have no column.

    Examples
    --------
    >>> tidy_rows(np.array([[0.5, 0.25]]), label=("exact",), axes=[("left", "right")])
    [(0, 'exact', 'left', 0.5), (0, 'exact', 'right', 0.25)]
    """
    named = [range(size) for size in values[0].shape[1:]] if axes is None else axes
    return [
        (
            seed,
            *label,
            *(names[i] for names, i in zip(named, place, strict=False)),
            *(value[seed, *place].item() for value in values),
        )
        for seed, *place in np.ndindex(values[0].shape)
    ]

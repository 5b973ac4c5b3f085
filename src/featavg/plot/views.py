"""Results to look at as plain data, saved with a run as ``views.json``.

An experiment declares in `views` what there is to see: matrices, curves, claims. `draw` makes the
figure of them and the report a page on which a reader can move sliders; both know these three
kinds and no experiment by name. `parsed` reads them back, checked field by field, because a run
folder may come from anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.errors import InputError
from featavg.reading import at_most, entries, mapping, one_of, read_as

Number = float | None
"""A number, or None where there is none to show."""

ROLES = ("coarse", "fine", "third", "paper", "quiet")
DASHES = ("solid", "dashed", "dotted", "dash-dot", "points", "squares")
SCALES = ("linear", "log")
HOLDS, VIOLATED, NOT_STATED = "holds", "violated", "not stated at this scale"
"""The verdicts on a claim."""

_MOST_CELLS = 4096
_MOST_VIEWS, _MOST_PANELS, _MOST_LINES, _MOST_FRAMES, _MOST_CLAIMS = 12, 16, 40, 60, 1000


@dataclass(frozen=True)
class Matrix:
    """One heat map: `mean` and `std` over seeds, indexed by frame, row and column."""

    title: str
    mean: Sequence[list[list[Number]]] = at_most(_MOST_FRAMES)
    std: Sequence[list[list[Number]]] | None = at_most(_MOST_FRAMES, None)

    @classmethod
    def over_seeds(cls, title: str, matrices: ArrayLike) -> Matrix:
        """Summarise matrices of the shape (seeds, frames, rows, columns)."""
        stacked = np.asarray(matrices, dtype=np.float64)
        std = rounded(stacked.std(axis=0, ddof=1)) if len(stacked) > 1 else None
        return cls(title, rounded(stacked.mean(axis=0)), std)


@dataclass(frozen=True)
class HeatMaps:
    """Matrices side by side, and a slider where there is more than one frame.

    Attributes
    ----------
    rows, columns, value : str
        What a row, a column and an entry are, in the singular: "centre", "weight", "cosine".
    low, high : float
        The ends of the colour scale.
    frame : str
        What the slider goes along: "step"; empty where there is one frame.
    frames : sequence of str
        The label of each frame.
    row_names, column_names : sequence of str
        The name of each row and column; empty where they are numbered from 1.
    """

    title: str
    rows: str
    columns: str
    value: str
    panels: Sequence[Matrix] = at_most(_MOST_PANELS)
    low: float = 0.0
    high: float = 1.0
    frame: str = ""
    frames: Sequence[str] = at_most(_MOST_FRAMES, ("",))
    row_names: Sequence[str] = at_most(_MOST_CELLS, ())
    column_names: Sequence[str] = at_most(_MOST_CELLS, ())
    note: str = ""
    kind: str = field(default="heat-maps", init=False)


@dataclass(frozen=True)
class Line:
    """A curve: `mean` over seeds at each x, and the standard deviation where there are several.

    `role` says whose it is and so in which colour it is drawn, `dash` how.
    """

    label: str
    x: list[Number]
    mean: list[Number]
    std: list[Number] | None = None
    role: str = one_of(ROLES, "coarse")
    dash: str = one_of(DASHES, "solid")

    @classmethod
    def over_seeds(
        cls, label: str, x: ArrayLike, curves: ArrayLike, role: str, dash: str = "solid"
    ) -> Line:
        """Summarise curves of the shape (seeds, points); `x` may have a row for each seed."""
        y = np.atleast_2d(np.asarray(curves, dtype=np.float64))
        at = np.asarray(x, dtype=np.float64)
        at = at.mean(axis=0) if at.ndim == 2 else at
        with np.errstate(invalid="ignore"):  # infinite values become gaps
            mean, std = y.mean(axis=0), (y.std(axis=0, ddof=1) if len(y) > 1 else None)
        band = None if std is None else rounded(std)
        return cls(label, rounded(at), rounded(mean), band, role, dash)


@dataclass(frozen=True)
class Mark:
    """A line across a panel with its name: at an x, or at a y."""

    label: str
    at: float
    axis: str = one_of(("x", "y"), "x")


@dataclass(frozen=True)
class Panel:
    """Curves over one pair of axes."""

    title: str
    y: str
    lines: Sequence[Line] = at_most(_MOST_LINES)
    marks: Sequence[Mark] = at_most(_MOST_LINES, ())
    y_scale: str = one_of(SCALES, "linear")


@dataclass(frozen=True)
class Curves:
    """Panels over the same x, with one slider that reads all of them off.

    Attributes
    ----------
    x : str
        What the slider goes along: "radius (L2)", "ηt".
    x_scale : {"linear", "log"}
        How its axis is drawn.
    """

    title: str
    x: str
    panels: Sequence[Panel] = at_most(_MOST_PANELS)
    x_scale: str = one_of(SCALES, "linear")
    start: Number = None
    note: str = ""
    kind: str = field(default="curves", init=False)


@dataclass(frozen=True)
class ClaimRow:
    """A statement, and what all seeds together say of it."""

    id: str
    section: str
    statement: str
    bound: str
    reading: str
    verdict: str = field(metadata={"options": (HOLDS, VIOLATED, NOT_STATED)})
    measured: Number
    limit: Number
    slack: Number
    violations: int
    seeds: int
    note: str = ""


@dataclass(frozen=True)
class Claims:
    """A ledger of claims, to be filtered and sorted."""

    title: str
    claims: Sequence[ClaimRow] = at_most(_MOST_CLAIMS)
    note: str = ""
    kind: str = field(default="claims", init=False)


View = HeatMaps | Curves | Claims


def plain(views: Sequence[View]) -> list[dict[str, Any]]:
    """Return views as what JSON can hold.

    Examples
    --------
    >>> line = Line.over_seeds("exact", [0, 1], [[1, 0.5], [1, 0.7]], "coarse")
    >>> shown = plain([Curves("Robust accuracy", "radius", [Panel("", "accuracy", [line])])])
    >>> shown[0]["panels"][0]["lines"][0]["mean"]
    [1.0, 0.6]
    """
    return [asdict(view) for view in views]


def rounded(values: ArrayLike, digits: int = 6) -> Any:
    """Return numbers for JSON: `digits` significant digits, and None for NaN and infinity.

    Examples
    --------
    >>> rounded(np.array([1.23456, np.nan, 1234567.0]), 3)
    [1.23, None, 1230000.0]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [rounded(value, digits) for value in array]
    return float(f"{float(array):.{digits}g}") if np.isfinite(array) else None


_KINDS: dict[str, type[View]] = {"heat-maps": HeatMaps, "curves": Curves, "claims": Claims}


def parsed(data: Any) -> list[View]:
    """Return the views that plain data describe, or refuse data that describe none.

    Raises
    ------
    InputError
        Where a field is missing, of another type, or larger than a page can show.
    """
    return [_view(item) for item in entries("views", data, _MOST_VIEWS)]


def _view(data: Any) -> View:
    kind = checks.choice("kind", str(mapping("a view", data).get("kind"))[:40], _KINDS)
    view = read_as(_KINDS[kind], "a view", data)
    if isinstance(view, HeatMaps):
        _check_matrices(view)
    elif isinstance(view, Curves):
        for panel in view.panels:
            for line in panel.lines:
                _check_lengths(line)
    return view


def _check_lengths(line: Line) -> None:
    if not len(line.x) == len(line.mean) == len(line.mean if line.std is None else line.std):
        raise InputError(
            f"x, mean and std must be equally long; got {len(line.x)} and {len(line.mean)}."
        )


def _check_matrices(view: HeatMaps) -> None:
    if not view.low < view.high:
        raise InputError(f"low must be less than high; got {view.low} and {view.high}.")
    for panel in view.panels:
        kinds = [panel.mean] if panel.std is None else [panel.mean, panel.std]
        matrices = [matrix for kind in kinds for matrix in kind]
        shapes = {(len(matrix), len(row)) for matrix in matrices for row in matrix}
        frames = {len(kind) for kind in kinds}
        if (
            frames != {len(view.frames)}
            or not all(matrices)
            or len(shapes) != 1
            or math.prod(*shapes) > _MOST_CELLS
        ):
            raise InputError(
                f"mean and std must have a matrix of one shape, of at most {_MOST_CELLS} entries, "
                f"for each of {len(view.frames)} frames; got {len(matrices)} of {len(shapes)} "
                "shapes."
            )

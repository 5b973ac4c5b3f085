"""Results to look at as plain data, saved with a run as ``views.json``.

An experiment declares in `views` what there is to see: matrices, curves, dots, claims. `draw` makes
the figure of them and the report a page on which a reader can move sliders; both know these four
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
from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.reading import at_most, entries, mapping, one_of, read_as

Number = float | None
"""A number, or None where there is none to show."""

ROLES = ("coarse", "fine", "third", "paper", "quiet")
DASHES = ("solid", "dashed", "dotted", "dash-dot", "points", "squares")
MARKERS = ("dot", "ring", "square", "bar")
SCALES = ("linear", "log")
HOLDS, VIOLATED, NOT_STATED = "holds", "violated", "not stated at this scale"
"""The verdicts on a claim."""

_MOST_CELLS = 4096
_MOST_VIEWS, _MOST_PANELS, _MOST_LINES, _MOST_FRAMES, _MOST_CLAIMS = 12, 16, 40, 60, 1000
_MOST_ROWS, _MOST_BESIDE = 100, 4


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

    `role` says whose it is and so in which colour it is drawn, `dash` how. `low` and `high` are the
    ends of the band around it, such as the smallest and the largest of several values; without them
    it is one standard deviation wide to both sides.
    """

    label: str
    x: list[Number]
    mean: list[Number]
    std: list[Number] | None = None
    role: str = one_of(ROLES, "coarse")
    dash: str = one_of(DASHES, "solid")
    low: list[Number] | None = None
    high: list[Number] | None = None

    @property
    def band(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and upper end of the band around the curve; None where there is none."""
        if self.low is not None and self.high is not None:
            return np.array(self.low, dtype=np.float64), np.array(self.high, dtype=np.float64)
        if self.std is None:
            return None
        mean = np.array(self.mean, dtype=np.float64)
        std = np.nan_to_num(np.array(self.std, dtype=np.float64))
        return mean - std, mean + std

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

    @classmethod
    def between(
        cls, label: str, x: ArrayLike, values: ArrayLike, role: str, dash: str = "solid"
    ) -> Line:
        """Return the mean of values of the shape (points, values), in a band that holds all.

        Examples
        --------
        >>> line = Line.between("own", [1, 2], [[0, 2], [1, 5]], "fine")
        >>> line.low, line.mean, line.high
        ([0.0, 1.0], [1.0, 3.0], [2.0, 5.0])
        """
        y = np.asarray(values, dtype=np.float64)
        low, mean, high = (rounded(f(y, axis=1)) for f in (np.min, np.mean, np.max))
        return cls(label, rounded(x), mean, None, role, dash, low, high)


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
    paths : bool
        Whether the lines are paths, which need space on all sides, and the axes no 0.
    """

    title: str
    x: str
    panels: Sequence[Panel] = at_most(_MOST_PANELS)
    x_scale: str = one_of(SCALES, "linear")
    start: Number = None
    paths: bool = False
    note: str = ""
    kind: str = field(default="curves", init=False)


@dataclass(frozen=True)
class DotSeries:
    """A dot in each row: `mean` over seeds, and the standard deviation where there are several.

    None stands for a row without a dot. `role` gives the colour. `marker` is a full "dot", an open
    "ring" or "square", or a "bar" across the row, for what theory predicts of it.
    """

    label: str
    mean: Sequence[Number] = at_most(_MOST_ROWS)
    std: Sequence[Number] | None = at_most(_MOST_ROWS, None)
    role: str = one_of(ROLES, "coarse")
    marker: str = one_of(MARKERS, "dot")

    @classmethod
    def over_seeds(
        cls, label: str, values: ArrayLike, role: str = "coarse", marker: str = "dot"
    ) -> DotSeries:
        """Summarise values of the shape (seeds, rows); a row with a NaN or infinity has no dot.

        Examples
        --------
        >>> DotSeries.over_seeds("radius", [[17.0, 38.0], [18.0, 38.0]]).std
        [0.707107, 0.0]
        """
        line = Line.over_seeds(label, [], values, role)
        return cls(label, line.mean, line.std, role, marker)


@dataclass(frozen=True)
class DotPanel:
    """Dots of all rows over one axis.

    Attributes
    ----------
    x : str
        What the axis shows, with its unit: "radius (L2)". Panels with the same `x`, `scale` and
        `zero` have one scale.
    marks : sequence of Mark
        Lines across all rows, at an x.
    scale : {"linear", "log"}
        How the axis is drawn.
    zero : bool
        Whether a linear axis begins at 0; otherwise it begins near the smallest value.
    """

    title: str
    x: str
    series: Sequence[DotSeries] = at_most(_MOST_LINES)
    marks: Sequence[Mark] = at_most(_MOST_LINES, ())
    scale: str = one_of(SCALES, "linear")
    zero: bool = False


@dataclass(frozen=True)
class Dots:
    """Named rows, and panels side by side that have a dot with its deviation in each of them.

    Attributes
    ----------
    rows : sequence of str
        The name of each row, from top to bottom.
    groups : sequence of str
        The heading that each row stands under; rows of the same one follow each other. Empty for
        rows without headings.
    panels : sequence of DotPanel
        At most four.
    """

    title: str
    rows: Sequence[str] = at_most(_MOST_ROWS)
    panels: Sequence[DotPanel] = at_most(_MOST_BESIDE)
    groups: Sequence[str] = at_most(_MOST_ROWS, ())
    note: str = ""
    kind: str = field(default="dots", init=False)


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


View = HeatMaps | Curves | Dots | Claims


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


_KINDS: dict[str, type[View]] = {
    **{"heat-maps": HeatMaps, "curves": Curves, "dots": Dots, "claims": Claims}
}


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
    elif isinstance(view, Dots):
        _check_rows(view)
    return view


def _check_lengths(line: Line) -> None:
    bands = [band for band in (line.std, line.low, line.high) if band is not None]
    if len({len(line.x), len(line.mean), *map(len, bands)}) != 1:
        raise InputError(
            "x, mean, std, low and high must be equally long; got "
            f"{len(line.x)} and {len(line.mean)}."
        )
    if (line.low is None) != (line.high is None):
        raise InputError("low and high must be given together; got one of them.")


def _check_rows(view: Dots) -> None:
    series = [one for panel in view.panels for one in panel.series]
    lists = [values for one in series for values in (one.mean, one.std) if values is not None]
    lengths = {len(values) for values in lists} | {len(view.groups) or len(view.rows)}
    if not view.rows or lengths != {len(view.rows)}:
        raise InputError(
            f"mean, std and groups must have an entry for each of {len(view.rows)} rows, of which "
            f"there must be at least one; got {sorted(lengths)} entries."
        )
    if any(mark.axis != "x" for panel in view.panels for mark in panel.marks):
        raise InputError("the marks of dots must be at an x.")


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

"""Reading ``views.json``: checked field by field, because a run folder may come from anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from featavg.errors import InputError
from featavg.plot.views import (
    DASHES,
    HOLDS,
    NOT_STATED,
    ROLES,
    SCALES,
    VIOLATED,
    ClaimRow,
    Claims,
    Curves,
    HeatMaps,
    Line,
    Mark,
    Matrix,
    Number,
    Panel,
    View,
)

# Generous for what people look at, and little enough for a page that opens at once.
MOST_VIEWS, MOST_PANELS, MOST_LINES, MOST_FRAMES = 12, 16, 40, 60
MOST_POINTS, MOST_CELLS, MOST_CLAIMS, LONGEST_TEXT = 2000, 4096, 1000, 2000


def parsed(data: Any) -> list[View]:
    """Return the views that plain data describe, or refuse data that describe none.

    Raises
    ------
    InputError
        Where a field is missing, of another type, or larger than a page can show.
    """
    return [_view(item) for item in _list(data, "views", MOST_VIEWS)]


def _view(data: Any) -> View:
    item = _mapping(data, "a view")
    makers: dict[str, Callable[[Mapping[str, Any]], View]] = {
        "heat-maps": _heat_maps,
        "curves": _curves,
        "claims": _claims,
    }
    kind = item.get("kind")
    if not isinstance(kind, str) or kind not in makers:
        raise InputError(f"kind must be one of {', '.join(makers)}; got {str(kind)[:40]!r}.")
    return makers[kind](item)


def _heat_maps(item: Mapping[str, Any]) -> HeatMaps:
    frames = [_text(label, "frames") for label in _list(item.get("frames"), "frames", MOST_FRAMES)]
    panels = []
    for panel in _list(item.get("panels"), "panels", MOST_PANELS):
        matrix = _mapping(panel, "a panel")
        std = matrix.get("std")
        panels.append(
            Matrix(
                _text(matrix.get("title"), "title"),
                _matrices(matrix.get("mean"), len(frames)),
                None if std is None else _matrices(std, len(frames)),
            )
        )
        _same_shape(panels[-1].mean, panels[-1].std)
    low, high = (_finite(item.get(name), name) for name in ("low", "high"))
    if not low < high:
        raise InputError(f"low must be less than high; got {low} and {high}.")
    return HeatMaps(
        title=_text(item.get("title"), "title"),
        rows=_text(item.get("rows"), "rows"),
        columns=_text(item.get("columns"), "columns"),
        value=_text(item.get("value"), "value"),
        low=low,
        high=high,
        frame=_text(item.get("frame"), "frame"),
        frames=frames,
        panels=panels,
        row_names=_texts(item.get("row_names"), "row_names"),
        column_names=_texts(item.get("column_names"), "column_names"),
        note=_text(item.get("note"), "note"),
    )


def _curves(item: Mapping[str, Any]) -> Curves:
    panels = []
    for data in _list(item.get("panels"), "panels", MOST_PANELS):
        panel = _mapping(data, "a panel")
        panels.append(
            Panel(
                _text(panel.get("title"), "title"),
                _text(panel.get("y"), "y"),
                [_line(line) for line in _list(panel.get("lines"), "lines", MOST_LINES)],
                [_mark(mark) for mark in _list(panel.get("marks"), "marks", MOST_LINES)],
                _one_of(panel.get("y_scale"), "y_scale", SCALES),
            )
        )
    return Curves(
        _text(item.get("title"), "title"),
        _text(item.get("x"), "x"),
        panels,
        _one_of(item.get("x_scale"), "x_scale", SCALES),
        _number(item.get("start"), "start"),
        _text(item.get("note"), "note"),
    )


def _line(data: Any) -> Line:
    item = _mapping(data, "a line")
    x, mean = (_numbers(item.get(name), name) for name in ("x", "mean"))
    std = None if item.get("std") is None else _numbers(item["std"], "std")
    if not len(x) == len(mean) == len(mean if std is None else std):
        raise InputError(f"x, mean and std must be equally long; got {len(x)} and {len(mean)}.")
    role, dash = _one_of(item.get("role"), "role", ROLES), _one_of(item.get("dash"), "dash", DASHES)
    return Line(_text(item.get("label"), "label"), x, mean, std, role, dash)


def _mark(data: Any) -> Mark:
    item = _mapping(data, "a mark")
    axis = _one_of(item.get("axis"), "axis", ("x", "y"))
    return Mark(_text(item.get("label"), "label"), _finite(item.get("at"), "at"), axis)


def _claims(item: Mapping[str, Any]) -> Claims:
    rows = [_claim(row) for row in _list(item.get("claims"), "claims", MOST_CLAIMS)]
    return Claims(_text(item.get("title"), "title"), rows, _text(item.get("note"), "note"))


def _claim(data: Any) -> ClaimRow:
    item = _mapping(data, "a claim")
    return ClaimRow(
        id=_text(item.get("id"), "id"),
        section=_text(item.get("section"), "section"),
        statement=_text(item.get("statement"), "statement"),
        bound=_text(item.get("bound"), "bound"),
        reading=_text(item.get("reading"), "reading"),
        verdict=_one_of(item.get("verdict"), "verdict", (HOLDS, VIOLATED, NOT_STATED)),
        measured=_number(item.get("measured"), "measured"),
        limit=_number(item.get("limit"), "limit"),
        slack=_number(item.get("slack"), "slack"),
        violations=_count(item.get("violations"), "violations"),
        seeds=_count(item.get("seeds"), "seeds"),
        note=_text(item.get("note"), "note"),
    )


def _matrices(data: Any, frames: int) -> list[list[list[Number]]]:
    """Return matrices of one shape, one for each frame."""
    matrices = [
        [_numbers(row, "a row") for row in _list(matrix, "a matrix", MOST_CELLS)]
        for matrix in _list(data, "mean and std", MOST_FRAMES)
    ]
    shapes = {(len(matrix), len(row)) for matrix in matrices for row in matrix}
    if len(matrices) != frames or len(shapes) != 1 or math.prod(*shapes) > MOST_CELLS:
        raise InputError(
            f"there must be a matrix of one shape, of at most {MOST_CELLS} entries, for each of "
            f"{frames} frames; got {len(matrices)} of {len(shapes)} shapes."
        )
    return matrices


def _same_shape(mean: list[list[list[Number]]], std: list[list[list[Number]]] | None) -> None:
    if std is not None and (len(mean[0]), len(mean[0][0])) != (len(std[0]), len(std[0][0])):
        raise InputError("mean and std must have the same shape.")


def _mapping(data: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise InputError(f"{name} must be an object; got {type(data).__name__}.")
    return data


def _list(data: Any, name: str, most: int) -> list[Any]:
    if not isinstance(data, list | tuple) or len(data) > most:
        raise InputError(f"{name} must be a list of at most {most}; got {_size(data)}.")
    return list(data)


def _size(data: Any) -> str:
    kind = type(data).__name__
    return f"{kind} of {len(data)}" if isinstance(data, list | tuple) else kind


def _numbers(data: Any, name: str) -> list[Number]:
    return [_number(value, name) for value in _list(data, name, MOST_POINTS)]


def _number(value: Any, name: str) -> Number:
    return None if value is None else _finite(value, name)


def _finite(value: Any, name: str) -> float:
    # true is an int to Python, and 10**400 no float
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308:
        return float(value)
    raise InputError(f"{name} must be a finite number; got {type(value).__name__}.")


def _count(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**9:
        raise InputError(f"{name} must be a count; got {type(value).__name__}.")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise InputError(f"{name} must be a text of at most {LONGEST_TEXT} characters.")
    return value


def _texts(values: Any, name: str) -> list[str]:
    return [_text(value, name) for value in _list(values, name, MOST_CELLS)]


def _one_of(value: Any, name: str, allowed: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}; got {str(value)[:40]!r}.")
    return value

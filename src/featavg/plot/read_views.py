"""Reading ``views.json``: checked field by field, because a run folder may come from anywhere."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from featavg.errors import InputError
from featavg.plot.views import Claims, Curves, HeatMaps, Line, Matrix, Panel, View

MOST_POINTS, MOST_CELLS, LONGEST_TEXT = 2000, 4096, 2000
"""Points of a line, entries of a matrix and characters of a text that are read at most.

Generous for people, and little enough for a page that opens at once.
"""

_MOST_VIEWS, _MOST_PANELS, _MOST_LINES, _MOST_FRAMES, _MOST_CLAIMS = 12, 16, 40, 60, 1000
_MOST = {
    (Panel, "lines"): _MOST_LINES,
    (Panel, "marks"): _MOST_LINES,
    (Curves, "panels"): _MOST_PANELS,
    (HeatMaps, "panels"): _MOST_PANELS,
    (HeatMaps, "frames"): _MOST_FRAMES,
    (HeatMaps, "row_names"): MOST_CELLS,
    (HeatMaps, "column_names"): MOST_CELLS,
    (Matrix, "mean"): _MOST_FRAMES,
    (Matrix, "std"): _MOST_FRAMES,
    (Claims, "claims"): _MOST_CLAIMS,
}
_KINDS: dict[str, type[View]] = {"heat-maps": HeatMaps, "curves": Curves, "claims": Claims}


def parsed(data: Any) -> list[View]:
    """Return the views that plain data describe, or refuse data that describe none.

    Raises
    ------
    InputError
        Where a field is missing, of another type, or larger than a page can show.
    """
    return [_view(item) for item in _list(data, "views", _MOST_VIEWS)]


def _view(data: Any) -> View:
    kind = _mapping(data, "a view").get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"kind must be one of {', '.join(_KINDS)}; got {str(kind)[:40]!r}.")
    return _made(_KINDS[kind], data)


def _made(kind: type[Any], data: Any) -> Any:
    """Return an object of a class of views, each field read as its annotation says."""
    item, hints = _mapping(data, f"a {kind.__name__}"), get_type_hints(kind)
    made = kind(
        **{
            field.name: _value(kind, field, hints[field.name], item.get(field.name))
            for field in fields(kind)
            if field.init
        }
    )
    if isinstance(made, Line):
        _check_lengths(made)
    elif isinstance(made, HeatMaps):
        _check_matrices(made)
    return made


def _value(kind: type[Any], field: Field[Any], hint: Any, value: Any) -> Any:
    if "options" in field.metadata:
        return _one_of(value, field.name, field.metadata["options"])
    most = _MOST.get((kind, field.name), MOST_POINTS)
    return _read(hint, value, field.name, most)


def _read(hint: Any, value: Any, name: str, most: int) -> Any:
    """Return a value of the annotated type, or refuse it."""
    if get_origin(hint) in (Union, types.UnionType):  # of None and one other
        (hint,) = (option for option in get_args(hint) if option is not types.NoneType)
        return None if value is None else _read(hint, value, name, most)
    if get_args(hint):  # a sequence
        (entry,) = get_args(hint)
        return [_read(entry, item, name, MOST_POINTS) for item in _list(value, name, most)]
    if is_dataclass(hint):
        return _made(hint, value)  # type: ignore[arg-type]
    return {str: _text, float: _finite, int: _count}[hint](value, name)


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
            or math.prod(*shapes) > MOST_CELLS
        ):
            raise InputError(
                f"mean and std must have a matrix of one shape, of at most {MOST_CELLS} entries, "
                f"for each of {len(view.frames)} frames; got {len(matrices)} of {len(shapes)} "
                "shapes."
            )


def _mapping(data: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise InputError(f"{name} must be an object; got {type(data).__name__}.")
    return data


def _list(data: Any, name: str, most: int) -> list[Any]:
    if not isinstance(data, list | tuple) or len(data) > most:
        size = f" of {len(data)}" if isinstance(data, list | tuple) else ""
        kind = type(data).__name__
        raise InputError(f"{name} must be a list of at most {most}; got {kind}{size}.")
    return list(data)


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


def _one_of(value: Any, name: str, allowed: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}; got {str(value)[:40]!r}.")
    return value

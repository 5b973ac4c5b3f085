"""Reading ``views.json``: checked field by field, because a run folder may come from anywhere."""

from __future__ import annotations

import math
from typing import Any

from featavg import checks
from featavg.errors import InputError
from featavg.plot.views import MOST_CELLS, Claims, Curves, HeatMaps, Line, View
from featavg.reading import entries, mapping, read_as

_MOST_VIEWS = 12
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
            or math.prod(*shapes) > MOST_CELLS
        ):
            raise InputError(
                f"mean and std must have a matrix of one shape, of at most {MOST_CELLS} entries, "
                f"for each of {len(view.frames)} frames; got {len(matrices)} of {len(shapes)} "
                "shapes."
            )

from __future__ import annotations

import json

import numpy as np
import pytest

from featavg import InputError
from featavg.drawing.views import (
    Curves,
    DotPanel,
    Dots,
    DotSeries,
    HeatMaps,
    Line,
    Mark,
    Matrix,
    Panel,
    parsed,
    plain,
)


def test_views_survive_being_saved(rng):
    x = np.arange(4.0)
    curve = Line.over_seeds("a", x, rng.random((3, 4)), "fine", "dashed")
    gap = Line.over_seeds("b", [x, x + 1], [[1, np.inf, np.nan, 2.0]] * 2, "third")
    assert gap.mean == [1, None, None, 2]
    assert gap.x == [0.5, 1.5, 2.5, 3.5]
    band = Line.between("c", x, rng.random((4, 3)), "coarse")
    views = [
        Curves("c", "x", [Panel("p", "y", [curve, gap, band])]),
        HeatMaps(
            "h",
            "r",
            "c",
            "v",
            [Matrix.over_seeds("m", rng.random((3, 2, 4, 5)))],
            low=-1,
            frame="f",
            frames=["1", "2"],
        ),
        HeatMaps("h", "r", "c", "v", [Matrix.over_seeds("m", rng.random((3, 1, 4, 5)))]),
        Dots(
            "d",
            ["a", "b", "c"],
            [
                DotPanel("p", "x", [DotSeries.over_seeds("s", rng.random((4, 3)), "fine", "bar")]),
                DotPanel("q", "x", [DotSeries("s", [1, None, 2])], [Mark("m", 3.0)], "log", True),
            ],
            ["g", "g", "h"],
            "note",
        ),
    ]
    assert plain(parsed(json.loads(json.dumps(plain(views))))) == json.loads(
        json.dumps(plain(views))
    )


def test_a_row_of_dots_that_one_seed_does_not_have_is_empty():
    series = DotSeries.over_seeds("s", [[1.0, np.nan, 3.0], [2.0, 5.0, 3.0]], "third", "ring")
    assert series == DotSeries("s", [1.5, None, 3.0], [0.707107, None, 0.0], "third", "ring")
    assert DotSeries.over_seeds("s", [[1.0, np.inf]]).mean == [1.0, None]


def dots(**changes):
    panel = {"title": "p", "x": "x", "series": [{"label": "s", "mean": [1, 2], "std": [0, None]}]}
    view = {"kind": "dots", "title": "d", "rows": ["a", "b"], "panels": [panel]}
    panel.update({name[6:]: changes.pop(name) for name in list(changes) if name[:6] == "panel_"})
    return [view | changes]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rows": ["a", "b", "c"]}, "for each of 3 rows"),
        ({"rows": []}, "at least one"),
        ({"rows": ["a"] * 101}, "at most 100"),
        ({"groups": ["a"]}, "for each of 2 rows"),
        ({"panel_series": [{"label": "", "mean": [1, 2], "std": [1]}]}, "for each of 2 rows"),
        ({"panel_series": [{"label": "", "mean": [1, 2], "marker": "star"}]}, "marker must be"),
        ({"panel_series": [{"label": "", "mean": [1, 2], "role": '"><b>'}]}, "role must be"),
        ({"panel_series": [{"label": "", "mean": [1, "2"]}]}, "must be a number"),
        ({"panel_scale": "cubic"}, "scale must be"),
        ({"panel_zero": 1}, "zero must be"),
        ({"panel_marks": [{"label": "", "at": 1, "axis": "y"}]}, "must be at an x"),
        ({"panel_marks": [{"label": "", "at": None}]}, "at must be a number"),
        ({"panels": dots()[0]["panels"] * 5}, "at most 4"),
    ],
)
def test_dots_that_cannot_be_shown_are_refused(changes, reason):
    assert len(parsed(dots())) == 1
    with pytest.raises(InputError, match=reason):
        parsed(dots(**changes))


def test_a_band_has_two_ends_as_long_as_the_curve():
    for low, high, message in (
        ([0.0], [1.0], "equally long"),
        ([0.0, 0.0], None, "given together"),
    ):
        line = Line("a", [0.0, 1.0], [0.5, 0.5], low=low, high=high)
        with pytest.raises(InputError, match=message):
            parsed(json.loads(json.dumps(plain([Curves("c", "x", [Panel("p", "y", [line])])]))))

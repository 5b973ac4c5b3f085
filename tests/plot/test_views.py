from __future__ import annotations

import json

import numpy as np

from featavg.plot.views import Curves, HeatMaps, Line, Matrix, Panel, parsed, plain


def test_views_survive_being_saved(rng):
    x = np.arange(4.0)
    curve = Line.over_seeds("a", x, rng.random((3, 4)), "fine", "dashed")
    gap = Line.over_seeds("b", [x, x + 1], [[1, np.inf, np.nan, 2.0]] * 2, "third")
    assert gap.mean == [1, None, None, 2]
    assert gap.x == [0.5, 1.5, 2.5, 3.5]
    views = [
        Curves("c", "x", [Panel("p", "y", [curve, gap])]),
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
    ]
    assert plain(parsed(json.loads(json.dumps(plain(views))))) == json.loads(
        json.dumps(plain(views))
    )

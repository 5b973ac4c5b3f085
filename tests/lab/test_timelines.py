from __future__ import annotations

import numpy as np

from featavg.lab.timelines import Series, through_training


def test_a_band_reaches_over_all_seeds_and_lines_of_one_colour_differ_by_their_dash():
    results = {
        "net_low": np.array([[1.0, 2.0], [0.0, 3.0]]),
        "net_high": np.array([[4.0, 5.0], [2.0, 9.0]]),
        **{f"net_{name}": np.ones((2, 2)) for name in "abc"},
    }
    series = Series(
        "title",
        {"a": "a", "b": "b", "c": "c"},
        bands={("low", "high"): "own"},
        roles={"a": "quiet", "c": "quiet"},
    )
    times = {"net": np.array([[1.0, 2.0], [1.0, 2.0]])}
    view = through_training(
        results, networks={"net": ("", "fine")}, times=times, series=[series], x="t", x_scale="log"
    )
    band, a, b, c = view.panels[0].lines
    assert (band.label, band.low, band.high, band.role) == ("own", [0, 2], [4, 9], "fine")
    assert [(line.role, line.dash) for line in (band, a, b, c)] == [
        ("fine", "solid"),
        ("quiet", "solid"),
        ("fine", "dashed"),
        ("quiet", "dashed"),
    ]

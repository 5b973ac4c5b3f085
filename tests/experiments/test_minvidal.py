from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from featavg.experiments import minvidal


@pytest.mark.slow
def test_min_vidal_follows_bounds_that_are_in_order():
    found = minvidal.measure(minvidal.EXPERIMENT.quick, 0)
    for power in (1, 2, 3):
        for low, high in (
            ("averaging_lower", "averaging_upper"),
            ("decoupled_lower", "decoupled_upper"),
            ("radius_lower", "radius"),
        ):
            assert (found[f"p{power}_{low}"] <= found[f"p{power}_{high}"]).all()
        assert found[f"p{power}_final_imbalance"] < 0.01  # steps small enough for gradient flow
    assert found["p1_radius_lower"][-1] == pytest.approx(found["p1_radius"][-1], rel=1e-6)
    assert not found["p3_radius_lower"].any()  # nothing is proved for higher powers


@pytest.mark.slow
def test_min_vidal_says_so_where_its_rules_do_not_hold():
    """A start so large that training hardly moves it: the first rule fails."""
    lazy = replace(minvidal.EXPERIMENT.quick, initial_norm=3.0, steps=50, radius_samples=5)
    found = {name: np.asarray([value]) for name, value in minvidal.measure(lazy, 0).items()}
    assert not minvidal.expects(lazy)[0].judge(found).holds

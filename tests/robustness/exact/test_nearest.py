from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from featavg.robustness.exact.nearest import Rows, nearest_point
from support.zoo import SEEDS


@settings(deadline=None)
@given(SEEDS)
def test_nearest_point_is_feasible_and_its_distance_proved(seed):
    rng = np.random.default_rng(seed)
    count, dim = int(rng.integers(1, 25)), int(rng.integers(1, 8))
    A = rng.standard_normal((count, dim))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = rng.standard_normal(count) - 0.3
    rows = Rows.of(A, b)
    answer = nearest_point(rows)
    if answer.point is None:
        assert answer.distance > 1e5
        return
    assert (A @ answer.point <= b + 1e-8).all()
    assert np.linalg.norm(answer.point) == pytest.approx(answer.distance, rel=1e-6, abs=1e-8)
    closer = nearest_point(rows, cutoff=answer.distance / 2)
    assert closer.distance >= answer.distance / 2 * (1 - 1e-9)

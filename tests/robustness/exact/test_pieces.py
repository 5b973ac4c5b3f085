"""The linear pieces that an exact search goes through."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from featavg.robustness.exact.contest import PointProblem
from featavg.robustness.exact.geometry import Cap, Euclidean
from featavg.robustness.exact.pieces import Pieces
from support.zoo import SEEDS


@settings(deadline=None)
@given(SEEDS)
def test_reach_holds_every_point_of_the_cap(seed):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 6))
    z = rng.standard_normal(5)
    problem = PointProblem(rng.standard_normal((5, dim)), z, np.abs(z), (), 1e-14)
    pieces = Pieces(problem, Euclidean(), 1.0)
    normal = rng.standard_normal(dim)
    normal /= np.linalg.norm(normal)
    cap = Cap(2.0, normal, float(rng.uniform(0, 2)))
    low, high = pieces.reach(np.arange(5), cap)
    v = rng.standard_normal((4000, dim))
    v *= 2 * rng.random((4000, 1)) ** (1 / dim) / np.linalg.norm(v, axis=1, keepdims=True)
    t = v @ normal
    inside = np.vstack([v[t >= cap.distance], cap.distance * normal, 2 * normal])
    u = pieces.z + inside @ pieces.V.T
    assert (u >= low - 1e-9).all()
    assert (u <= high + 1e-9).all()

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from featavg.robustness.exact.geometry import Cap, Euclidean
from featavg.robustness.exact.max_norm import MaxNorm
from featavg.robustness.exact.nearest import (
    Rows,
    nearest_point,
    proved_distance,
    proved_plane,
    second_opinion,
)
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


def test_reach_of_rows_along_the_normal_keeps_all_digits():
    """The part across the normal is tiny, and a difference of squares would lose it."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(30)
    normal /= np.linalg.norm(normal)
    for exponent in np.linspace(-12, -3, 40):
        across = rng.standard_normal(30)
        across -= (across @ normal) * normal
        across /= np.linalg.norm(across)
        row = (normal + 10**exponent * across)[None]
        low, high = Euclidean().reach(row, np.linalg.norm(row, axis=1), Cap(1.0, normal, 0.5))
        furthest = 0.5 * normal - np.sqrt(0.75) * across
        assert low[0] <= (row @ furthest)[0] + 1e-15
        assert high[0] >= 1 - 1e-15


def test_rows_with_errors_are_never_proved_to_be_empty():
    """v1 <= -1 and v1 >= 1, but for errors of the slopes by which they meet far out."""
    A, b = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0])
    for error in (0.05, 1e-8, 1e-13):
        rows = Rows(A, b, np.full(2, error), np.zeros(2))
        truth = Rows.of(A - [0, error], b)  # meet at (0, 1 / error)
        assert (truth.A @ [0, 1 / error] <= truth.b).all()
        for geometry in (Euclidean(), MaxNorm(np.full(2, -np.inf), np.full(2, np.inf))):
            distance, _, _ = geometry.proved(rows, np.ones(2), np.inf)
            assert 0.9 / error < distance <= 1 / error
            answer = geometry.nearest(rows, np.inf)
            assert answer.point is None
            assert answer.distance <= 1 / error
    # rounding of the multipliers alone does not prove it, either
    assert 1e14 < proved_distance(Rows.of(A, b), np.ones(2)) < np.inf


def test_rows_that_rounding_alone_keeps_from_contradicting_each_other():
    """<a, v> <= -1 - 1e-10 and >= -1 + 1e-10, where a has three slightly different roundings."""
    a = np.array([0.3825494009647668, -0.9239350387454186])
    A = np.stack([a, np.nextafter(a, 0), -np.nextafter(a, 0)])
    A[2, 0] = np.nextafter(A[2, 0], 0)
    b = np.array([-1.0000000001000002, -1.0000000001, 0.9999999999])
    rows = Rows(A, b, np.full(3, 2e-14), np.full(3, 3e-14))
    for answer in (nearest_point(rows), second_opinion(rows, np.inf)):
        assert answer.point is None
        assert 1e3 < answer.distance < np.inf


def test_planes_allow_for_errors_of_the_slopes():
    """The true slope may be turned by the error, which matters more the longer a point is."""
    rows = Rows(np.array([[-1.0, 0.0]]), np.array([-1.0]), np.array([0.1]), np.zeros(1))
    normal, plane = proved_plane(rows, np.ones(1), 4.0)
    turned = np.array([1.0, 0.1])  # <turned, v> >= 1
    v = np.array([0.65, 3.6])
    assert turned @ v >= 1
    assert normal @ v >= plane

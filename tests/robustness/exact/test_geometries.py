"""The geometries behind the maximum norm and boxes: nearest points, bounds and linear programs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from featavg.robustness.exact import boxes, simplex
from featavg.robustness.exact.boxes import BoxedEuclidean
from featavg.robustness.exact.geometry import Cap
from featavg.robustness.exact.max_norm import MaxNorm, knapsack
from featavg.robustness.exact.nearest import Rows
from featavg.robustness.exact.simplex import Simplex, bound_of
from featavg.robustness.exact.tasks import Limits, PointSearch
from support.oracles import least_boxed_norm, least_maximum
from support.shallow_oracles import random_shallow


def random_rows(rng, count, size):
    A = rng.standard_normal((count, size))
    b = 0.3 * rng.standard_normal(count) / np.sqrt(size)
    b[0] = -abs(b[0])
    return A, b


def random_box(rng, size):
    low = -rng.uniform(0, 1.5, size) * (rng.random(size) > 0.3)
    return low, rng.uniform(0, 1.5, size) * (rng.random(size) > 0.3)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("geometry", [MaxNorm, BoxedEuclidean])
def test_nearest_points(geometry, broken, monkeypatch):
    """Both solvers, the second being asked when the first one has failed."""
    if broken:
        monkeypatch.setattr(simplex, "_STEPS_A_ROW", 0)
        monkeypatch.setattr(boxes.daqp, "solve", lambda H, f, A, b, *_, **__: unsolved(H, b))
    rng = np.random.default_rng(8)
    empty = 0
    for trial in range(60):
        A, b = random_rows(rng, 1 + trial % 9, 1 + trial % 7)
        low, high = random_box(rng, A.shape[1])
        box = geometry(low, high)
        norms = box.dual_length(A)
        rows = Rows.of(A / norms[:, None], b / norms)
        solve = least_maximum if geometry is MaxNorm else least_boxed_norm
        expected = solve(A, b, low, high)
        answer = box.nearest(rows, np.inf)
        assert answer.distance == pytest.approx(expected, rel=1e-7)
        assert answer.distance <= expected * (1 + 1e-9)
        if np.isinf(expected):
            assert answer.point is None
            empty += 1
            continue
        assert box.length(answer.point) == pytest.approx(expected, rel=1e-7)
        assert (A @ answer.point <= b + 1e-8).all()
        assert (answer.point >= low - 1e-9).all()
        assert (answer.point <= high + 1e-9).all()
        far = box.nearest(rows, 0.9 * expected)
        assert far.point is None
        assert 0.9 * expected * (1 - 1e-7) <= far.distance <= expected * (1 + 1e-9)
    assert 0 < empty < 60


def unsolved(H, b):
    """Return what daqp returns when it gives up."""
    return np.zeros(len(H)), 0.0, -4, {"lam": np.zeros(len(b))}


def test_any_multipliers_prove_no_more_than_the_truth():
    rng = np.random.default_rng(9)
    positive = 0
    for trial in range(150):
        A, b = random_rows(rng, 5, 3)
        low, high = random_box(rng, 3)
        multipliers = rng.exponential(size=5) * (rng.random(5) < 0.5)
        rivals = (MaxNorm, least_maximum), (BoxedEuclidean, least_boxed_norm)
        geometry, solve = rivals[trial % 2]
        box = geometry(low, high)
        norms = box.dual_length(A)
        rows = Rows.of(A / norms[:, None], b / norms)
        distance, normal, plane = box.proved(rows, multipliers, np.inf)
        assert distance <= solve(A, b, low, high) * (1 + 1e-9)
        positive += distance > 0
        if normal is not None:  # all points of the polyhedron and the box are beyond the plane
            least = linprog(normal, A, b, bounds=list(zip(low, high, strict=True)))
            if least.status == 0:
                assert least.fun >= min(plane, 1e9) - 1e-9
    assert positive > 20


def test_errors_of_the_rows_lower_what_is_proved():
    A, b = np.array([[-0.5, -0.5]]), np.array([-1.0])
    low, high = np.full(2, -3.0), np.full(2, 3.0)
    for box in (MaxNorm(low, high), BoxedEuclidean(low, high)):
        scale = box.dual_length(A)
        exact = Rows.of(A / scale, b / scale)
        moved = Rows(exact.A, exact.b, np.array([1e-3]), np.array([1e-3]))
        truth = box.nearest(exact, np.inf).distance
        assert box.nearest(moved, np.inf).distance < truth * (1 - 1e-3)


def test_knapsack_equals_a_linear_program():
    rng = np.random.default_rng(11)
    cut = 0
    for _ in range(60):
        size = int(rng.integers(1, 7))
        low, high = random_box(rng, size)
        rows, normal = rng.standard_normal((3, size)), rng.standard_normal(size)
        normal[rng.random(size) < 0.2] = 0
        most = np.maximum(normal * low, normal * high).sum()
        distance = float(rng.uniform(-0.5, 1) * most)
        found = knapsack(rows, low, high, normal, distance)
        for w, value in zip(rows, found, strict=True):
            box = list(zip(low, high, strict=True))
            answer = linprog(-w, -normal[None], [-distance], bounds=box)
            assert value == pytest.approx(-answer.fun, abs=1e-9)
            cut += value < np.maximum(w * low, w * high).sum() - 1e-6
    assert cut > 20


def test_knapsack_is_no_smaller_than_the_truth_in_rational_arithmetic():
    """Where -w / n is huge, the difference of large numbers must not be taken at its word."""
    rng = np.random.default_rng(14)
    used = 0
    for _ in range(100):
        low, high = -rng.uniform(0.5, 1, 2), rng.uniform(0.5, 1, 2)
        w, normal = -rng.uniform(0.3, 1, 2), np.array([1.0, 10.0 ** rng.uniform(-15, -12)])
        distance = float(high @ normal - normal[1] * rng.uniform(0, 1))
        ends = [[Fraction(float(v)) for v in side] for side in (low, high)]
        exact_w, exact_n = ([Fraction(float(v)) for v in vector] for vector in (w, normal))

        def bound(mu, w=exact_w, n=exact_n, ends=ends, distance=distance):
            tilted = [a + mu * b for a, b in zip(w, n, strict=True)]
            most = sum(max(g * v for v in pair) for g, *pair in zip(tilted, *ends, strict=True))
            return most - mu * Fraction(distance)

        truth = min(
            bound(mu) for mu in [0, *(-a / b for a, b in zip(exact_w, exact_n, strict=True))]
        )
        value = knapsack(w[None], low, high, normal, distance)[0]
        assert Fraction(float(value)) >= truth
        used += value < np.maximum(w * low, w * high).sum() - 0.1
    assert used > 50


def test_what_is_outside_by_rounding_is_put_inside():
    net = random_shallow(np.random.default_rng(15), neurons=2, dim=3, outputs=2)
    search = PointSearch(net, "linf", (0.0, 1.0), Limits(10))
    x = np.array([0.5, 0.0, 0.25])
    inside = x + search._embed(np.array([0.5 + 1e-12, -1e-12, 0.1]), x)
    np.testing.assert_array_equal(inside, [1.0, 0.0, 0.35])


def test_reach_holds_all_points_of_the_cap():
    rng = np.random.default_rng(12)
    for geometry in (MaxNorm, BoxedEuclidean):
        low, high = random_box(rng, 4)
        box = geometry(low, high)
        rows = rng.standard_normal((6, 4))
        points = rng.uniform(low, high, (20_000, 4))
        lengths = np.array([box.length(p) for p in points])
        radius = float(np.quantile(lengths, 0.7))
        normal = rows[0] / box.dual_length(rows)[0]
        distance = float(np.quantile(points @ normal, 0.7))
        inside = points[(lengths <= radius) & (points @ normal >= distance)]
        assert len(inside) > 100
        least, most = box.reach(rows, box.dual_length(rows), Cap(radius, normal, distance))
        assert (inside @ rows.T >= least).all()
        assert (inside @ rows.T <= most).all()


def test_bound_of_by_hand():
    g, room = np.array([1.0, -2.0]), np.array([0.5, 4.0])
    assert bound_of(g, 1.5, room) == pytest.approx(0.5)
    assert bound_of(g, 2.5, room) == pytest.approx(1.0)
    assert bound_of(g, 2.5, room, error=0.5) < 1.0
    assert bound_of(g, 9.0, room) == np.inf
    assert bound_of(g, -1.0, room) == 0.0


def test_the_simplex_method_needs_few_steps():
    rng = np.random.default_rng(13)
    A, b = random_rows(rng, 6, 500)
    low, high = random_box(rng, 500)
    program = Simplex(A / np.abs(A).sum(axis=1)[:, None], b / np.abs(A).sum(axis=1), low, high)
    answer = program.solve()
    assert answer.solved
    assert answer.point is not None
    assert np.abs(answer.point).max() == pytest.approx(least_maximum(A, b, low, high), rel=1e-9)
    assert program.steps < 100

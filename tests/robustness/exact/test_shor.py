"""The relaxation over all patterns, against exhaustion and a semidefinite solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from featavg.robustness.exact.shor import Patterns, pattern_bound, proves
from support.zoo import SEEDS


def random_patterns(rng, most=9):
    neurons, dim = int(rng.integers(1, most)), int(rng.integers(1, 8))
    offsets = rng.standard_normal(neurons)
    least = float(10.0 ** rng.uniform(-2, 1))
    offset = least + float(np.maximum(offsets, 0).sum())
    slopes = rng.standard_normal((neurons, dim))
    return Patterns(offset, offsets, rng.standard_normal(dim), slopes)


def nearest_of_all(patterns):
    distances = []
    for pattern in itertools.product([0.0, 1.0], repeat=len(patterns.offsets)):
        s = np.array(pattern)
        offset, slope = patterns.offset - s @ patterns.offsets, patterns.slope - s @ patterns.slopes
        distances.append(offset / np.linalg.norm(slope))
    return min(distances)


@settings(deadline=None, max_examples=60)
@given(SEEDS)
def test_no_pattern_is_nearer_than_the_bound(seed):
    patterns = random_patterns(np.random.default_rng(seed))
    nearest = nearest_of_all(patterns)
    bound = pattern_bound(patterns)
    assert bound is not None
    assert 0 <= bound.distance <= nearest * (1 + 1e-12)
    assert bound.distance == 0 or proves(patterns, bound.distance, bound.multipliers)
    assert not proves(patterns, nearest * 1.001, bound.multipliers)
    assert pattern_bound(patterns, 0.5 * nearest).distance <= 0.5 * nearest


def test_the_bound_is_near_the_nearest_pattern_as_a_rule():
    rng = np.random.default_rng(2)
    every = [random_patterns(rng) for _ in range(100)]
    ratios = [pattern_bound(patterns).distance / nearest_of_all(patterns) for patterns in every]
    assert np.median(ratios) > 0.95
    assert np.quantile(ratios, 0.05) > 0.5


def test_one_neuron_is_bounded_exactly():
    """Two patterns are an interval of quadratic forms in one sign, which the relaxation holds."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        patterns = random_patterns(rng, most=2)
        assert pattern_bound(patterns).distance == pytest.approx(nearest_of_all(patterns), rel=1e-5)


def test_nothing_is_said_where_a_pattern_has_the_point_on_its_wrong_side():
    patterns = Patterns(1.0, np.array([2.0]), np.ones(2), np.eye(2)[:1])
    assert pattern_bound(patterns) is None
    assert not proves(patterns, 0.0, np.zeros(2))


def test_the_bound_is_that_of_a_semidefinite_program():
    """The largest R with <R^2 A - B, Y> <= 0 for all Y: its dual, by bisection with Clarabel."""
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    rng = np.random.default_rng(1)
    for _ in range(5):
        patterns = random_patterns(rng)
        f = np.concatenate([[patterns.offset - patterns.offsets.sum() / 2], -patterns.offsets / 2])
        g = np.vstack([patterns.slope - patterns.slopes.sum(axis=0) / 2, -patterns.slopes / 2])
        size = len(f)
        at = [(i, j) for j in range(size) for i in range(j + 1)]

        def largest(square, f=f, g=g, size=size, at=at):
            """Return max <Q, Y> over Y with a unit diagonal: min sum y with diag(y) - Q >= 0."""
            Q = square * (g @ g.T) - np.outer(f, f)
            scale = np.array([1.0 if i == j else np.sqrt(2) for i, j in at])
            rows = [k for k, (i, j) in enumerate(at) if i == j]
            A = sparse.csc_matrix((-np.ones(size), (rows, range(size))), (len(at), size))
            b = -scale * np.array([Q[i, j] for i, j in at])
            settings_ = clarabel.DefaultSettings()
            settings_.verbose = False
            cones = [clarabel.PSDTriangleConeT(size)]
            empty = sparse.csc_matrix((size, size))
            solver = clarabel.DefaultSolver(empty, np.ones(size), A, b, cones, settings_)
            return solver.solve().obj_val

        low, high = 0.0, nearest_of_all(patterns) * 1.01
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if largest(middle**2) <= 0 else (low, middle)
        assert pattern_bound(patterns).distance == pytest.approx(low, rel=1e-4)

"""The distance from the published panels, by hand; the whole path is a test of all experiments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from featavg.experiments.beyond import published_curve, published_panels


def test_the_area_is_the_wasserstein_distance_of_radii():
    told = published_panels.published(2)
    radii = np.array([14.5, 15.2, 16.8, 19.0])  # of four points
    survive = (radii[:, None] > published_panels.GRID).mean(axis=0)
    by_hand = 2.0 * sum(abs(survive[i] - told[i]) for i in range(len(told)))
    assert published_panels.area(survive, 2) == pytest.approx(by_hand)
    # a curve that is moved by a step of the grid is one step away, wherever it falls
    moved = np.concatenate([[1.0], told])
    assert published_panels.area(moved, 2) == pytest.approx(2.0, abs=0.01)
    assert published_panels.curve_penalty(moved, 2) == pytest.approx(1.0, abs=0.01)
    assert published_panels.area(published_panels.shifted(moved), 2) == 0
    # both as distributions on the grid, by SciPy
    grid = published_panels.GRID[:-1]
    chances = [np.clip(-np.diff(c[: len(told)], append=0), 0, 1) for c in (survive, told)]
    by_scipy = wasserstein_distance(grid, grid, *chances)
    assert published_panels.area(survive, 2) == pytest.approx(by_scipy)


def test_an_exact_curve_above_the_published_one_is_an_excess():
    told = published_panels.published(2)
    assert published_panels.excess(told - 0.1, 2) == pytest.approx(-0.1)
    above = told.copy()
    above[8] += 0.3  # at radius 16
    assert published_panels.excess(above, 2) == pytest.approx(0.3)


def test_penalties_of_verdicts():
    as_told = {0.01: 0.5, 0.001: 0.95, 0.0001: 1.0}
    rates = published_panels.LEARNING_RATES
    assert published_panels.verdict_penalty(as_told, rates) == 0
    assert published_panels.verdict_penalty(as_told | {0.01: 0.95}, rates) == pytest.approx(1 / 3)
    assert published_panels.matrix_penalty(0.95, 0.05) == 0
    assert published_panels.matrix_penalty(0.85, 0.05) == 0.5
    assert published_panels.matrix_penalty(0.85, 0.5) == 1


def test_radii_are_expected_only_at_the_sizes_of_the_paper():
    usual = published_curve.EXPERIMENT.parameters
    assert published_curve.expects(usual)[0].rule == "16.7 to 18.4"
    smaller = published_curve.expects(replace(usual, dim=1536))
    assert {row.rule for row in smaller} == {"reported"}
    assert replace(usual, dim=768).unit == 0.5


@pytest.mark.slow
def test_sign_descent_reaches_what_its_formulas_say():
    parameters = published_curve.Parameters(dim=1536, samples=400, test_samples=60)
    row = published_curve.explained(parameters, "sign_signs", 7)
    # 6/16 of sqrt(d/2), and sqrt(d/2), in units of d = 3072
    assert row["coarse_radius"] == pytest.approx(6 / 16 * np.sqrt(3072 / 2), rel=0.06)
    assert row["fine_radius"] == pytest.approx(np.sqrt(3072 / 2), rel=0.06)

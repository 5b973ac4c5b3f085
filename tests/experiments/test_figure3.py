from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from featavg.experiments import (
    figure3,
    run,
)


def test_figure3_predicts_from_the_geometry():
    """Half the way between two centres, for every signal and cosine."""
    parameters = figure3.Parameters(clusters=4, dim=60, signal=2.0, cosine=0.3)
    mu = 2.0 * parameters.law.sample(1, rng=np.random.default_rng(0)).centers
    assert parameters.predicted[1] == pytest.approx(np.linalg.norm(mu[0] - mu[2]) / 2)
    # a point of the averaging network: its score over the norm of the gradient
    direction = mu[:2].sum(axis=0) - mu[2:].sum(axis=0)
    score = mu[0] @ direction
    assert parameters.predicted[0] == pytest.approx(score / np.linalg.norm(direction))


@pytest.mark.long
def test_the_quick_preset_has_room_within_what_theory_allows():
    """Also for seeds that it was not chosen for; and the terms below the leading one are known."""
    parameters = figure3.EXPERIMENT.quick
    runs = [figure3.measure(parameters, seed) for seed in (*range(10), *range(100, 105))]
    results = {name: np.array([one[name] for one in runs]) for name in runs[0]}
    for expectation in figure3.expects(parameters)[:2]:
        room = 0.005 * expectation.high
        inner = replace(expectation, low=expectation.low + room, high=expectation.high - room)
        assert inner.judge(results).holds, inner.quantity
    _, limit = parameters.predicted
    rng = np.random.default_rng(0)
    noise, own = rng.normal(size=(100_000, 5)), rng.normal(size=100_000)
    nearer = np.median((noise.max(axis=1) - own) / np.sqrt(2))  # the nearest of five boundaries
    expected = limit / np.sqrt(1 + parameters.clusters / parameters.samples) - nearer
    assert results["fine_argmax_radius"].mean() == pytest.approx(expected, rel=0.005)


def test_the_papers_numbers_are_shown_where_they_apply():
    shown = [e.paper for e in figure3.expects(figure3.Parameters())]
    assert shown[:2] == ["15.4", "37.4"]
    assert [e.paper for e in figure3.expects(figure3.EXPERIMENT.quick)][:2] == ["", ""]


def test_a_grid_that_ends_early_still_makes_a_figure(tmp_path):
    parameters = replace(figure3.EXPERIMENT.quick, radii=3, test_samples=10)
    finished = run(figure3.EXPERIMENT, parameters, seeds=1, out=tmp_path)
    assert (finished.results["coarse_exact"] == 1).all()


@pytest.mark.slow
def test_figure3_curves_are_ordered(tmp_path):
    """Certified below exact below what attacks leave, at every radius."""
    parameters = replace(figure3.EXPERIMENT.quick, test_samples=60)
    results = run(figure3.EXPERIMENT, parameters, seeds=1, out=tmp_path).results
    for low, high in (
        ("coarse_exact", "coarse_direction"),
        ("coarse_exact", "coarse_pgd"),
        ("fine_lower", "fine_upper"),
        ("fine_lower", "fine_pgd_readout"),
        ("fine_lower", "fine_pgd_cross_entropy"),
    ):
        assert (results[low] <= results[high]).all()
    assert (results["fine_lower"] < results["fine_pgd_cross_entropy"]).any()

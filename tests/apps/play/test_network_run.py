"""What the playground computes is what the package computes."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.settings import NETWORKS, Settings

SMALL = Settings(clusters=4, dim=900, samples=120, width=3, learning_rate=2e-3, steps=60)


def trained(settings, network):
    run = NetworkRun(settings, network)
    run.advance(settings.end, seconds=600)
    return run


@pytest.mark.parametrize("network", NETWORKS)
def test_it_is_the_engine_of_the_package(network):
    start = NetworkRun(SMALL, network)
    literal = fa.descend(
        start.learner.net, start.train, learning_rate=SMALL.learning_rate, steps=60, record=2
    )
    run = trained(SMALL, network)
    seen = run.snapshot()
    assert seen["steps"] == 60
    assert seen["log_time"] == pytest.approx(np.log(0.12), abs=1e-5)
    expected = fa.alignment(literal.net, start.train.centers)
    np.testing.assert_allclose(seen["cosines"], expected, atol=6e-4)
    assert seen["index"] == pytest.approx(fa.averaging_index(literal.net, start.train), abs=1e-3)
    np.testing.assert_allclose(seen["lambda"], literal.feature_coefficients[-1], rtol=1e-3)
    margins = literal.margins[-1]
    assert seen["margins"] == pytest.approx(
        [margins.min(), np.median(margins), margins.max()], rel=1e-3
    )
    assert seen["log_loss"] == pytest.approx(literal.log_loss[-1], rel=1e-3)


@pytest.mark.parametrize("network", NETWORKS)
def test_fast_forward_behind_literal_steps_follows_gradient_descent(network):
    settings = replace(SMALL, steps=600, literal=30, learning_rate=2e-4)
    start = NetworkRun(settings, network)
    literal = fa.descend(start.learner.net, start.train, learning_rate=2e-4, steps=600, record=2)
    seen = trained(settings, network).snapshot()
    assert seen["steps"] == pytest.approx(600)
    own = np.array(seen["own"], dtype=bool)
    exact = literal.feature_coefficients[-1][own]
    np.testing.assert_allclose(np.array(seen["lambda"])[own], exact, rtol=0.02)


def test_in_pieces_it_is_the_same_training():
    whole, pieces = trained(SMALL, "coarse"), NetworkRun(SMALL, "coarse")
    while pieces.position < SMALL.end:
        pieces.advance(pieces.position + 7, seconds=600)
    assert pieces.snapshot() == whole.snapshot()
    brief = NetworkRun(SMALL, "coarse")
    brief.advance(SMALL.end, seconds=0)
    assert brief.position == 0


def test_networks_are_the_same_with_and_without_each_other():
    both, alone = NetworkRun(SMALL, "fine"), NetworkRun(replace(SMALL, labels="fine"), "fine")
    np.testing.assert_array_equal(both.learner.net.weights, alone.learner.net.weights)
    np.testing.assert_array_equal(both.test.x, alone.test.x)


@pytest.mark.parametrize("network", NETWORKS)
def test_radii_are_exact_and_the_same_however_they_are_computed(network):
    run = trained(SMALL, network)
    while not (found := run.measure(seconds=0.0))["complete"]:
        pass
    start = NetworkRun(SMALL, network)
    net = fa.descend(start.learner.net, start.train, learning_rate=2e-3, steps=60).net
    exact = fa.exact_radii(net, start.test.x, start.test.y)
    assert found["exact"] == found["points"] == 100
    np.testing.assert_allclose(found["upper"], np.sort(exact.upper), rtol=1e-4)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_plane_shows_the_point_its_attacks_and_the_border(network):
    run = trained(SMALL, network)
    reach = 1.2 * run.radius(5)
    plane = run.slice(5, reach)
    assert plane["u"][0] < -reach  # the circle of that radius is in the picture, and square
    assert reach < min(plane["u"][1], plane["v"][1])
    assert np.ptp(plane["u"]) == pytest.approx(np.ptp(plane["v"]), rel=1e-4)
    scores = np.array(plane["scores"])
    u, v = (np.linspace(*plane[axis], len(scores)) for axis in ("u", "v"))
    distance = np.hypot(u[None, :], v[:, None])
    assert (scores[distance < 0.999 * plane["radius"]] > 0).all()  # safe within the exact radius
    assert (scores < 0).any()
    assert np.hypot(*plane["tip"]) == pytest.approx(plane["radius"], rel=1e-4)
    assert plane["averaged"] >= plane["radius"] * (1 - 1e-4)
    start = NetworkRun(SMALL, network)
    net = fa.descend(start.learner.net, start.train, learning_rate=2e-3, steps=60).net
    x, y = start.test.x[5:6], start.test.y[5:6]
    direction = fa.averaged_direction(start.test)
    attacks = [
        fa.direction_attack(net, x, y, radius=factor * plane["averaged"], direction=direction)
        for factor in (0.99, 1.01)
    ]
    assert [bool(attack.success[0]) for attack in attacks] == [False, True]


def test_a_point_that_is_wrong_already_has_no_plane():
    blind = replace(SMALL, snr=0.1, dim=50, samples=10, steps=1)
    run = trained(blind, "coarse")
    assert any(run.slice(point, 1.0) is None for point in range(100))


def test_where_the_index_has_no_answer_it_is_null():
    seen = trained(replace(SMALL, clusters=2, positive=1), "coarse").snapshot()
    assert seen["index"] is None
    json.dumps(seen, allow_nan=False)


def test_a_learning_rate_too_large_is_told():
    run = NetworkRun(SMALL, "coarse")
    run.learner.state.Z[:] = np.inf  # as if a step had been far too long
    with pytest.raises(fa.InputError, match="learning_rate is too large"):
        run.advance(60, seconds=600)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    "extreme",
    [
        {"dim": 10**12, "learning_rate": 10.0, "snr": 0.1},
        {"dim": 10, "samples": 10, "snr": 100},
        {"learning_rate": 1e-24, "weight_scale": 1e-15, "steps": 1e30},
        {"clusters": 2, "cosine": -1.0, "width": 1},
        {"clusters": 30, "width": 30, "fine_width": 4, "steps": 5},
        {"samples": 4000, "dim": 20, "steps": 20},
    ],
    ids=str,
)
def test_whatever_the_sliders_allow_can_be_drawn(extreme, network):
    run = trained(replace(SMALL, positive=None, bias_scale=None, literal=None, **extreme), network)
    shown = [run.snapshot(), run.measure(seconds=0.1), run.slice(0, run.radius(0))]
    json.dumps(shown, allow_nan=False)
    assert np.abs(shown[0]["cosines"]).max() <= 1
    assert shown[1]["points"] > 0


def test_a_training_that_computes_for_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr("featavg.apps.play.network_run._COMPUTING", 0.0)
    run = NetworkRun(SMALL, "coarse")
    with pytest.raises(fa.InputError, match="training was stopped because it had computed"):
        run.advance(60, seconds=0)


def test_a_training_that_is_dropped_is_freed_at_once():
    """Without the cyclic garbage collector, which may not run for a long time."""
    run = NetworkRun(SMALL, "coarse")
    run.advance(5, seconds=600)
    run.measure(seconds=1)
    points, state = weakref.ref(run.train), weakref.ref(run.learner.state)
    gc.disable()
    try:
        del run
        assert points() is None
        assert state() is None
    finally:
        gc.enable()

"""What a visitor can set, and what a training in the playground computes."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

import featavg as fa
from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.presets import presets
from featavg.apps.play.settings import KNOBS, NETWORKS, WHOLE, Settings
from featavg.experiments import REGISTRY, theorem
from featavg.lab.setting import SyntheticSetting

SMALL = Settings(clusters=4, dim=900, samples=120, width=3, learning_rate=2e-3, steps=60)


def trained(settings, network):
    run = NetworkRun(settings, network)
    run.advance(settings.end, seconds=600)
    return run


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"clusters": "1"}, "clusters must be from 2 to 30; got 1."),
        ({"clusters": "31"}, "clusters must be from 2 to 30; got 31."),
        ({"dim": "9"}, "dim must be from 10 to 1e+12; got 9."),
        ({"dim": "1e13"}, "dim must be from 10 to 1e+12; got 10000000000000."),
        ({"dim": "12.5"}, "dim must be a whole number of at least 10; got 12.5."),
        ({"steps": "60.4"}, "steps must be a whole number of at least 1; got 60.4."),
        ({"signal": "2"}, "the playground has no setting 'signal'."),
        ({"clusters": "20", "dim": "15"}, "clusters must be at most dim because centres"),
        ({"positive": "10"}, "positive must leave at least one of the 10 clusters on each side"),
        ({"cosine": "-0.5"}, "cosine must be from -0.111111 to 1"),
        ({"samples": "10000", "dim": "1e12"}, "and the playground allows 200 MB"),
        ({"samples": "2400", "width": "30", "steps": "1e9"}, "and the playground allows 25"),
        ({"learning_rate": "nan"}, "learning_rate must be from 1e-24 to 10; got nan."),
        ({"learning_rate": "inf"}, "learning_rate must be from 1e-24 to 10; got inf."),
        ({"width": "many"}, "width must be a number; got 'many'."),
        ({"width": "9" * 5000}, "width must be a number; got '99999"),
        ({"labels": "all"}, "labels must be one of 'both', 'coarse', 'fine'; got 'all'."),
        ({"colour": "red"}, "the playground has no setting 'colour'."),
        ({"literal": "-1"}, "literal must be a whole number of at least 0; got -1."),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(query, sentence):
    with pytest.raises(fa.InputError) as refused:
        Settings.from_query(query)
    assert sentence in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(clusters=7, positive=2, labels="fine", seed=3),
        Settings(dim=10**12, learning_rate=3e-12, weight_scale=1.5e-14, bias_scale=1e-9),
        Settings(steps=1e20, literal=17),
        Settings(steps=2500, literal=2000),
        Settings(cosine=-0.05, snr=0.3),
    ],
)
def test_an_address_gives_the_same_settings_back(settings):
    assert Settings.from_query(dict(parse_qsl(settings.to_query()))) == settings
    everything = {name: str(value) for name, value in settings.values.items()}
    assert Settings.from_query(everything) == settings
    assert json.loads(json.dumps(settings.values)) == settings.values


def test_positions_are_literal_steps_and_then_goals_of_the_fast_forward():
    assert SMALL.end == 60
    assert SMALL.goals == ()
    assert list(SMALL.schedule[[0, 1, -1]]) == [0, 1, 60]
    far = replace(SMALL, steps=1e9, literal=20)
    assert far.literal == 20
    assert far.goals[0] > 20
    assert far.goals[-1] == pytest.approx(1e9)
    assert list(far.schedule[-2:]) == [far.end - 1, far.end]
    assert (np.diff(far.schedule) > 0).all()
    assert Settings(steps=1e9).literal == 0


def test_presets_are_the_paper_its_theorems_the_poster_and_every_ablation():
    found = presets()
    assert len({preset.name for preset in found}) == len(found)
    groups = {preset.group for preset in found}
    assert {"Figure 5", "Figure 6", "Figure 7", "Figure 8", "Figure 9"} < groups
    paper = REGISTRY["figure2-synthetic"].parameters
    for name in ("clusters", "dim", "samples", "width", "learning_rate", "weight_scale", "steps"):
        assert getattr(found[0].settings, name) == getattr(paper, name), name
    regime = theorem.Parameters()
    assert found[1].settings.samples == regime.samples == 3**7
    assert found[1].settings.steps * found[1].settings.learning_rate == pytest.approx(100, rel=1e-5)
    assert found[2].settings.bias_scale == pytest.approx(1 / regime.dim, rel=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_it_is_the_engine_of_the_package(network):
    start = NetworkRun(SMALL, network)
    literal = fa.descend(
        start.initial_net, start.train, learning_rate=SMALL.learning_rate, steps=60, record=2
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
    literal = fa.descend(start.initial_net, start.train, learning_rate=2e-4, steps=600, record=2)
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
    np.testing.assert_array_equal(both.initial_net.weights, alone.initial_net.weights)
    np.testing.assert_array_equal(both.test.x, alone.test.x)


@pytest.mark.parametrize("network", NETWORKS)
def test_radii_are_exact_and_the_same_however_they_are_computed(network):
    run = trained(SMALL, network)
    while not (found := run.measure(seconds=0.0))["complete"]:
        pass
    start = NetworkRun(SMALL, network)
    net = fa.descend(start.initial_net, start.train, learning_rate=2e-3, steps=60).net
    exact = fa.exact_radii(net, start.test.x, start.test.y)
    assert found["exact"] == found["points"] == 100
    np.testing.assert_allclose(found["upper"], np.sort(exact.upper), rtol=1e-4)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_plane_shows_the_point_its_attacks_and_the_border(network):
    run = trained(SMALL, network)
    plane = run.slice(5)
    scores = np.array(plane["scores"])
    u, v = (np.linspace(*plane[axis], len(scores)) for axis in ("u", "v"))
    distance = np.hypot(u[None, :], v[:, None])
    assert (scores[distance < 0.999 * plane["radius"]] > 0).all()  # safe within the exact radius
    assert (scores < 0).any()
    assert np.hypot(*plane["tip"]) == pytest.approx(plane["radius"], rel=1e-4)
    assert plane["averaged"] >= plane["radius"] * (1 - 1e-4)
    start = NetworkRun(SMALL, network)
    net = fa.descend(start.initial_net, start.train, learning_rate=2e-3, steps=60).net
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
    assert any(run.slice(point) is None for point in range(100))


def test_where_the_index_has_no_answer_it_is_null():
    seen = trained(replace(SMALL, clusters=2, positive=1), "coarse").snapshot()
    assert seen["index"] is None
    json.dumps(seen, allow_nan=False)


def test_a_learning_rate_too_large_is_told():
    run = NetworkRun(SMALL, "coarse")
    run._state.Z[:] = np.inf  # as if a step had been far too long
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
    shown = [run.snapshot(), run.measure(seconds=0.1), run.slice(0)]
    json.dumps(shown, allow_nan=False)
    assert np.abs(shown[0]["cosines"]).max() <= 1
    assert shown[1]["points"] > 0


def test_a_training_that_computes_for_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr("featavg.apps.play.network_run._COMPUTING", 0.0)
    run = NetworkRun(SMALL, "coarse")
    with pytest.raises(fa.InputError, match="training was stopped because it had computed"):
        run.advance(60, seconds=0)


def test_sliders_change_the_setting_of_the_experiments():
    assert isinstance(SMALL, SyntheticSetting)
    own = set(KNOBS) - {field.name for field in fields(SyntheticSetting)}
    assert own == {"snr", "seed"}
    assert set(KNOBS) - WHOLE == {"learning_rate", "weight_scale", "bias_scale", "snr", "cosine"}
    assert Settings(snr=4.0).law == SyntheticSetting(noise=0.25, positive=5).law


@pytest.mark.parametrize("dim", [40, 900])
def test_points_are_drawn_in_the_fewest_coordinates_with_both_networks(dim):
    settings = replace(SMALL, dim=dim)
    run = NetworkRun(settings, "fine")
    coordinates = {40: 40, 900: 4 + 120 + (6 + 4)}[dim]
    assert run.train.x.shape == (120, coordinates)
    assert settings.fewest_coordinates == coordinates
    assert settings.bytes == run.train.x.nbytes + (run.train.gram.nbytes if dim == 900 else 0)


def test_experiments_draw_the_same_points_and_networks():
    setting = SyntheticSetting(clusters=4, dim=90, samples=60, width=3, steps=3)
    drawn, pair = setting.draw_networks(5), setting.train(5)
    np.testing.assert_array_equal(drawn.test.x, pair.test.x)
    for net, run in ((drawn.coarse, pair.coarse), (drawn.fine, pair.fine)):
        np.testing.assert_array_equal(net.weights, run.initial_net.weights)
    assert drawn.rng.random() == pair.rng.random()
    np.testing.assert_array_equal(setting.train_coarse(5)[0].dual, pair.coarse.dual)


def test_every_slider_names_itself_and_its_default_is_in_range():
    for name, knob in KNOBS.items():
        assert knob.label, name
        assert knob.help.endswith("."), name
        assert knob.low <= getattr(Settings(), name) <= knob.high, name

"""What a visitor can set."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

import featavg as fa
from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.settings import KNOBS, WHOLE, Settings
from featavg.lab.setting import SyntheticSetting

SMALL = Settings(clusters=4, dim=900, samples=120, width=3, learning_rate=2e-3, steps=60)


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
        ({"optimiser": "newton"}, "optimiser must be one of 'gd', 'sgd', 'momentum',"),
        ({"loss": "radius"}, "loss must be one of 'entropy', 'smoothed', 'square',"),
        ({"objective": "fame"}, "objective must be one of 'loss', 'radius'; got 'fame'."),
        ({"fine_share": "1.5"}, "fine_share must be from 0 to 1; got 1.5."),
        ({"adversarial": "-1"}, "adversarial must be from 0 to 1.2; got -1."),
        ({"grouping": "1,4|2"}, "groups of all 5 positive and all 5 negative clusters"),
        ({"grouping": "1+4|5"}, "such as '1,4|2,3'; got '1+4|5'."),
        ({"grouping": "1,4|2,3", "clusters": "4"}, "groups of all 2 positive and all 2 negative"),
        ({"optimiser": "adam", "dim": "1e12"}, "take fewer dimensions or samples."),
        ({"optimiser": "adam", "steps": "5000"}, "and all else takes at most 2000 single steps"),
        ({"loss": "hinge", "steps": "1e9"}, "only gradient descent on the cross-entropy or the"),
        ({"adversarial": "0.5", "literal": "3"}, "can be fast-forwarded"),
        ({"objective": "radius", "steps": "2001"}, "can be fast-forwarded"),
        ({"objective": "radius", "optimiser": "adam"}, "so optimiser must be 'gd'; got 'adam'."),
        ({"objective": "radius", "grouping": "5|5"}, "so grouping must be ''; got '5|5'."),
        ({"objective": "radius", "adversarial": "0.5"}, "so adversarial must be 0.0; got 0.5."),
        ({"loss": "square", "fine_share": "0.5"}, "other losses have no value for a side"),
        ({"optimiser": "adam", "steps": "2000"}, "and the playground allows 25; take fewer"),
        ({"adversarial": "0.5", "samples": "3000"}, "and the playground allows 200 MB"),
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
        Settings(optimiser="adam", loss="square", adversarial=0.5),
        Settings(grouping="1, 4 | 2,3", fine_share=0.25),
        Settings(objective="radius"),
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


def test_every_slider_names_itself_and_its_default_is_in_range():
    for name, knob in KNOBS.items():
        assert knob.label, name
        assert knob.help.endswith("."), name
        assert knob.low <= getattr(Settings(), name) <= knob.high, name


def test_sliders_change_the_setting_of_the_experiments():
    assert isinstance(SMALL, SyntheticSetting)
    own = set(KNOBS) - {field.name for field in fields(SyntheticSetting)}
    assert own == {"snr", "seed", "fine_share", "adversarial"}
    fractions = {"learning_rate", "weight_scale", "bias_scale", "snr", "cosine"}
    assert set(KNOBS) - WHOLE == fractions | {"fine_share", "adversarial"}
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
    coarse = setting.train_coarse(setting.draw(5)[0], 5)
    np.testing.assert_array_equal(coarse.point_coefficients, pair.coarse.point_coefficients)

"""What a visitor can set."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

import featavg as fa
from featavg.apps.play.settings import KNOBS, Settings

SMALL = Settings(clusters=4, dim=900, samples=120, width=3, learning_rate=2e-3, steps=60)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"clusters": "1"}, "clusters must be from 2 to 30; got 1."),
        ({"clusters": "31"}, "clusters must be from 2 to 30; got 31."),
        ({"dim": "9"}, "dim must be from 10 to 1e+12; got 9."),
        ({"dim": "1e13"}, "dim must be from 10 to 1e+12; got 10000000000000."),
        ({"dim": "12.5"}, "dim must be a whole number of at least 10; got 12.5."),
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
    everything = {name: str(value) for name, value in asdict(settings).items()}
    assert Settings.from_query(everything) == settings
    assert json.loads(json.dumps(asdict(settings))) == asdict(settings)


def test_positions_are_literal_steps_and_then_goals_of_the_fast_forward():
    assert SMALL.end == 60
    assert SMALL.goals == ()
    assert list(SMALL.schedule[[0, 1, -1]]) == [0, 1, 60]
    far = replace(SMALL, steps=1e9, literal=20)
    assert far.literal_steps == 20
    assert far.goals[0] > 20
    assert far.goals[-1] == pytest.approx(1e9)
    assert list(far.schedule[-2:]) == [far.end - 1, far.end]
    assert (np.diff(far.schedule) > 0).all()
    assert Settings(steps=1e9).literal_steps == 0
    assert (Settings(steps=60.4).steps, Settings(steps=60.4).end) == (60, 60)


def test_every_slider_names_itself_and_its_default_is_in_range():
    for name, knob in KNOBS.items():
        assert knob.label, name
        assert knob.help.endswith("."), name
        assert knob.low <= getattr(Settings(), name) <= knob.high, name

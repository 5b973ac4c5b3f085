from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.experiments import ablations, figure3
from featavg.lab.setting import SyntheticSetting
from featavg.lab.variants import VariedSetting

SMALL = {"clusters": 4, "dim": 64, "samples": 40, "test_samples": 8, "width": 2, "steps": 5}


def test_the_defaults_train_what_the_setting_without_variations_trains():
    train, _ = VariedSetting(**SMALL).draw(3)
    run = VariedSetting(**SMALL).train_coarse(train, 3)
    plain = SyntheticSetting(**SMALL).train(3).coarse
    np.testing.assert_array_equal(run.net.weights, plain.net.weights)
    assert VariedSetting(**SMALL).law == SyntheticSetting(**SMALL).law


@pytest.mark.parametrize(
    ("optimiser", "rule"),
    [("gd", fa.GradientDescent()), ("adam", fa.Adam()), ("sign", fa.SignDescent())],
)
def test_the_optimiser_is_the_one_that_was_named(optimiser, rule):
    setting = VariedSetting(**SMALL, optimiser=optimiser, orientation="signs", counts="balanced")
    train, _ = setting.draw(0)
    run = setting.train_coarse(train, 0)
    assert run.rule == rule
    again = fa.descend(
        run.initial_net, train, learning_rate=setting.learning_rate, steps=5, rule=rule
    )
    np.testing.assert_array_equal(run.net.weights, again.net.weights)
    assert np.bincount(train.cluster).tolist() == [10] * 4
    np.testing.assert_allclose(np.abs(train.centers), 1)


def test_an_optimiser_that_depends_on_the_frame_gets_ambient_coordinates(monkeypatch):
    monkeypatch.setattr("featavg.data.clustered_law._AMBIENT_ENTRIES", 0)  # or else in the span
    setting = VariedSetting(clusters=4, dim=64, samples=10, test_samples=1)
    assert setting.draw(0, reserve=4)[0].frame is not None
    assert replace(setting, optimiser="sign").draw(0, reserve=4)[0].frame is None


def test_theory_of_gradient_descent_is_not_expected_of_others():
    usual = figure3.EXPERIMENT.parameters
    radius = figure3.expects(usual)[0]
    by_adam = figure3.expects(replace(usual, optimiser="adam"))[0]
    assert (radius.rule, by_adam.rule) == ("16.7 to 18.4", "reported")
    assert by_adam.paper == radius.paper == "15.4"  # the published curve is for comparison still
    rows = ablations.expects(replace(ablations.Figure6Parameters(), optimiser="adam"))
    assert {row.rule for row in rows} == {"reported"}
    assert rows[0].paper == "does not"

from __future__ import annotations

import re

import numpy as np
import pytest

from featavg.experiments import EXPERIMENTS, figure3_images
from featavg.experiments.figure3_images import Mnist
from featavg.paper import figure3_curve

NAMES = ("plain", "cross_entropy", "readout", "probability", "worst")


def results(spread=0.01, **means):
    """Return gains of 100 images in three seeds with these means, which scatter over both."""
    found = {}
    for name in NAMES:
        mean = means.get(name, 0.1)
        by_image = np.resize([spread, -spread], 100)
        by_seed = mean + by_image + spread * np.array([[-1], [0], [1]])
        found |= {f"gain_{name}": by_seed.mean(axis=1), f"gains_{name}": by_seed}
    return found


def test_the_conclusion_is_drawn_from_the_worst():
    text = figure3_images.conclude(Mnist(), results(plain=0.3, worst=-0.05))
    value, low, high = re.findall(r"(\S+) \[(\S+), (\S+)\] by plain PGD", text)[0]
    assert value == "+30.0"
    # trainings of 29, 30 and 31: Student's t is 4.303; images add a little
    half = 4.303 / np.sqrt(3)
    assert (float(low), float(high)) == pytest.approx((30 - half, 30 + half), abs=0.06)
    assert "less robust, by 5.0 points" in text
    assert "says the opposite" in text
    agreeing = figure3_images.conclude(Mnist(), results(plain=0.11, worst=0.1))
    assert "more robust, by 10.0 points" in agreeing
    assert "opposite" not in agreeing
    overstated = figure3_images.conclude(Mnist(), results(plain=0.4, worst=0.1))
    assert "more than twice" in overstated


def test_a_difference_smaller_than_its_interval_is_not_told():
    # three trainings that scatter by 0.06 have a half width of 0.149
    text = figure3_images.conclude(Mnist(), results(spread=0.06, plain=0.3, worst=-0.05))
    assert "no difference can be told" in text
    assert "less robust" not in text
    assert "opposite" not in text
    assert "more than twice" in text
    noise = figure3_images.conclude(Mnist(), results(spread=0.4, plain=0.3, worst=-0.05))
    assert "more than twice" not in noise


def test_labels_of_either_split():
    labels = np.arange(10)
    first, parity, drawn = Mnist(), Mnist(split="parity"), Mnist(split="random")
    np.testing.assert_array_equal(figure3_images._labels(first, labels, 10), labels)
    np.testing.assert_array_equal(figure3_images._labels(first, labels, 2), [0] * 5 + [1] * 5)
    np.testing.assert_array_equal(figure3_images._labels(parity, labels, 2), [0, 1] * 5)
    assert drawn.positive == (2, 3, 4, 6, 7)


@pytest.mark.parametrize("name", ["figure3-mnist", "figure3-cifar10", "figure3-fashion"])
def test_the_papers_gain_stands_where_the_paper_has_curves(name):
    experiment = EXPERIMENTS[name]
    plain = experiment.expects(experiment.parameters)[2]
    if name == "figure3-fashion":
        assert plain.paper == ""
        return
    panel = experiment.parameters.dataset
    gain = figure3_curve(panel, 10)[1] - figure3_curve(panel, 2)[1]
    assert float(plain.paper) == pytest.approx(gain[1:].mean(), abs=6e-4)


@pytest.mark.vision
def test_every_recipe_it_names_exists():
    from featavg.vision.recipes import RECIPES

    for experiment in figure3_images.EXPERIMENTS:
        assert {experiment.parameters.recipe, experiment.quick.recipe} <= set(RECIPES)

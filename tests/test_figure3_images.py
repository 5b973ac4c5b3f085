from __future__ import annotations

import numpy as np
import pytest

from featavg.experiments import REGISTRY, figure3_images
from featavg.experiments.figure3_images import Mnist
from featavg.paper import figure3_curve

NAMES = ("plain", "cross_entropy", "readout", "probability", "worst")


def results(**gains):
    return {f"gain_{name}": np.array([gains.get(name, 0.1)]) for name in NAMES}


def test_the_conclusion_is_drawn_from_the_worst():
    text = figure3_images.conclude(Mnist(), results(plain=0.3, worst=-0.05))
    assert "+30.0 by plain PGD" in text
    assert "less robust, by 5.0 points" in text
    assert "says the opposite" in text
    agreeing = figure3_images.conclude(Mnist(), results(plain=0.11, worst=0.1))
    assert "more robust, by 10.0 points" in agreeing
    assert "opposite" not in agreeing
    overstated = figure3_images.conclude(Mnist(), results(plain=0.4, worst=0.1))
    assert "more than twice" in overstated


def test_labels_of_either_split():
    labels = np.arange(10)
    first, parity = Mnist(), Mnist(split="parity")
    np.testing.assert_array_equal(figure3_images._labels(first, labels, 10), labels)
    np.testing.assert_array_equal(figure3_images._labels(first, labels, 2), [0] * 5 + [1] * 5)
    np.testing.assert_array_equal(figure3_images._labels(parity, labels, 2), [0, 1] * 5)


@pytest.mark.parametrize("name", ["figure3-mnist", "figure3-cifar10", "figure3-fashion"])
def test_the_papers_gain_stands_where_the_paper_has_curves(name):
    experiment = REGISTRY[name]
    plain = experiment.expects(experiment.parameters)[2]
    if name == "figure3-fashion":
        assert plain.paper == ""
        return
    panel = experiment.parameters.dataset
    gain = figure3_curve(panel, 10)[1] - figure3_curve(panel, 2)[1]
    assert float(plain.paper) == pytest.approx(gain[1:].mean(), abs=6e-4)


def test_every_recipe_it_names_exists():
    pytest.importorskip("torch")
    from featavg.vision.recipes import RECIPES

    for experiment in figure3_images.EXPERIMENTS:
        assert {experiment.parameters.recipe, experiment.quick.recipe} <= set(RECIPES)

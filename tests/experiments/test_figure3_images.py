from __future__ import annotations

import numpy as np
import pytest

from featavg.experiments import EXPERIMENTS, figure3_images
from featavg.experiments.figure3_images import Mnist
from featavg.paper import figure3_curve

NAMES = ("plain", "cross_entropy", "readout", "probability", "worst")


def results(error=0.01, **means):
    """Return gains of four images, in two seeds, with these means and one standard error."""
    found = {}
    for name in NAMES:
        mean = means.get(name, 0.1)
        spread = error * np.sqrt(3) * np.array([1, -1, 1, -1])  # of four: std / 2 is the error
        by_seed = np.stack([mean + spread + 0.5, mean + spread - 0.5])
        found |= {f"gain_{name}": by_seed.mean(axis=1), f"gains_{name}": by_seed}
    return found


def test_the_conclusion_is_drawn_from_the_worst():
    text = figure3_images.conclude(Mnist(), results(plain=0.3, worst=-0.05))
    assert "+30.0 ± 1.0 by plain PGD" in text
    assert "less robust, by 5.0 points" in text
    assert "says the opposite" in text
    agreeing = figure3_images.conclude(Mnist(), results(plain=0.11, worst=0.1))
    assert "more robust, by 10.0 points" in agreeing
    assert "opposite" not in agreeing
    overstated = figure3_images.conclude(Mnist(), results(plain=0.4, worst=0.1))
    assert "more than twice" in overstated


def test_a_difference_within_two_standard_errors_is_not_told():
    text = figure3_images.conclude(Mnist(), results(error=0.03, plain=0.3, worst=-0.05))
    assert "no difference can be told" in text
    assert "less robust" not in text
    assert "opposite" not in text
    assert "more than twice" in text
    noise = figure3_images.conclude(Mnist(), results(error=0.2, plain=0.3, worst=-0.05))
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

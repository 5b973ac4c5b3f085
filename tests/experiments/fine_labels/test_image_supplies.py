"""Supplies of labels for images, and the declarations of the experiments."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from featavg import InputError
from featavg.experiments.fine_labels import shares
from featavg.experiments.fine_labels.recipes import Parameters as RecipeParameters
from featavg.experiments.fine_labels.setups import ADAM, FROM_ADAM, SGD, VARIATIONS
from featavg.experiments.fine_labels.supplies import (
    Supply,
    clusters_within_sides,
    labels_for,
    parsed_shares,
    purity,
    treated_images,
    within_side,
)
from featavg.experiments.image_splits import SPLITS

LABELS = np.arange(2000) % 10
PARITY = SPLITS["parity"]


def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("positive", SPLITS.values())
def test_splits_have_five_classes_on_each_side(positive):
    assert len(set(positive)) == 5
    assert set(positive) < set(range(10))


def test_larger_shares_contain_the_smaller_ones():
    small, large = (treated_images(2000, share, rng()) for share in (0.3, 10))
    assert (small.sum(), large.sum()) == (6, 200)
    assert large[small].all()
    assert treated_images(2000, 100, rng()).all()
    assert not treated_images(2000, 0, rng()).any()


def test_drawn_classes_are_of_the_side_and_even():
    drawn = within_side(LABELS, PARITY, rng())
    assert (drawn % 2 == LABELS % 2).all()
    assert np.bincount(drawn).min() > 150
    assert (drawn == LABELS).mean() == pytest.approx(0.2, abs=0.03)


def test_k_means_finds_classes_that_are_apart_within_their_sides():
    features = 5 * np.eye(10)[LABELS] + 0.1 * rng().standard_normal((2000, 10))
    found = clusters_within_sides(features, LABELS, PARITY, rng())
    assert (found % 2 == LABELS % 2).all()
    assert purity(found, LABELS) == 1
    assert purity(np.zeros(2000, dtype=int), LABELS) == pytest.approx(0.1)


@pytest.mark.vision
@pytest.mark.parametrize("kind", ["score", "fine", "random", "weighted"])
def test_labels_of_each_kind(kind):
    share = 0.0 if kind == "score" else 10.0
    made = labels_for(Supply("x", "", "", share, kind), LABELS, PARITY, 7.0, rng())
    right, even = made.right.numpy(), LABELS % 2 == 0
    if kind == "score":
        assert (right == np.stack([even, ~even], axis=1)).all()
        return
    sides = right @ (np.arange(10) % 2 == 0)
    same = labels_for(Supply("x", "", "", share, "fine"), LABELS, PARITY, 1.0, rng())
    if kind == "weighted":
        assert (right.sum(axis=1) == 5).all()
        assert (made.weights.numpy() == np.where(same.known.numpy(), 7, 1)).all()
        return
    assert (made.known == same.known).all()
    known = made.known.numpy()
    assert (right.sum(axis=1) == np.where(known, 1, 5)).all()
    assert ((sides > 0) == even).all()
    named = right[known].argmax(axis=1)
    agree = (named == LABELS[known]).mean()
    assert agree == 1 if kind == "fine" else agree < 0.4


def test_each_variation_changes_one_thing():
    """Of the recipe's optimiser, network, length or data: fields that belong together are one."""
    together = {
        "optimizer": {"optimizer", "learning_rate", "schedule", "weight_decay"},
        "network": {"network", "width"},
        "images": {"images", "epochs"},
    }
    for name, (group, _, setup) in VARIATIONS.items():
        base = ADAM if group == FROM_ADAM else SGD
        changed = {
            field.name
            for one, other in ((setup, base), (setup.recipe, base.recipe))
            for field in fields(one)
            if getattr(one, field.name) != getattr(other, field.name)
        } - {"recipe"}
        kind = name.partition("_")[2]
        assert len(changed) <= 1 or changed == together[kind], name
        assert bool(changed) == bool(kind)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shares": "0, x"}, "shares must be percentages from 0 to 100, with commas"),
        ({"shares": "0, 101"}, "shares must be percentages"),
        ({"shares": "0, 1, nan, 100"}, "shares must be percentages"),
        ({"shares": "0, 100"}, "shares must contain 100 and the control_share, 1, which"),
        ({"attack_images": 10_001}, "attack_images must be at most 10000; got 10001"),
        ({"attack_images": 0}, "attack_images must be a whole number of at least 1; got 0"),
        ({"split": "last"}, "split must be one of 'first-five', 'parity', 'random'"),
    ],
)
def test_bad_parameters(wrong, message):
    with pytest.raises(InputError, match=message):
        shares.Mnist(**wrong)


def test_parameters_are_written_in_one_way():
    assert parsed_shares("100,1.0, 0") == (0.0, 1.0, 100.0)
    assert shares.Mnist(shares="100,1.0,-0").shares == "0, 1, 100"
    third = shares.Mnist(shares="33.3333333, 100", control_share=33.3333333)
    assert replace(third, pgd_steps=3).control == third.supplies[1].key
    assert RecipeParameters(variations="sgd,adam").variations == "adam, sgd"
    with pytest.raises(InputError, match="variations must be one of 'adam'"):
        RecipeParameters(variations="adamw")


def test_a_gain_that_cannot_be_told_has_no_part():
    parameters = replace(shares.Mnist(), adversarial_radius=0.0, shares="1, 100")
    norms = {row.key: rng().random((2, 200)) + 0.4 for row in parameters.supplies}
    results = {f"{key}_norms": value for key, value in norms.items()}
    assert "no clear gain, so no share" in shares.conclude(parameters, results)
    results["fine100_norms"] = results["score_norms"] - 0.2
    assert "no clear gain, so no share" in shares.conclude(parameters, results)
    results["fine100_norms"] = results["score_norms"] + 0.2
    results["fine1_norms"] = results["score_norms"] + 0.1
    text = shares.conclude(parameters, results)
    base, some, fine = (
        (results[f"{key}_norms"] > 1).mean() for key in ("score", "fine1", "fine100")
    )
    assert f"Those for 1 % have {100 * (some - base) / (fine - base):.0f} [" in text
    assert f"by {100 * (fine - base):+.1f} [" in text
    assert f"those for 1 % by {100 * (some - base):+.1f} [" in text
    drawn = (results["random_norms"] > 1).mean()
    assert f"drawn from the side change it by {100 * (some - drawn):+.1f} [" in text

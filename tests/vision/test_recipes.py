from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from featavg import InputError
from featavg.files import json_hash
from featavg.vision.recipes import RECIPES, Recipe


def torch_rates(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return rates


def test_cosine_is_that_of_pytorch_and_of_the_formula():
    recipe = Recipe(epochs=20, learning_rate=0.3)
    ours = [recipe.rates(epoch, 7)[2] for epoch in range(20)]
    theirs = torch_rates(
        lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20), 20
    )
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert ours[0] == 0.3
    assert ours[10] == pytest.approx(0.15)
    assert ours[5] == pytest.approx(0.15 * (1 + math.sqrt(0.5)))


def test_one_cycle_is_that_of_pytorch():
    recipe = Recipe(epochs=4, learning_rate=0.3, schedule="one-cycle")
    steps = 4 * 25
    ours = [rate for epoch in range(4) for rate in recipe.rates(epoch, 25)]
    theirs = torch_rates(
        lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=0.3,
            total_steps=steps + 1,  # so that it ends after the last step, not at it
            pct_start=(0.2 * steps + 1) / (steps + 1),
            anneal_strategy="linear",
            div_factor=25,
            final_div_factor=1e12,
            cycle_momentum=False,
        ),
        steps,
    )
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert max(ours) == ours[20] == pytest.approx(0.3)
    assert all(min(replace(recipe, epochs=1).rates(0, steps)) > 0 for steps in (1, 2, 5))


def test_constant_and_loss_based_rates_by_hand():
    assert RECIPES["mnist"].rates(99, 469) == [0.001] * 469
    recipe = RECIPES["mnist-margin"]
    assert recipe.rates(0, 600) == [0.1] * 600
    # two new smallest losses, one that is larger, one that only falls below the one before
    losses = [-1.0, -2.0, -1.5, -1.9]
    assert recipe.rates(4, 1, losses) == pytest.approx([0.1 * 2 ** (2 / 5) / 2 ** (2 / 10)])
    # one that is more than twice the smallest is taken back, and halves the rate
    assert recipe.rates(3, 1, [-1.0, -2.0, -1.3]) == pytest.approx([0.1 * 2 ** (2 / 5) / 2])
    assert recipe.undoes([-1.0, -2.0, -1.3])
    assert not recipe.undoes([-1.0, -2.0, -1.4])
    assert not recipe.undoes([5.0])
    assert not RECIPES["mnist"].undoes([-1.0, 3.0])


def test_checkpoints_from_before_a_setting_was_added_are_still_read():
    settings = {
        "epochs": 3,
        "batch": 128,
        "learning_rate": 0.1,
        "schedule": "cosine",
        "momentum": 0.9,
        "weight_decay": 0.0005,
        "crop": 0,
        "flip": False,
        "small_epochs": 0,
        "small_size": 20,
        "precision": "32-true",
    }
    recipe = Recipe(epochs=3)
    assert recipe.fingerprint == json_hash(settings)
    for changed in ({"optimizer": "adam"}, {"adversarial_radius": 1.0}, {"adversarial_steps": 7}):
        assert replace(recipe, **changed).fingerprint != recipe.fingerprint


def test_recipes_of_the_paper():
    cifar, mnist = RECIPES["cifar10"], RECIPES["mnist"]
    for recipe in (cifar, mnist):
        assert (recipe.batch, recipe.momentum, recipe.weight_decay) == (128, 0.9, 5e-4)
    assert (cifar.epochs, cifar.learning_rate, cifar.schedule) == (200, 0.1, "cosine")
    assert (cifar.crop, cifar.flip) == (4, True)
    assert (mnist.epochs, mnist.learning_rate, mnist.schedule) == (100, 0.001, "constant")
    assert (mnist.crop, mnist.flip) == (0, False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1; got 0."),
        ({"schedule": "step"}, "schedule must be one of 'cosine'"),
        ({"momentum": 1.0}, "momentum must be below 1; got 1.0."),
        ({"crop": -1}, "crop must be a whole number"),
        ({"flip": 1}, "flip must be True or False; got 1."),
        ({"precision": "16"}, "precision must be one of"),
        ({"schedule": "loss-based"}, "weight_decay and momentum must be 0"),
        ({"optimizer": "lion"}, "optimizer must be one of 'sgd', 'adam'"),
        (
            {"schedule": "loss-based", "momentum": 0, "weight_decay": 0, "optimizer": "adam"},
            "optimizer must be 'sgd' with the loss-based schedule",
        ),
        ({"until_loss": 0.1}, "until_loss must be 0 with a schedule that depends on the number"),
        ({"until_loss": -0.1, "schedule": "constant"}, "until_loss must be at least 0"),
        ({"adversarial_radius": -1}, "adversarial_radius must be at least 0"),
        ({"adversarial_steps": 0}, "adversarial_steps must be"),
        ({"small_epochs": -1}, "small_epochs must be"),
        ({"small_size": 0}, "small_size must be"),
    ],
)
def test_bad_recipes(wrong, message):
    with pytest.raises(InputError, match=message):
        Recipe(**{"epochs": 3, **wrong})

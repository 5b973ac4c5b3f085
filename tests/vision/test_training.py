"""Training of image classifiers."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from featavg import InputError
from featavg.vision.adversarial import perturbed
from featavg.vision.evaluation import accuracy, outputs
from featavg.vision.models import ResNet18, SmallCNN
from featavg.vision.recipes import RECIPES, Recipe
from featavg.vision.supplied_labels import SuppliedLabels
from featavg.vision.training import _steps, train
from support import train_until_killed as small
from support.train_until_killed import same_weights

pytestmark = pytest.mark.usefixtures("one_thread")


# training


def separable(rng, n=96):
    labels = np.arange(n) % 2
    images = rng.integers(120, size=(n, 1, 12, 12), dtype=np.uint8)
    images[labels == 1, :, :6] += 120
    return images, labels


@pytest.mark.parametrize("kind", ["resnet", "cnn"])
def test_a_separable_problem_is_learned(kind, rng):
    images, labels = separable(rng)
    net = (
        ResNet18(width=2, channels=1, classes=2, rng=rng)
        if kind == "resnet"
        else SmallCNN(classes=2, size=12, width=2, rng=rng)
    )
    recipe = Recipe(epochs=6, batch=16, learning_rate=0.05, schedule="one-cycle")
    before = {name: value.clone() for name, value in net.state_dict().items()}
    done = train(net, images, labels, recipe, seed=0, accelerator="cpu")
    assert done.losses[-1] < 0.3 * done.losses[0]
    assert accuracy(done.model, images, labels) == 1
    assert not done.model.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert "6 epochs" in repr(done)


def test_one_step_is_that_of_pytorch(rng):
    images, labels = separable(rng, 16)
    net = SmallCNN(classes=2, size=12, width=2, rng=rng)
    recipe = Recipe(epochs=3, batch=16, learning_rate=0.1, weight_decay=0.01)
    done = train(net, images, labels, recipe, seed=0, accelerator="cpu")
    net.standardise(torch.from_numpy(images))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    x, y = torch.from_numpy(images) / 255, torch.from_numpy(labels)
    for _ in range(3):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    for ours, theirs in zip(done.model.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_steps_of_adam_are_those_of_pytorch(rng):
    images, labels = separable(rng, 16)
    net = SmallCNN(classes=2, size=12, width=2, rng=rng)
    options = {"schedule": "constant", "optimizer": "adam", "weight_decay": 0.01}
    recipe = Recipe(epochs=3, batch=16, learning_rate=0.01, momentum=0.8, **options)
    done = train(net, images, labels, recipe, seed=0, accelerator="cpu")
    net.standardise(torch.from_numpy(images))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.8, 0.999), weight_decay=0.01)
    x, y = torch.from_numpy(images) / 255, torch.from_numpy(labels)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    for ours, theirs in zip(done.model.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_all_known_labels_train_as_plain_ones_do_and_coarse_ones_as_two_classes(rng):
    images, labels = separable(rng, 24)
    recipe, options = Recipe(epochs=2, batch=8, learning_rate=0.05), {"accelerator": "cpu"}
    net = SmallCNN(classes=4, size=12, width=2, rng=rng)
    plain = train(net, images, labels + 1, recipe, seed=0, **options)
    supplied = SuppliedLabels(labels + 1, classes=4)
    same = train(net, images, supplied, recipe, seed=0, **options)
    for one, other in zip(plain.model.parameters(), same.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert same.accuracies == plain.accuracies
    # two logits: one class on each side, so that the side says everything
    two = SmallCNN(classes=2, size=12, width=2, rng=rng)
    hidden = SuppliedLabels(labels, np.zeros(24, dtype=bool), classes=2)
    one, other = (train(two, images, y, recipe, seed=0, **options) for y in (labels, hidden))
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_it_stops_at_a_loss_as_an_uninterrupted_training_passes_it(rng, tmp_path):
    images, labels = separable(rng)
    net = SmallCNN(classes=2, size=12, width=2, rng=rng)
    recipe = Recipe(epochs=8, batch=16, learning_rate=0.01, schedule="constant")
    options = {"seed": 0, "accelerator": "cpu"}
    whole = train(net, images, labels, recipe, **options)
    limit = whole.losses[3] * 1.0001
    stopping = replace(recipe, until_loss=limit)
    path = tmp_path / "net.pt"
    done, again = (
        train(net, images, labels, stopping, checkpoint=path, **options) for _ in range(2)
    )
    assert min(whole.losses[:3]) > limit
    assert done.log_losses == again.log_losses == whole.log_losses[:4]
    assert again.resumed_from == 4
    never = train(net, images, labels, replace(recipe, until_loss=1e-30), **options)
    assert never.log_losses == whole.log_losses


def test_perturbed_images_are_the_worst_within_the_radius_for_a_linear_network(rng):
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    x = torch.from_numpy(0.5 + 0.05 * rng.standard_normal((8, 1, 4, 4))).float()
    labels = torch.from_numpy(rng.integers(2, size=8))
    with torch.no_grad():
        net[1].weight[2] = net[1].weight[1]  # logits 1 and 2 are equal: the gradient is constant
        net[1].bias[2] = net[1].bias[1]
    side = SuppliedLabels(labels, np.zeros(8, dtype=bool), classes=3, positive=1).targets
    found = perturbed(net, x, side, radius=0.3, steps=10)
    norms = (found - x).flatten(1).norm(dim=1)
    torch.testing.assert_close(norms, torch.full((8,), 0.3))
    direction = (net[1].weight[1] - net[1].weight[0]).detach()
    signs = torch.where(labels == 0, 1.0, -1.0)[:, None]
    cosines = ((found - x).flatten(1) @ direction) * signs[:, 0] / (0.3 * direction.norm())
    assert cosines.min() > 0.9  # tan(angle / 2) falls by exp(-2.5), and may be 2.4 at the start
    bright = perturbed(net, torch.ones_like(x), side, radius=5.0, steps=5)
    assert bright.min() >= 0
    assert bright.max() <= 1


def test_adversarial_training_trains_on_perturbed_images(rng):
    images, labels = separable(rng, 32)
    net = SmallCNN(classes=2, size=12, width=2, rng=rng)
    recipe = Recipe(epochs=6, batch=16, learning_rate=0.05, schedule="one-cycle")
    options = {"seed": 0, "accelerator": "cpu"}
    usual = train(net, images, labels, recipe, **options)
    tiny = train(net, images, labels, replace(recipe, adversarial_radius=1e-9), **options)
    assert tiny.losses == pytest.approx(usual.losses, rel=1e-3)
    robust = train(net, images, labels, replace(recipe, adversarial_radius=0.5), **options)
    assert robust.losses[-1] > usual.losses[-1]
    x, y = torch.from_numpy(images) / 255, torch.from_numpy(labels)
    worst = {}
    for name, trained in (("usual", usual), ("robust", robust)):
        # from several random starts: a short attack may miss what tells the networks apart
        found = [perturbed(trained.model, x, y, radius=0.5, steps=40) for _ in range(5)]
        worst[name] = max(nn.functional.cross_entropy(trained.model(f), y).item() for f in found)
    assert worst["robust"] < worst["usual"]


def test_loss_based_training_goes_below_what_float64_can_hold():
    """Two points, a linear network: the loss falls exponentially and exp(-750) is 0."""
    images = np.array([[0, 255], [255, 0]], dtype=np.uint8).reshape(2, 1, 1, 2)
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    nn.init.zeros_(net[1].weight)
    recipe = replace(RECIPES["mnist-margin"], epochs=60, batch=2, learning_rate=1.0)
    done = train(net, images, [0, 1], recipe, seed=0, accelerator="cpu")
    assert done.log_losses[-1] < -800
    assert done.losses[-1] == 0
    logits = outputs(done.model, images).double()
    margins = logits[[0, 1], [0, 1]] - logits[[0, 1], [1, 0]]
    # by hand: a first step of length 1 from 0 leads to margins of 1/2, and the loss is measured
    # after it; by symmetry both margins stay equal
    assert done.log_losses[0] == pytest.approx(math.log(math.log1p(math.exp(-0.5))))
    assert margins[0] == margins[1] == pytest.approx(-done.log_losses[-1])


def test_an_epoch_that_went_wrong_is_taken_back(monkeypatch):
    recipe = replace(RECIPES["mnist-margin"], epochs=1, batch=16, learning_rate=0.05)
    arguments = {"seed": 3, "accelerator": "cpu"}
    one = train(small.network(), *small.data(), recipe, **arguments)
    monkeypatch.setattr(Recipe, "undoes", lambda _, losses: len(losses) > 1)
    three = train(small.network(), *small.data(), replace(recipe, epochs=3), **arguments)
    assert same_weights(one.model, three.model)
    assert len(set(three.log_losses)) == 3


def test_first_epochs_on_small_images_are_those_of_a_pool_of_small_images(rng):
    images, labels = separable(rng, 24)
    assert images.shape[2] % 2 == 0
    half = images.shape[2] // 2
    # means of 2×2 pixels that are whole numbers, so that shrinking first loses nothing
    images = images.repeat(2, axis=2).repeat(2, axis=3)[:, :, : 2 * half, : 2 * half]
    shrunk = images[:, :, ::2, ::2].copy()
    recipe = replace(small.RECIPE, epochs=2, crop=0, flip=False)
    net = ResNet18(width=2, channels=images.shape[1], classes=2, rng=rng)
    arguments = {"seed": 0, "accelerator": "cpu"}
    small_first = replace(recipe, small_epochs=2, small_size=half)
    one = train(net, images, labels, small_first, **arguments)
    other = train(net, shrunk, labels, recipe, **arguments)
    for name, value in other.model.state_dict().items():
        torch.testing.assert_close(one.model.state_dict()[name], value)
    cnn = SmallCNN(images.shape[1], 2, size=2 * half, width=2, rng=rng)
    with pytest.raises(InputError, match="small_epochs must be 0"):
        train(cnn, images, labels, small_first, **arguments)


def test_outputs_leave_the_network_as_it_was_and_take_floats(rng):
    images, labels = separable(rng, 10)
    net = ResNet18(width=2, channels=1, classes=2, rng=rng).train()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    one = outputs(net, images, batch=3)
    assert net.training
    assert all(torch.equal(state[name], value) for name, value in net.state_dict().items())
    torch.testing.assert_close(one, outputs(net, torch.from_numpy(images) / 255))
    by_hand = np.mean(one.numpy().argmax(1) == labels)
    assert accuracy(net, images, labels, batch=4) == pytest.approx(by_hand)


def test_modules_that_were_frozen_stay_frozen(rng):
    images, _ = separable(rng, 4)
    net = ResNet18(width=2, channels=1, classes=2, rng=rng).train()
    frozen = next(module for module in net.modules() if isinstance(module, nn.BatchNorm2d))
    frozen.eval()
    outputs(net, images)
    assert [module for module in net.modules() if not module.training] == [frozen]


def test_accuracy_refuses_what_it_cannot_judge(rng):
    images, labels = separable(rng, 4)
    two = SmallCNN(classes=2, size=12, width=1, rng=rng)
    with pytest.raises(InputError, match="own classes, from 0 to 1; got 2"):
        accuracy(two, images, labels + 1)
    with pytest.raises(InputError, match="at least two logits for each image"):
        accuracy(nn.Sequential(nn.Flatten(), nn.Linear(144, 1)), images, labels)


def test_bad_input_to_training(rng):
    images, labels = separable(rng, 16)
    net, recipe = SmallCNN(classes=2, size=12, width=1, rng=rng), Recipe(epochs=1)
    for arguments, message in [
        ((images / 255, labels), "images must be uint8, of shape .*; got float64 of shape"),
        ((images[0], labels), "images must be uint8, of shape"),
        ((images, labels[1:]), "labels must hold one number for each of the 16 points"),
        ((images, labels + 1), "labels must be from 0 to 1 for this network; got 2."),
        ((images[:, :, :8], labels), "images must have 1 channels of 12×12 pixels"),
        ((images, SuppliedLabels(labels, classes=4)), "as many classes .* logits, 2; got 4"),
        ((images, SuppliedLabels(labels[1:], classes=2)), "those of the 16 images; got 15"),
    ]:
        with pytest.raises(InputError, match=message):
            train(net, *arguments, recipe, seed=0, accelerator="cpu")
    plain = nn.Sequential(nn.Flatten(), nn.Linear(144, 2))
    for network, options, message in [
        (plain, {}, "labels must be from 0 to 1 for this network; got 2."),
        (net, {"strategy": "fsdp"}, "strategy must be one of 'auto', 'ddp'"),
        (net, {"accelerator": "abacus"}, "accelerator and devices must be available; got 'abacus'"),
        (net, {"devices": 999}, "devices must be at most [0-9]+ because there is no GPU"),
        (net, {"seed": -1}, "seed must be a whole number"),
    ]:
        wrong = labels + (network is plain)
        with pytest.raises(InputError, match=message):
            train(network, images, wrong, recipe, **{"seed": 0, "accelerator": "cpu", **options})
    for precision in ("16-mixed", "bf16-mixed"):
        mixed = replace(recipe, precision=precision)
        with pytest.raises(InputError, match="precision must be '32-true' on a CPU"):
            train(net, images, labels, mixed, seed=0, accelerator="cpu")
    wild = replace(recipe, epochs=50, learning_rate=1e30, schedule="constant")
    with pytest.raises(InputError, match="learning_rate must be smaller because the loss became"):
        train(net, images, labels, wild, seed=0, accelerator="cpu")


class Rooted(nn.Module):
    """A network with a finite output and, at 0, an infinite slope."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(144, 2)
        self.root = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.layer(x.flatten(1)) + torch.sqrt(self.root.abs())


def test_weights_that_the_last_step_ruins_are_refused(rng):
    """The loss is that before the step: with one step in all, it says nothing about the result."""
    images, labels = separable(rng, 16)
    recipe = Recipe(epochs=1, batch=16)
    with pytest.raises(InputError, match="finite; got NaN or infinity in root after epoch 1"):
        train(Rooted(), images, labels, recipe, seed=0, accelerator="cpu")


def test_threads_are_set_for_the_training_only(rng):
    images, labels = separable(rng, 16)
    seen = []
    net = SmallCNN(classes=2, size=12, width=1, rng=rng)
    net.head.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    options = {"seed": 0, "accelerator": "cpu"}
    train(net, images, labels, Recipe(epochs=1), threads=2, **options)
    train(net, images, labels, Recipe(epochs=1), **options)
    assert seen == [2, 1]
    with pytest.raises(InputError, match="threads must be a whole number of at least 1; got 0."):
        train(net, images, labels, Recipe(epochs=1), threads=0, **options)


def test_progress_says_loss_accuracy_and_time_left(rng, capsys, monkeypatch):
    monkeypatch.setattr("featavg.progress._SECONDS_BETWEEN_LINES", -1)
    images, labels = separable(rng, 32)
    net = SmallCNN(classes=2, size=12, width=1, rng=rng)
    train(net, images, labels, Recipe(epochs=2), seed=0, accelerator="cpu", progress=True)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("epoch 1/2, loss 0.")
    assert "% : 1/2" not in first
    assert "accuracy" in first
    assert first.endswith("s left")
    assert last.startswith("epoch 2/2")


# several devices


def test_two_devices_share_each_batch(tmp_path):
    path = tmp_path / "net.pt"
    command = [sys.executable, small.__file__, path, "2"]
    paths = [str(Path(small.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("step") == 2 * 5 * small.RECIPE.epochs
    content = torch.load(path, weights_only=True)
    net = small.network_without_batch_normalisation()
    alone = train(net, *small.data(), small.RECIPE, seed=3, accelerator="cpu")
    assert content["log_losses"] == pytest.approx(alone.log_losses, rel=1e-4)
    assert content["accuracies"] == pytest.approx(alone.accuracies)
    for name, value in alone.model.state_dict().items():
        torch.testing.assert_close(content["model"][name], value, rtol=1e-3, atol=1e-5)


def test_steps_and_shares_of_several_devices():
    assert _steps(72, 16, 1) == 5
    assert _steps(65, 16, 1) == 5
    assert _steps(65, 16, 2) == 4
    with pytest.raises(InputError, match="batch must be a multiple of the number of devices"):
        _steps(65, 16, 3)
    with pytest.raises(InputError, match="there must be at least as many images as devices"):
        _steps(1, 16, 2)

"""Training of image classifiers: networks, augmentation, schedules, and being killed."""

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

import train_until_killed as small
from featavg import InputError
from featavg.vision.augmentation import Draw, ImagePool
from featavg.vision.evaluation import accuracy, outputs
from featavg.vision.models import ResNet18, SmallCNN
from featavg.vision.recipes import RECIPES, Recipe
from featavg.vision.training import _losses, _Run, _steps, train


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# networks


def test_resnet18_has_the_parameters_counted_by_hand():
    # 3×3 convolutions without bias, two numbers a channel of batch normalisation, 1×1 shortcuts
    stem = 3 * 64 * 9 + 2 * 64
    stages = 4 * 64 * 64 * 9 + 4 * 2 * 64
    for wide in (128, 256, 512):
        stages += (wide // 2) * wide * 9 + 3 * wide * wide * 9 + (wide // 2) * wide + 5 * 2 * wide
    head = 512 * 10 + 10
    net = ResNet18(rng=np.random.default_rng(0))
    assert net.parameter_count() == stem + stages + head == 11_173_962


@pytest.mark.parametrize(("channels", "size"), [(3, 32), (1, 28)])
def test_shapes_and_that_the_head_is_on_top_of_the_features(channels, size, rng):
    x = torch.rand(3, channels, size, size)
    for net, wide in (
        (ResNet18(width=4, channels=channels, classes=2, rng=rng), 32),
        (SmallCNN(channels, 2, size=size, width=2, rng=rng), 64),
    ):
        net.eval()
        assert net.features(x).shape == (3, wide)
        assert torch.equal(net(x), net.head(net.features(x)))
        assert net(x).shape == (3, 2)


def test_stages_halve_the_image(rng):
    net = ResNet18(width=2, rng=rng).eval()
    sizes = [
        tuple(y.shape[1:]) for y in _after_each(net.blocks, net.stem(torch.rand(1, 3, 32, 32)))
    ]
    assert sizes[1::2] == [(2, 32, 32), (4, 16, 16), (8, 8, 8), (16, 4, 4)]


def _after_each(blocks, x):
    for block in blocks:
        x = block(x)
        yield x


def test_small_cnn_is_the_talks_and_homogeneous_on_request(rng):
    by_hand = (25 * 32 + 32) + (32 * 64 * 9 + 64) + (7 * 7 * 64 * 1024 + 1024) + (1024 * 10 + 10)
    assert SmallCNN(rng=rng).parameter_count() == by_hand
    net = SmallCNN(width=2, homogeneous=True, rng=rng).double()
    x = torch.rand(5, 1, 28, 28, dtype=torch.float64)
    before = net(x)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter *= 1.5
    torch.testing.assert_close(net(x), 1.5**4 * before)


def test_initial_weights_come_from_the_generator_alone():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one = ResNet18(width=2, rng=np.random.default_rng(3))
    torch.manual_seed(99)
    other = ResNet18(width=2, rng=np.random.default_rng(3))
    third = ResNet18(width=2, rng=np.random.default_rng(4))
    assert same_weights(one, other)
    assert not same_weights(one, third)
    torch.manual_seed(5)
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(InputError, match="rng must be a numpy Generator"):
        ResNet18(rng=0)


def test_standardise_is_mean_and_standard_deviation(rng):
    images = rng.integers(256, size=(6, 3, 8, 8), dtype=np.uint8)
    images[:, 2] = 17  # a channel that says nothing
    net = ResNet18(width=2, rng=rng)
    net.standardise(torch.from_numpy(images))
    x = torch.from_numpy(images / 255).float()
    seen = net.standardised(x).double()
    assert np.allclose(net.mean[:, 0, 0], (images / 255).mean(axis=(0, 2, 3)), atol=1e-7)
    assert np.allclose(seen[:, :2].std(dim=(0, 2, 3), correction=0), 1, atol=1e-5)
    assert seen[:, 2].abs().max() < 1e-4


# augmentation


def slow_batch(images, labels, draw, part, crop):
    """One image at a time, one pixel at a time."""
    _, channels, height, width = images.shape
    positions = range(len(images))[part]
    x = np.zeros((len(positions), channels, height, width), dtype=np.float32)
    for i, position in enumerate(positions):
        source = images[int(draw.order[position])]
        for row in range(height):
            for column in range(width):
                seen = width - 1 - column if draw.flip[position] else column
                r = row + int(draw.top[position]) - crop
                c = seen + int(draw.left[position]) - crop
                if 0 <= r < height and 0 <= c < width:
                    x[i, :, row, column] = source[:, r, c] / np.float32(255)
    return x, labels[draw.order[part].numpy()]


@pytest.mark.parametrize("recipe", [Recipe(epochs=1, crop=3, flip=True), Recipe(epochs=1)])
def test_augmentation_equals_a_loop_over_pixels(recipe, rng):
    images = rng.integers(256, size=(20, 3, 9, 7), dtype=np.uint8)
    labels = rng.integers(10, size=20)
    tensors = torch.from_numpy(images), torch.from_numpy(labels)
    pool = ImagePool(*tensors, crop=recipe.crop, device=torch.device("cpu"))
    for epoch in range(3):
        draw = Draw.of(20, recipe, 5, epoch)
        for part in (slice(0, 8), slice(8, 20)):
            x, y = pool.batch(draw, part)
            expected_x, expected_y = slow_batch(images, labels, draw, part, recipe.crop)
            assert np.array_equal(x.numpy(), expected_x)
            assert np.array_equal(y.numpy(), expected_y)
            assert x.is_contiguous(memory_format=torch.channels_last)


def test_draws_cover_all_there_is_and_depend_on_seed_and_epoch():
    recipe = Recipe(epochs=1, crop=4, flip=True)
    draw = Draw.of(9000, recipe, 0, 0)
    assert torch.equal(draw.order.sort().values, torch.arange(9000))
    for offsets in (draw.top, draw.left):
        counts = torch.bincount(offsets, minlength=9)
        assert len(counts) == 9
        assert (counts - 1000).abs().max() < 5 * math.sqrt(1000)
    assert abs(draw.flip.double().mean() - 0.5) < 5 * 0.5 / math.sqrt(9000)
    assert torch.equal(draw.order, Draw.of(9000, recipe, 0, 0).order)
    assert not torch.equal(draw.order, Draw.of(9000, recipe, 0, 1).order)
    assert not torch.equal(draw.order, Draw.of(9000, recipe, 1, 0).order)


# schedules and the loss


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


def test_loss_is_the_cross_entropy_and_exact_where_it_is_tiny(rng):
    logits = torch.tensor(rng.normal(size=(50, 4)) * 5)
    labels = torch.tensor(rng.integers(4, size=50))
    expected = nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(_losses(logits, labels, 0.0), expected)
    torch.testing.assert_close(_losses(logits, labels, -3.0), expected * math.exp(3))
    # the loss of a margin of 2000 is exp(-2000), 10^-869, and relative to itself it is 1
    tiny = torch.tensor([[2000.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss = _losses(tiny, torch.tensor([0]), -2000.0)
    loss.sum().backward()
    assert loss.item() == 1
    assert tiny.grad.tolist() == [[-1.0, 1.0]]


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
    ],
)
def test_bad_recipes(wrong, message):
    with pytest.raises(InputError, match=message):
        Recipe(**{"epochs": 3, **wrong})


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
    assert done.log_losses[0] == pytest.approx(math.log(math.log(2)))
    # by symmetry both margins are equal; the loss of the last epoch was measured before its step
    assert margins[0] == margins[1] > -done.log_losses[-1]


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


def test_bad_input_to_training(rng):
    images, labels = separable(rng, 16)
    net, recipe = SmallCNN(classes=2, size=12, width=1, rng=rng), Recipe(epochs=1)
    for arguments, message in [
        ((images / 255, labels), "images must be uint8, from 0 to 255; got float64."),
        ((images[0], labels), "images must be uint8, of shape"),
        ((images, labels[1:]), "labels must hold one number for each of the 16 points"),
        ((images, labels + 1), "labels must be from 0 to 1 for this network; got 2."),
        ((images[:, :, :8], labels), "images must have 1 channels of 12×12 pixels"),
    ]:
        with pytest.raises(InputError, match=message):
            train(net, *arguments, recipe, seed=0, accelerator="cpu")
    plain = nn.Sequential(nn.Flatten(), nn.Linear(144, 2))
    for network, options, message in [
        (plain, {}, "labels must be below the number of logits; got the label 2"),
        (net, {"strategy": "fsdp"}, "strategy must be one of 'auto', 'ddp'"),
        (net, {"accelerator": "abacus"}, "accelerator and devices must be there; got 'abacus'"),
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
    with pytest.raises(InputError, match="learning_rate must be small enough"):
        train(net, images, labels, wild, seed=0, accelerator="cpu")


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


# going on after an interruption


def run_small(path, recipe=small.RECIPE, **options):
    arguments = {"seed": 3, "checkpoint": path, "accelerator": "cpu", **options}
    return train(small.network(), *small.data(), recipe, **arguments)


@pytest.fixture(scope="module")
def uninterrupted():
    torch.set_num_threads(1)
    return run_small(None)


class DropoutNet(nn.Sequential):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__(nn.Flatten(), nn.Linear(432, 20), nn.Dropout(), nn.Linear(20, 2))


@pytest.mark.parametrize("make", [small.network, DropoutNet])
@pytest.mark.parametrize("schedule", ["cosine", "one-cycle", "loss-based"])
def test_resumed_equals_uninterrupted_bit_for_bit(make, schedule, tmp_path, monkeypatch):
    plain = {"momentum": 0, "weight_decay": 0} if schedule == "loss-based" else {}
    recipe = replace(small.RECIPE, schedule=schedule, learning_rate=0.02, **plain)
    path = tmp_path / "a" / "net.pt"
    arguments = {"seed": 3, "accelerator": "cpu"}
    whole = train(make(), *small.data(), recipe, **arguments)
    with monkeypatch.context() as patched:
        one_epoch = _Run.one_epoch
        patched.setattr(_Run, "one_epoch", lambda run, r: _stop_at(3, run, r, one_epoch))
        with pytest.raises(KeyboardInterrupt):
            train(make(), *small.data(), recipe, checkpoint=path, **arguments)
    net = make()
    torch.manual_seed(1)  # global state is nothing to rely on
    resumed = train(net, *small.data(), recipe, checkpoint=path, **arguments)
    assert resumed.resumed_from == 3
    assert resumed.log_losses == whole.log_losses
    assert same_weights(resumed.model, whole.model)


def _stop_at(epoch, run, reporter, one_epoch):
    if run.epoch == epoch:
        raise KeyboardInterrupt
    one_epoch(run, reporter)


def start(path, **environment):
    command = [sys.executable, Path(small.__file__), path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_killed_at_any_step_and_started_again_the_weights_are_the_same(
    tmp_path, uninterrupted, rng
):
    path = tmp_path / "net.pt"
    for _ in range(3):
        with start(path) as process:
            for _ in range(rng.integers(3, 9)):  # an epoch has 5 steps
                process.stdout.readline()
            process.kill()
        assert process.returncode == -9
    done = run_small(path)
    assert done.resumed_from >= 1
    assert same_weights(done.model, uninterrupted.model)


@pytest.mark.parametrize(("moment", "epochs"), [("before", 1), ("after", 2)])
def test_killed_while_a_checkpoint_is_put_in_place(moment, epochs, tmp_path, uninterrupted):
    path = tmp_path / "net.pt"
    with start(path, KILL=moment) as process:
        process.stdout.read()
    assert process.returncode == -9
    assert len(list(tmp_path.iterdir())) == (2 if moment == "before" else 1)
    done = run_small(path)
    assert done.resumed_from == epochs
    assert same_weights(done.model, uninterrupted.model)
    assert list(tmp_path.iterdir()) == [path]  # what the killed one left is gone


def test_a_finished_run_is_only_read(tmp_path, uninterrupted):
    path = tmp_path / "net.pt"
    run_small(path)
    before = path.read_bytes()
    again = run_small(path)
    assert again.resumed_from == small.RECIPE.epochs
    assert again.log_losses == uninterrupted.log_losses
    assert same_weights(again.model, uninterrupted.model)
    assert path.read_bytes() == before


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    path = tmp_path / "net.pt"
    recipe = replace(small.RECIPE, epochs=1)
    run_small(path, recipe)
    before = path.read_bytes()
    images, labels = small.data()
    other_images = images.copy()
    other_images[5, 1, 2, 3] ^= 1
    other = ResNet18(width=2, classes=2, rng=np.random.default_rng(9))
    options = {"seed": 3, "checkpoint": path, "accelerator": "cpu"}
    for arguments, name in [
        ((small.network(), images, labels, replace(recipe, momentum=0.8)), "recipe"),
        ((small.network(), other_images, labels, recipe), "data"),
        ((small.network(), images, 1 - labels, recipe), "data"),
        ((other, images, labels, recipe), "network"),
    ]:
        with pytest.raises(InputError, match=f"net.pt was made with another {name}; delete"):
            train(*arguments, **options)
    with pytest.raises(InputError, match="made with another seed"):
        run_small(path, recipe, seed=4)
    assert path.read_bytes() == before


def test_a_damaged_checkpoint_is_named_and_refused(tmp_path):
    path = tmp_path / "net.pt"
    recipe = replace(small.RECIPE, epochs=1)
    run_small(path, recipe)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4  # in the middle of a weight
    code = tmp_path / "code.pt"
    torch.save({"format": Path}, code)  # not a tensor: could run code
    for content in (b"", b"hello", whole[:-300], bytes(flipped), code.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(InputError, match="checkpoint must be a whole file .*net.pt"):
            run_small(path, recipe)
        assert path.read_bytes() == content
    torch.save({"weights": torch.zeros(3)}, path)
    with pytest.raises(InputError, match="checkpoint must be a whole file .*net.pt"):
        run_small(path, recipe)
    path.write_bytes(whole)
    assert run_small(path, recipe).resumed_from == 1


def test_a_checkpoint_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "net.pt"):
        with pytest.raises(InputError, match="checkpoint must be a file that can be written"):
            run_small(path)


# several devices, mixed precision


def test_two_devices_share_each_batch(tmp_path):
    path = tmp_path / "net.pt"
    command = [sys.executable, small.__file__, path, "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
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
    with pytest.raises(InputError, match="images must be at least as many as devices"):
        _steps(1, 16, 2)


def test_mixed_precision_resumes(tmp_path, monkeypatch):
    """On a CPU it is refused as slow, but works: as much as can be tried without a GPU."""
    recipe = replace(small.RECIPE, epochs=2, learning_rate=0.01, precision="bf16-mixed")
    monkeypatch.setattr("featavg.vision.training._check_precision", lambda *_: None)
    whole = run_small(None, recipe)
    path = tmp_path / "net.pt"
    one_epoch = _Run.one_epoch
    with monkeypatch.context() as patched:
        patched.setattr(_Run, "one_epoch", lambda run, r: _stop_at(1, run, r, one_epoch))
        with pytest.raises(KeyboardInterrupt):
            run_small(path, recipe)
    resumed = run_small(path, recipe)
    assert resumed.resumed_from == 1
    assert same_weights(resumed.model, whole.model)
    assert all(parameter.dtype == torch.float32 for parameter in resumed.model.parameters())

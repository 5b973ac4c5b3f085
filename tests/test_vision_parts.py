"""What training is made of: networks, augmentation, schedules, the loss."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from featavg import InputError
from featavg.vision.augmentation import Draw, ImagePool
from featavg.vision.models import ResNet18, SmallCNN, in_layout, memory_format
from featavg.vision.objectives import scaled_losses
from featavg.vision.recipes import RECIPES, Recipe
from featavg.vision.training import train
from train_until_killed import same_weights

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
    # one that is more than twice the smallest is taken back, and halves the rate
    assert recipe.rates(3, 1, [-1.0, -2.0, -1.3]) == pytest.approx([0.1 * 2 ** (2 / 5) / 2])
    assert recipe.undoes([-1.0, -2.0, -1.3])
    assert not recipe.undoes([-1.0, -2.0, -1.4])
    assert not recipe.undoes([5.0])
    assert not RECIPES["mnist"].undoes([-1.0, 3.0])


def test_loss_is_the_cross_entropy_and_exact_where_it_is_tiny(rng):
    logits = torch.tensor(rng.normal(size=(50, 4)) * 5)
    labels = torch.tensor(rng.integers(4, size=50))
    expected = nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(scaled_losses(logits, labels, 0.0), expected)
    torch.testing.assert_close(scaled_losses(logits, labels, -3.0), expected * math.exp(3))
    # the loss of a margin of 2000 is exp(-2000), 10^-869, and relative to itself it is 1
    tiny = torch.tensor([[2000.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss = scaled_losses(tiny, torch.tensor([0]), -2000.0)
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
        ({"small_epochs": -1}, "small_epochs must be"),
        ({"small_size": 0}, "small_size must be"),
    ],
)
def test_bad_recipes(wrong, message):
    with pytest.raises(InputError, match=message):
        Recipe(**{"epochs": 3, **wrong})


def test_narrow_networks_are_not_given_the_layout_that_pytorch_crashes_with(rng):
    """With channels last, width 2, five images and two threads, PyTorch 2.13 corrupts memory."""
    narrow = ResNet18(width=2, rng=rng)
    assert memory_format(narrow) == torch.contiguous_format
    assert memory_format(ResNet18(width=16, rng=rng)) == torch.channels_last
    assert memory_format(SmallCNN(width=8, rng=rng)) == torch.contiguous_format
    assert memory_format(SmallCNN(rng=rng)) == torch.channels_last
    assert memory_format(nn.Linear(2, 2)) == torch.channels_last
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        images = torch.from_numpy(rng.integers(256, size=(5, 3, 32, 32), dtype=np.uint8))
        recipe = Recipe(epochs=2, batch=5, learning_rate=0.01)
        train(narrow, images, [0, 1, 2, 3, 4], recipe, seed=0, accelerator="cpu")
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_the_ordinary_layout_have_its_strides(channels):
    """PyTorch chooses the layout by the strides, also where one channel fits both."""
    last = torch.rand(2, 5, 4, channels).permute(0, 3, 1, 2)
    seen = in_layout(last, torch.contiguous_format)
    assert seen.stride() == (channels * 20, 20, 4, 1)
    assert torch.equal(seen, last)
    again = in_layout(seen, torch.channels_last)
    assert again.is_contiguous(memory_format=torch.channels_last)
    assert in_layout(torch.rand(2, 3), torch.contiguous_format).shape == (2, 3)

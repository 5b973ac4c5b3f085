"""The networks for images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from featavg import InputError
from featavg.vision.models import ResNet18, SmallCNN, StridedCNN, in_layout, memory_format
from featavg.vision.recipes import Recipe
from featavg.vision.training import train
from support.train_until_killed import same_weights


def parameter_count(net):
    return sum(parameter.numel() for parameter in net.parameters())


# networks


def test_resnet18_has_the_parameters_counted_by_hand():
    # 3×3 convolutions without bias, two numbers a channel of batch normalisation, 1×1 shortcuts
    stem = 3 * 64 * 9 + 2 * 64
    stages = 4 * 64 * 64 * 9 + 4 * 2 * 64
    for wide in (128, 256, 512):
        stages += (wide // 2) * wide * 9 + 3 * wide * wide * 9 + (wide // 2) * wide + 5 * 2 * wide
    head = 512 * 10 + 10
    net = ResNet18(rng=np.random.default_rng(0))
    assert parameter_count(net) == stem + stages + head == 11_173_962


@pytest.mark.parametrize(("channels", "size"), [(3, 32), (1, 28)])
def test_shapes_and_that_the_head_is_on_top_of_the_features(channels, size, rng):
    x = torch.rand(3, channels, size, size)
    for net, wide in (
        (ResNet18(width=4, channels=channels, classes=2, rng=rng), 32),
        (SmallCNN(channels, 2, size=size, width=2, rng=rng), 64),
        (StridedCNN(channels, 2, size=size, width=2, rng=rng), 16),
        (StridedCNN(channels, 2, size=size - 1, width=2, first_stride=2, rng=rng), 16),
        (StridedCNN(channels, 2, size=size, width=2, batch_norm=True, rng=rng), 16),
    ):
        net.eval()
        x = x[:, :, : getattr(net, "size", size), : getattr(net, "size", size)]
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
    assert parameter_count(SmallCNN(rng=rng)) == by_hand
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

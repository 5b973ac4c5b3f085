from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from featavg.vision.augmentation import Draw, ImagePool
from featavg.vision.recipes import Recipe


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

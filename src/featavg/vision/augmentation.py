"""The training images in the memory of the device, and augmented batches of them.

A batch, crops and flips included, is one gather from one tensor: images are never processed one by
one, and no worker processes are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from featavg.vision.recipes import Recipe


@dataclass(frozen=True)
class Draw:
    """The randomness of one epoch: the order of the images, and the crop and flip of each.

    It is a function of (seed, epoch) alone and drawn with NumPy, so that it is the same after an
    interruption and on every device.
    """

    order: Tensor
    top: Tensor
    left: Tensor
    flip: Tensor

    @classmethod
    def of(
        cls, images: int, recipe: Recipe, seed: int, epoch: int, device: torch.device | str = "cpu"
    ) -> Draw:
        """Draw the order, crops and flips of an epoch."""
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(images)
        top, left = rng.integers(2 * recipe.crop + 1, size=(2, images))
        flip = rng.integers(2, size=images) * int(recipe.flip)
        return cls(*(torch.from_numpy(a).to(device) for a in (order, top, left, flip == 1)))


class ImagePool:
    """All training images on a device, padded with black pixels and with channels last."""

    def __init__(self, images: Tensor, labels: Tensor, *, crop: int, device: torch.device) -> None:
        n, channels, self.height, self.width = images.shape
        shape = (n, self.height + 2 * crop, self.width + 2 * crop, channels)
        self.pixels = torch.zeros(shape, dtype=torch.uint8, device=device)
        inside = self.pixels[:, crop : crop + self.height, crop : crop + self.width]
        inside.copy_(images.permute(0, 2, 3, 1))
        self.crop, self.labels = crop, labels.to(device)
        self._rows = torch.arange(self.height, device=device)
        self._columns = torch.arange(self.width, device=device)

    def batch(self, draw: Draw, part: slice) -> tuple[Tensor, Tensor]:
        """Return images in [0, 1], shape (images, channels, h, w), and labels.

        `part` is a slice of the order; entry i of `draw.top`, `.left` and `.flip` belongs to the
        i-th image in this order.
        """
        chosen = draw.order[part]
        rows = draw.top[part, None] + self._rows
        mirrored = torch.where(draw.flip[part, None], self.width - 1 - self._columns, self._columns)
        columns = draw.left[part, None] + mirrored
        cut = self.pixels[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]
        return cut.permute(0, 3, 1, 2).float() / 255, self.labels[chosen]

    def whole(self, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all images without augmentation, in their original order, and their labels."""
        inside = slice(self.crop, self.crop + self.height), slice(self.crop, self.crop + self.width)
        for first in range(0, len(self.labels), batch):
            part = slice(first, first + batch)
            cut = self.pixels[part, inside[0], inside[1]]
            yield cut.permute(0, 3, 1, 2).float() / 255, self.labels[part]

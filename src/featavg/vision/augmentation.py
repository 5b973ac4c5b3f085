"""The training images, whole in the memory of the device, and batches of them.

Batches are cut out of one tensor by a single gather, crops and flips included: no image is ever
handled alone, and no other process is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from featavg.checks import indices
from featavg.errors import InputError
from featavg.vision.recipes import Recipe


def checked(images: ArrayLike | Tensor) -> Tensor:
    """Return uint8 images, shape (images, channels, height, width), as a tensor on the CPU."""
    if isinstance(images, Tensor):
        pixels = images.cpu()
    else:
        array = np.asarray(images)
        if array.dtype != np.uint8:
            raise InputError(f"images must be uint8, from 0 to 255; got {array.dtype}.")
        # a copy where the array is read-only, which tensors cannot be
        pixels = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    if pixels.dtype != torch.uint8 or pixels.ndim != 4 or 0 in pixels.shape:
        raise InputError(
            "images must be uint8, of shape (images, channels, height, width); "
            f"got {str(pixels.dtype).removeprefix('torch.')} of shape {tuple(pixels.shape)}."
        )
    return pixels


def checked_labels(labels: ArrayLike | Tensor, images: int) -> Tensor:
    """Return labels, whole numbers from 0 on, as a tensor on the CPU."""
    values = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    return torch.from_numpy(indices("labels", values, length=images, below=2**31))


@dataclass(frozen=True)
class Draw:
    """What is random in one epoch: the order of the images, and crop and flip of each.

    A function of (seed, epoch) alone, drawn with NumPy: a run that was interrupted, or runs on
    another device, sees the same.
    """

    order: Tensor
    top: Tensor
    left: Tensor
    flip: Tensor

    @classmethod
    def of(cls, images: int, recipe: Recipe, seed: int, epoch: int) -> Draw:
        """Draw for an epoch."""
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(images)
        top, left = rng.integers(2 * recipe.crop + 1, size=(2, images))
        flip = rng.integers(2, size=images) * int(recipe.flip)
        return cls(*(torch.from_numpy(array) for array in (order, top, left, flip == 1)))

    def to(self, device: torch.device) -> Draw:
        """Return the same on a device."""
        return Draw(*(t.to(device) for t in (self.order, self.top, self.left, self.flip)))


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

        `part` is a part of the order; entry i of `draw.top`, `.left` and `.flip` belongs to the
        image that comes i-th.
        """
        chosen = draw.order[part]
        rows = draw.top[part, None] + self._rows
        mirrored = torch.where(draw.flip[part, None], self.width - 1 - self._columns, self._columns)
        columns = draw.left[part, None] + mirrored
        cut = self.pixels[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]
        return cut.permute(0, 3, 1, 2).float() / 255, self.labels[chosen]

    def whole(self, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all images as they are, in their own order, and their labels."""
        inside = slice(self.crop, self.crop + self.height), slice(self.crop, self.crop + self.width)
        for first in range(0, len(self.labels), batch):
            part = slice(first, first + batch)
            cut = self.pixels[part, inside[0], inside[1]]
            yield cut.permute(0, 3, 1, 2).float() / 255, self.labels[part]

"""A stand-in for a backbone, for tests of embeddings."""

from __future__ import annotations

import torch
from torch import nn

from featavg.vision.backbones import Backbone


class Pooled(nn.Module):
    """A stand-in that a person can check: the mean of each channel in each of 4 x 4 squares.

    `batches` has the number of images of each call.
    """

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
        self.batches: list[int] = []

    def features(self, x):
        self.batches.append(len(x))
        return self.scale * nn.functional.avg_pool2d(x, x.shape[-1] // 4).flatten(1)


def stand_in(scale=1.0, **options):
    return Backbone("stand-in", Pooled(scale), **options)

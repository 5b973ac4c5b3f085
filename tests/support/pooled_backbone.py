"""A stand-in for a backbone, for tests of embeddings."""

from __future__ import annotations

import torch
from torch import nn

from featavg.vision.backbones import Backbone


class Pooled(nn.Module):
    """A stand-in that a person can check: the mean of each channel in each of 4 x 4 squares."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
        self.calls = 0

    def features(self, x):
        self.calls += 1
        return self.scale * nn.functional.avg_pool2d(x, x.shape[-1] // 4).flatten(1)


def stand_in(scale=1.0, **options):
    return Backbone("stand-in", Pooled(scale), **options)

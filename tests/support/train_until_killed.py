"""A small training in a process of its own, which tests kill.

Arguments: the checkpoint, and for two devices the number 2 (then batch normalisation, which is over
the images of a device, is left out). Prints a line for each step. With KILL=inside,
before or after it kills itself in its second write.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import torch
from torch import nn

from featavg.vision.models import ResNet18, SmallCNN
from featavg.vision.recipes import Recipe
from featavg.vision.training import train
from support.die_in_write import die_in_write

RECIPE = Recipe(epochs=5, batch=16, learning_rate=0.1, crop=2, flip=True)


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return rng.integers(256, size=(72, 3, 12, 12), dtype=np.uint8), rng.integers(2, size=72)


def network() -> ResNet18:
    return ResNet18(width=2, classes=2, rng=np.random.default_rng(8))


def network_without_batch_normalisation() -> SmallCNN:
    return SmallCNN(3, classes=2, size=12, width=2, rng=np.random.default_rng(8))


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def tell(head: nn.Module, *_: object) -> None:
    if head.training:
        print("step", flush=True)


def main(path: str, devices: int = 1) -> None:
    torch.set_num_threads(1)
    if moment := os.environ.get("KILL"):
        die_in_write(2, moment)
    net = network() if devices == 1 else network_without_batch_normalisation()
    net.head.register_forward_hook(tell)
    train(net, *data(), RECIPE, seed=3, checkpoint=path, accelerator="cpu", devices=devices)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

"""Time the training of image classifiers: images a second, by network and memory layout.

Random images of the size of CIFAR-10 or MNIST, batches of 128; layouts turn by turn, so that both
see the same machine, and the best of several rounds. The last column is the share of a step that
cutting out a batch with crops and flips takes.

    python benchmarks/training.py [--rounds 5] [--steps 6] [--threads 2]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from featavg.vision.augmentation import Draw, ImagePool
from featavg.vision.models import ImageClassifier, ResNet18, SmallCNN
from featavg.vision.recipes import RECIPES

BATCH = 128
NETWORKS: dict[str, tuple[Callable[[np.random.Generator], ImageClassifier], int, int]] = {
    "ResNet18(width=8), 28×28": (lambda rng: ResNet18(8, 1, 2, rng=rng), 1, 28),
    "ResNet18(width=16), 28×28": (lambda rng: ResNet18(16, 1, 2, rng=rng), 1, 28),
    "ResNet18(width=16), 32×32": (lambda rng: ResNet18(16, 3, 2, rng=rng), 3, 32),
    "SmallCNN, 28×28": (lambda rng: SmallCNN(1, 2, rng=rng), 1, 28),
}
LAYOUTS = {"channels first": torch.contiguous_format, "channels last": torch.channels_last}


def seconds_a_step(
    net: nn.Module, pool: ImagePool, draw: Draw, layout: torch.memory_format, steps: int
) -> tuple[float, float]:
    """Return the seconds of a step, and those of cutting out its batch."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)
    cutting = 0.0
    start = time.perf_counter()
    for step in range(steps):
        before = time.perf_counter()
        x, y = pool.batch(draw, slice(step * BATCH, (step + 1) * BATCH))
        x = x.contiguous(memory_format=layout)
        cutting += time.perf_counter() - before
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return (time.perf_counter() - start) / steps, cutting / steps


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the training of image classifiers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    recipe, rng = RECIPES["cifar10"], np.random.default_rng(0)
    print(f"{options.threads} threads, batch {BATCH}" + " " * 20 + "images/s   batch cut out")
    for name, (make, channels, size) in NETWORKS.items():
        shape = (options.steps * BATCH, channels, size, size)
        images = torch.from_numpy(rng.integers(256, size=shape, dtype=np.uint8))
        labels = torch.from_numpy(rng.integers(2, size=len(images)))
        pool = ImagePool(images, labels, crop=recipe.crop, device=torch.device("cpu"))
        draw = Draw.of(len(images), recipe, 0, 0)
        best = dict.fromkeys(LAYOUTS, (np.inf, np.inf))
        nets = {}
        for kind, layout in LAYOUTS.items():
            nets[kind] = make(np.random.default_rng(1)).to(memory_format=layout)  # type: ignore[call-overload]
        for _ in range(options.rounds):
            for kind, layout in LAYOUTS.items():
                timed = seconds_a_step(nets[kind], pool, draw, layout, options.steps)
                best[kind] = min(best[kind], timed)
        for kind, (step, cutting) in best.items():
            print(f"  {name:<27}{kind:<16}{BATCH / step:8.0f}{cutting / step:14.1%}")


if __name__ == "__main__":
    main()

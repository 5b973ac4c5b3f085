"""A small attack in a process of its own, which tests kill.

Argument: the folder. Prints a line for each time that the network is used. With KILL=inside,
before or after it kills itself in its fifth write.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import torch

from featavg.vision.curves import ImageCurves, robust_curves
from featavg.vision.models import SmallCNN
from support.die_in_write import die_in_write


def attack(folder: Path | None, *, tell: bool = False) -> ImageCurves:
    rng = np.random.default_rng(5)
    net = SmallCNN(1, 4, size=8, width=2, rng=rng)
    images = rng.integers(256, size=(26, 1, 8, 8), dtype=np.uint8)
    with torch.no_grad():
        logits = net(torch.from_numpy(images) / 255)
        net.head.bias -= logits.mean(0)  # so that the network does not say the same of all
        labels = (logits - logits.mean(0)).argmax(1)
    if tell:
        net.head.register_forward_hook(lambda *_: print("step", flush=True))
    options = {"pgd_steps": 6, "restarts": 2, "steps": 12, "batch": 10, "seed": 1}
    return robust_curves(net, images, labels, radii=[0.2, 0.6], folder=folder, **options)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if moment := os.environ.get("KILL"):
        die_in_write(5, moment)
    attack(Path(sys.argv[1]), tell=True)

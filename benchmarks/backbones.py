"""Compare frozen backbones by a linear probe: CIFAR-10, first five classes against last five.

    python benchmarks/backbones.py resnet50:128 resnet50:224 efficientnet-lite0:128
    python benchmarks/backbones.py resnet50:160 efficientnet-lite0:128 --train 8000 --test 1000
    python benchmarks/backbones.py resnet50:96 --speed      # images per second only

A backbone is named with the size that images get. Without --test only the first training images
are used: the accuracy is that of 5-fold cross-validation, by which the size is chosen. With --test
the probe is trained on all of them, and the accuracy is that on the first test images. In both
cases the probe is logistic regression on embeddings that are centred and scaled by one factor, and
its penalty is chosen by cross-validation within the training images. Speed is that of one thread,
in processor time. Embeddings are kept in the cache, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from featavg import datasets
from featavg.errors import InputError
from featavg.files import write_atomically
from featavg.vision.backbones import Backbone, load_backbone
from featavg.vision.embeddings import embed

Array = np.ndarray[Any, Any]
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
FOLDS = 5
TIMED = 100


def speed(backbone: Backbone, images: Array) -> float:
    """Return images per second of processor time."""
    embed(images[:10], backbone, cache=False)
    start = time.process_time()
    embed(images[:TIMED], backbone, cache=False)
    return TIMED / (time.process_time() - start)


def scaled(x: Array, mean: Array, unit: float) -> Array:
    return (x - mean) / unit


def held_out_decisions(x: Array, y: Array, fine: Array) -> tuple[float, Array]:
    """Return the best penalty and, for each point, whether the other folds' probe is right."""
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x, fine))
    right = {
        c: cross_val_predict(LogisticRegression(C=c, max_iter=2000), x, y, cv=folds) == y
        for c in PENALTIES
    }
    best = max(PENALTIES, key=lambda c: right[c].mean())
    return best, right[best]


def probed(backbone: Backbone, data: datasets.ImageData, train: int, test: int) -> dict[str, Any]:
    """Return the accuracy of a linear probe, and the images that it decides rightly."""
    fine = data.train_labels[:train]
    y = (fine >= 5).astype(int)
    x = embed(data.train_images[:train], backbone, progress=True).astype(np.float64)
    mean = x.mean(axis=0)
    unit = float(np.sqrt(np.square(x - mean).mean()))
    x = scaled(x, mean, unit)
    penalty, right = held_out_decisions(x, y, fine)
    found = {"cross_validated": float(right.mean()), "penalty": penalty}
    if test:
        probe = LogisticRegression(C=penalty, max_iter=2000).fit(x, y)
        pixels = data.test_images[:test]
        points = embed(pixels, backbone, progress=True).astype(np.float64)
        right = probe.predict(scaled(points, mean, unit)) == (data.test_labels[:test] >= 5)
        found["test"] = float(right.mean())
    return found | {"right": right.astype(int).tolist()}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("backbones", nargs="+", metavar="NAME:SIZE")
    parser.add_argument("--train", type=int, default=3000, help="training images, the first ones")
    parser.add_argument("--test", type=int, default=0, help="test images, the first ones")
    parser.add_argument("--speed", action="store_true", help="measure the speed only")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)
    data = datasets.load("cifar10")
    results: dict[str, Any] = {}
    for named in options.backbones:
        name, _, size = named.partition(":")
        if not size.isdigit():
            raise InputError(f"a backbone must be NAME:SIZE; got {named!r}.")
        backbone = load_backbone(name, size=int(size))
        result: dict[str, Any] = {"images_per_second": speed(backbone, data.train_images)}
        if not options.speed:
            with threadpool_limits(1):
                result |= probed(backbone, data, options.train, options.test)
        results[named] = result
        shown = {key: value for key, value in result.items() if key != "right"}
        print(named, json.dumps(shown), flush=True)
        if options.out:
            write_atomically(options.out, (json.dumps(results) + "\n").encode())


if __name__ == "__main__":
    main()

"""Compare fine labels that `suggest_labels` asks for with as many for images drawn at random.

    python benchmarks/suggested_labels.py --out /tmp/suggested.json
    python benchmarks/suggested_labels.py --sets mnist --splits parity --seeds 1

For MNIST and Fashion-MNIST, 1 % of the training images get their fine label and of the others the
side alone is known. A `DecoupledClassifier` that is fitted to the pixels and the sides chooses the
600 images, or they are drawn at random, which is the row "fine for 1 %" of `fine-labels-*`; the
network, its training and the attack are those of that experiment. Pixels were chosen rather than
the features of an early network because on training images the nearest of the chosen images of the
side has the right class more often ("reach" in the results).

Expected before the first run: more robust on average on both data sets; not in every seed, because
trainings that differ in nothing but their seed scatter by about five points at radius 1.

Trainings and attacks are kept in the cache, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import featavg as fa
from featavg.datasets import load
from featavg.experiments.fine_labels.intervals import mean_interval
from featavg.experiments.fine_labels.measuring import Trial
from featavg.experiments.fine_labels.shares import Fashion, Mnist
from featavg.experiments.fine_labels.supplies import CLASSES, SHARES, Supply, treated_images
from featavg.experiments.image_splits import SPLITS
from featavg.files import write_atomically
from featavg.vision.supplied_labels import SuppliedLabels

Array = np.ndarray[Any, Any]
SETS = {"mnist": Mnist(), "fashion": Fashion()}
RANDOM = Supply("fine1", SHARES, "fine for 1 %", 1.0)
SUGGESTED = Supply("suggested", SHARES, "1 % suggested", 1.0)
RADIUS = 1.0
REACHED = 10_000


def suggested(pixels: Array, side: Array, budget: int, seed: int) -> Array:
    """Return where images are chosen by `suggest_labels`."""
    model = fa.DecoupledClassifier(random_state=seed).fit(pixels, side)
    chosen = np.zeros(len(side), dtype=bool)
    chosen[fa.suggest_labels(model, pixels, side, budget, random_state=seed)] = True
    return chosen


def reach(pixels: Array, classes: Array, side: Array, chosen: Array) -> float:
    """Return for how many of the first images the nearest chosen one of the side is alike."""
    right = 0
    for own in (0, 1):
        known, first = chosen & (side == own), np.flatnonzero(side[:REACHED] == own)
        nearest = KNeighborsClassifier(1).fit(pixels[known], classes[known])
        right += int((nearest.predict(pixels[first]) == classes[first]).sum())
    return right / min(REACHED, len(side))


def compared(name: str, split: str, seed: int) -> dict[str, Any]:
    """Train with both choices of images, and return what survives the attacks."""
    parameters, positive = SETS[name], SPLITS[split]
    data = load(parameters.dataset)
    trial = Trial(data, positive, parameters.setup(RANDOM), seed)
    classes = data.train_labels
    side = np.isin(classes, positive).astype(int)
    pixels = np.asarray(data.train_images).reshape(len(classes), -1).astype(np.float64)
    budget = round(len(classes) * RANDOM.share / 100)
    choices = {
        "random": treated_images(len(classes), RANDOM.share, np.random.default_rng(seed)),
        "suggested": suggested(pixels, side, budget, seed),
    }
    labels = SuppliedLabels(classes, choices["suggested"], classes=CLASSES, positive=list(positive))
    measured = {
        "random": trial.measure(RANDOM, parameters.attack),
        "suggested": trial.measure_labels(labels, SUGGESTED, parameters.attack),
    }
    found: dict[str, Any] = {"set": name, "split": split, "seed": seed}
    for key, numbers in measured.items():
        found[f"{key}_clean"] = float(numbers["clean"])
        found[f"{key}_survives"] = (numbers["norms"] > RADIUS).astype(int).tolist()
        found[f"{key}_reach"] = reach(pixels, classes, side, choices[key])
    return found


def told(rows: list[dict[str, Any]]) -> str:
    """Return the comparison of one data set and split in one line."""
    survives = {
        key: np.array([row[f"{key}_survives"] for row in rows], dtype=np.float64)
        for key in ("random", "suggested")
    }
    gains = survives["suggested"] - survives["random"]
    by_seed = ", ".join(f"{100 * gain:+.1f}" for gain in gains.mean(axis=1))
    parts = [
        f"{key} {mean_interval(survives[key]).percent()} "
        f"(clean {100 * np.mean([row[f'{key}_clean'] for row in rows]):.1f}, "
        f"reach {100 * np.mean([row[f'{key}_reach'] for row in rows]):.1f})"
        for key in survives
    ]
    return (
        f"{rows[0]['set']}, {rows[0]['split']}: {'; '.join(parts)}; difference "
        f"{mean_interval(gains).percent('+.1f')} points, by seed {by_seed}"
    )


def main() -> None:
    """Compare what is asked for, and print a line whenever a training is finished."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="where to write the results, as JSON")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for split in options.splits:
        for name in options.sets:
            own: list[dict[str, Any]] = []
            for seed in range(options.seeds):
                own.append(compared(name, split, seed))
                print(told(own), flush=True)
                if options.out:
                    write_atomically(options.out, json.dumps([*rows, *own]).encode())
            rows += own


if __name__ == "__main__":
    main()

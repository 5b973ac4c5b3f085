"""Compare fine labels that `suggest_labels` asks for with as many for images drawn at random.

    python benchmarks/suggested_labels.py --out suggested.json
    python benchmarks/suggested_labels.py --sets mnist --splits parity --seeds 1
    python benchmarks/suggested_labels.py --learners radius decoupled --splits parity

For MNIST and Fashion-MNIST, 1 % of the training images get their fine label and of the others the
side alone is known. A `DecoupledClassifier` that is fitted to the pixels and the sides chooses the
600 images, or they are drawn at random, which is the row "fine for 1 %" of `fine-labels-*`; the
network, its training and the attack are those of that experiment. Pixels were chosen rather than
the features of an early network because on training images the nearest of the chosen images of the
side has the right class more often ("reach" in the results).

Two estimators that certify their radius can take the place of the network: a `RadiusClassifier`
that knows the 600 fine labels, and a `DecoupledClassifier` for which every other image has the fine
label of the nearest of the 600 on its side. An image survives if its certified radius exceeds 1, as
all test images are judged.

Expected before the first run: networks more robust on average on both data sets; not in every seed,
because trainings that differ in nothing but their seed scatter by about five points at radius 1.
The `RadiusClassifier` should hardly change, as it parts features without fine labels; the
`DecoupledClassifier` should be better in every seed, but by little.

Trainings and attacks are kept in the cache, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import featavg as fa
from featavg.datasets import ImageData, load
from featavg.experiments.fine_labels.measuring import Trial
from featavg.experiments.fine_labels.shares import Fashion, Mnist
from featavg.experiments.fine_labels.supplies import CLASSES, SHARES, Supply, treated_images
from featavg.experiments.image_splits import SPLITS
from featavg.experiments.intervals import mean_interval
from featavg.files import write_atomically
from featavg.vision.supplied_labels import SuppliedLabels

Array = np.ndarray[Any, Any]
SETS = {"mnist": Mnist(), "fashion": Fashion()}
RANDOM = Supply("fine1", SHARES, "fine for 1 %", 1.0)
SUGGESTED = Supply("suggested", SHARES, "1 % suggested", 1.0)
RADIUS = 1.0


@dataclass(frozen=True, eq=False)
class Task:
    """Images with a side, of which some have fine labels, chosen in two ways."""

    name: str
    split: str
    seed: int
    data: ImageData
    choices: dict[str, Array]

    @classmethod
    def of(cls, name: str, split: str, seed: int) -> Task:
        """Load a data set and choose images."""
        data = load(SETS[name].dataset)
        images, positive = len(data.train_labels), SPLITS[split]
        pixels, side = flat(data.train_images), sides(data.train_labels, positive)
        budget = round(images * RANDOM.share / 100)
        choices = {
            "random": treated_images(images, RANDOM.share, np.random.default_rng(seed)),
            "suggested": suggested(pixels, side, budget, seed),
        }
        return cls(name, split, seed, data, choices)

    @property
    def positive(self) -> tuple[int, ...]:
        """The classes of the positive side."""
        return SPLITS[self.split]

    def propagated(self, chosen: Array) -> Array:
        """Return the class of the nearest chosen image of the own side, for all images."""
        classes = self.data.train_labels
        pixels, side = flat(self.data.train_images), sides(classes, self.positive)
        found = classes.copy()
        for own in (0, 1):
            known, others = chosen & (side == own), ~chosen & (side == own)
            nearest = KNeighborsClassifier(1).fit(pixels[known], classes[known])
            found[others] = nearest.predict(pixels[others])
        return found


def flat(images: Any) -> Array:
    """Return images as points with coordinates between 0 and 1."""
    return np.asarray(images).reshape(len(images), -1) / 255


def sides(classes: Array, positive: tuple[int, ...]) -> Array:
    """Return 1 for the positive classes and 0 for the others."""
    return np.isin(classes, positive).astype(int)


def suggested(pixels: Array, side: Array, budget: int, seed: int) -> Array:
    """Return where images are chosen by `suggest_labels`."""
    model = fa.DecoupledClassifier(random_state=seed).fit(pixels, side)
    chosen = np.zeros(len(side), dtype=bool)
    chosen[fa.suggest_labels(model, pixels, side, budget, random_state=seed)] = True
    return chosen


def network(task: Task, choice: str) -> tuple[float, Array]:
    """Train a network, and return its accuracy and the norms that all attacks found."""
    parameters, chosen = SETS[task.name], task.choices[choice]
    trial = Trial(task.data, task.positive, parameters.setup(RANDOM), task.seed)
    if choice == "random":  # the row of the experiment, whose results may be in the cache
        numbers = trial.measure(RANDOM, parameters.attack)
    else:
        classes = task.data.train_labels
        labels = SuppliedLabels(classes, chosen, classes=CLASSES, positive=list(task.positive))
        numbers = trial.measure_labels(labels, SUGGESTED, parameters.attack)
    return float(numbers["clean"]), numbers["norms"]


def radius(task: Task, choice: str) -> tuple[float, Array]:
    """Fit a `RadiusClassifier` that knows the fine labels of the chosen images."""
    known = np.where(task.choices[choice], task.data.train_labels, np.nan)
    return certified(task, fa.RadiusClassifier(random_state=task.seed), known)


def decoupled(task: Task, choice: str) -> tuple[float, Array]:
    """Fit a `DecoupledClassifier` to the fine labels of the nearest chosen images."""
    labels = task.propagated(task.choices[choice])
    return certified(task, fa.DecoupledClassifier(random_state=task.seed), labels)


def certified(task: Task, model: Any, subclass: Array) -> tuple[float, Array]:
    """Fit an estimator, and return its accuracy and certified radii, 0 where it is wrong."""
    data = task.data
    model.fit(flat(data.train_images), sides(data.train_labels, task.positive), subclass=subclass)
    pixels, side = flat(data.test_images), sides(data.test_labels, task.positive)
    right = model.predict(pixels) == side
    return float(right.mean()), np.where(right, model.predict_radius(pixels, exact=False), 0.0)


LEARNERS: dict[str, Callable[[Task, str], tuple[float, Array]]] = {
    "network": network,
    "radius": radius,
    "decoupled": decoupled,
}


def compared(task: Task, learner: str) -> dict[str, Any]:
    """Train with both choices of images, and return what survives."""
    found: dict[str, Any] = {"set": task.name, "split": task.split, "seed": task.seed}
    found["learner"] = learner
    for choice, chosen in task.choices.items():
        clean, norms = LEARNERS[learner](task, choice)
        found[f"{choice}_clean"] = clean
        found[f"{choice}_median"] = float(np.median(norms))
        found[f"{choice}_survives"] = (norms > RADIUS).astype(int).tolist()
        alike = task.propagated(chosen) == task.data.train_labels
        found[f"{choice}_reach"] = float(alike[~chosen].mean())
    return found


def told(rows: list[dict[str, Any]]) -> str:
    """Return the comparison of one data set, split and learner in one line."""
    survives = {
        key: np.array([row[f"{key}_survives"] for row in rows], dtype=np.float64)
        for key in ("random", "suggested")
    }
    gains = survives["suggested"] - survives["random"]
    by_seed = ", ".join(f"{100 * gain:+.2f}" for gain in gains.mean(axis=1))
    parts = [
        f"{key} {mean_interval(survives[key]).within(0, 1).percent()} "
        f"(median norm {np.mean([row[f'{key}_median'] for row in rows]):.3f}, "
        f"clean {100 * np.mean([row[f'{key}_clean'] for row in rows]):.1f}, "
        f"reach {100 * np.mean([row[f'{key}_reach'] for row in rows]):.1f})"
        for key in survives
    ]
    longer = [row["suggested_median"] / row["random_median"] - 1 for row in rows]
    return (
        f"{rows[0]['set']}, {rows[0]['split']}, {rows[0]['learner']}: {'; '.join(parts)}; "
        f"difference {mean_interval(gains).percent('+.2f')} points, by seed {by_seed}; median norm "
        f"longer by {', '.join(f'{100 * part:+.2f}' for part in longer)} %"
    )


def main() -> None:
    """Compare what is asked for, and print a line whenever a training is finished."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--learners", nargs="+", default=["network"], choices=LEARNERS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="where to write the results, as JSON")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for split, name in product(options.splits, options.sets):
        for seed in range(options.seeds):
            task = Task.of(name, split, seed)
            for learner in options.learners:
                rows.append(compared(task, learner))
                own = {"set": name, "split": split, "learner": learner}
                print(told([row for row in rows if own.items() <= row.items()]), flush=True)
                if options.out:
                    write_atomically(options.out, json.dumps(rows).encode())


if __name__ == "__main__":
    main()

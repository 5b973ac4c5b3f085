"""Compare the estimators with what people use today: accuracy, robustness and time.

    python benchmarks/estimators.py [--data digits embeddings] [--models NAME ...] [--seeds 3]
                                    [--speed]

Radii are exact; where one is not, it is reported, and its lower bound counts. A point that is
classified wrong has the radius 0. With --models: only rows whose name contains one of these. With
--speed: the time of fitting 10,000 x 512, as a ratio to `MLPClassifier(hidden_layer_sizes=30)`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

import featavg as fa

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Data:
    """Points and fine classes; the coarse label is whether a class is one of the last five."""

    x: Array
    fine: Array
    x_test: Array
    fine_test: Array

    @property
    def y(self) -> Array:
        """The coarse labels."""
        return (self.fine >= 5).astype(np.int64)

    @property
    def y_test(self) -> Array:
        """The coarse labels of the test points."""
        return (self.fine_test >= 5).astype(np.int64)


def digits() -> Data:
    x, fine = load_digits(return_X_y=True)
    x, x_test, fine, fine_test = train_test_split(
        x, fine, test_size=0.4, random_state=0, stratify=fine
    )
    return Data(x, fine, x_test, fine_test)


def embeddings() -> Data:
    """CIFAR-10 through EfficientNet-Lite0 at 128 pixels, centred, every point of norm √d."""
    from featavg.experiments.embedded import EmbeddedSetting

    raw = EmbeddedSetting(size=128, samples=8000).load(1000)
    mean = raw.train.mean(axis=0)
    x, x_test = (
        np.sqrt(raw.train.shape[1]) * moved / np.linalg.norm(moved, axis=1, keepdims=True)
        for moved in (raw.train - mean, raw.test - mean)
    )
    return Data(x, raw.train_classes, x_test, raw.test_classes)


def radii(model: Any, x: Array) -> Array:
    found = fa.exact_radii(model, x)
    if not found.exact.all():
        print(f"  {model}: {(~found.exact).sum()} of {len(x)} radii are lower bounds", flush=True)
    return found.lower


Row = tuple[str, Callable[[int], Any], bool]
MODELS: list[Row] = [
    ("LogisticRegression()", lambda _: LogisticRegression(max_iter=5000), False),
    ("LogisticRegression(C=0.01)", lambda _: LogisticRegression(C=0.01, max_iter=5000), False),
    ("LinearSVC()", lambda seed: LinearSVC(random_state=seed), False),
    ("MLPClassifier()", lambda seed: MLPClassifier(random_state=seed), False),
    ("AveragingClassifier()", lambda seed: fa.AveragingClassifier(random_state=seed), False),
    ("DecoupledClassifier()", lambda seed: fa.DecoupledClassifier(random_state=seed), False),
    (
        "DecoupledClassifier(), subclasses given",
        lambda seed: fa.DecoupledClassifier(random_state=seed),
        True,
    ),
]


def compare(data: Data, rows: list[Row], seeds: int) -> None:
    print(f"{'':42}{'accuracy':>18}{'median radius':>20}{'fit':>9}")
    for name, make, given in rows:
        measured = []
        for seed in range(1 if name.startswith("Logistic") else seeds):
            model = make(seed)
            start = time.perf_counter()
            model.fit(data.x, data.y, **({"subclass": data.fine} if given else {}))
            elapsed = time.perf_counter() - start
            right = model.predict(data.x_test) == data.y_test
            radius = np.median(np.where(right, radii(model, data.x_test), 0))
            measured.append((100 * right.mean(), radius, elapsed))
        mean, spread = np.mean(measured, axis=0), np.std(measured, axis=0)
        print(
            f"{name:42}{mean[0]:10.1f} ± {spread[0]:3.1f} %{mean[1]:12.2f} ± {spread[1]:4.2f}"
            f"{mean[2]:7.1f} s",
            flush=True,
        )


def speed() -> None:
    law = fa.MultiCluster(clusters=10, dim=512).sample(10_000, rng=np.random.default_rng(0))
    hard = make_classification(
        10_000, 512, n_informative=30, n_clusters_per_class=3, random_state=0
    )
    for name, (x, y) in {"make_classification": hard, "the law": (law.x, law.y)}.items():
        times = []
        for model in (
            MLPClassifier(hidden_layer_sizes=30, random_state=0),
            fa.DecoupledClassifier(random_state=0),
        ):
            start = time.perf_counter()
            model.fit(x, y)
            times.append(time.perf_counter() - start)
        print(
            f"10,000 x 512, {name}: MLPClassifier(30) {times[0]:.1f} s, DecoupledClassifier "
            f"{times[1]:.1f} s, ratio {times[1] / times[0]:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", nargs="*", choices=["digits", "embeddings"], default=["digits"])
    parser.add_argument("--models", nargs="*", metavar="NAME", default=[""])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = [row for row in MODELS if any(part in row[0] for part in options.models)]
    for name in options.data:
        print(f"\n{name}")
        compare(digits() if name == "digits" else embeddings(), rows, options.seeds)
    if options.speed:
        speed()


if __name__ == "__main__":
    main()

"""How often radii are exact, and how long that takes, on networks that people train.

Networks of scikit-learn on its own data sets, in L2 and (digits, with pixels within bounds) in
L-infinity; and the paper's network with initial weights that survive training, where branch and
bound alone leaves a gap of a half. One core.

    python benchmarks/exact.py [--points 30] [--seconds 10]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import featavg as fa

HIDDEN = (10, 30, 100, 200)


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    X, y = load_digits(return_X_y=True)
    yield "digits, 2 classes", X / 16, y >= 5
    yield "digits, 10 classes", X / 16, y
    for name, load in (("breast cancer", load_breast_cancer), ("wine", load_wine)):
        X, y = load(return_X_y=True)
        yield name, StandardScaler().fit_transform(X), y
    X, y = make_moons(500, noise=0.15, random_state=0)
    yield "moons", X, y


def trained(hidden: int, X: np.ndarray, y: np.ndarray) -> tuple[MLPClassifier, np.ndarray]:
    """Return a network, and points that it was not trained on in random order."""
    fit, test, labels, _ = train_test_split(X, y, test_size=0.3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MLPClassifier(hidden, max_iter=1000, random_state=0).fit(fit, labels), test


def measure(name: str, model: Any, X: np.ndarray, **options: Any) -> None:
    """Print the share of exact radii, gaps and times."""
    seconds, gaps, exact = [], [], []
    for x in X:
        start = time.perf_counter()
        radii = fa.exact_radii(model, x[None], jobs=1, certificates=False, **options)
        seconds.append(time.perf_counter() - start)
        gaps.append(float(radii.gap[0]))
        exact.append(bool(radii.exact[0]))
    print(
        f"{name}: {np.mean(exact):.1%} of {len(X)} exact, largest gap {max(gaps):.2%}, median "
        f"{np.median(gaps):.2%}; seconds a point: median {np.median(seconds):.3f}, 90 % "
        f"{np.quantile(seconds, 0.9):.3f}, largest {max(seconds):.2f}",
        flush=True,
    )


def paper_network(width: int, scale: float, steps: int) -> tuple[fa.BinaryNet, np.ndarray]:
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    net = fa.BinaryNet.init(train, width=width, weight_scale=scale, bias_scale=scale, rng=rng)
    run = fa.descend(net, train, learning_rate=1e-3, steps=steps, record=2)
    return fa.BinaryNet(run.net.weights, run.net.biases), train.fresh(100, rng=rng).x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    limit = options.seconds
    with threadpool_limits(1):
        for name, X, y in data_sets():
            for hidden in HIDDEN:
                model, test = trained(hidden, X, y)
                title = f"{name}, {hidden} neurons"
                measure(f"{title}, L2", model, test[: options.points], time_limit=limit)
                if name.startswith("digits") and hidden <= 100:
                    box = {"norm": "linf", "bounds": (0, 1), "time_limit": limit}
                    measure(f"{title}, L-infinity in [0, 1]", model, test[: options.points], **box)
        for width, scale, steps, seconds in (
            (30, 1e-3, 100, 2.0),
            (50, 1e-3, 100, 2.0),
            (100, 1e-3, 100, 20.0),
            (20, 1e-2, 1000, 2.0),
        ):
            net, x = paper_network(width, scale, steps)
            title = f"paper's law, m = {width}, initial weights {scale:g}, {seconds:g} s"
            measure(title, net, x[: min(options.points, 20)], time_limit=seconds)


if __name__ == "__main__":
    main()

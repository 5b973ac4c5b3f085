"""Compare `RadiusClassifier` with scikit-learn's classifiers on small tables.

    python benchmarks/tables.py                 # accuracy on nine tables, five-fold
    python benchmarks/tables.py --repeats 5 --only iris wine moons    # other folds, too
    python benchmarks/tables.py --imbalance     # recall of a class of 5 %, ten draws

Features are standardised in each fold. `RadiusClassifier` has ``robustness=0``, since the others
are made for accuracy alone. Made-up tables and all folds are drawn with the random state 2026,
which was not used while the classifier was written. A point of iris or wine is half a percent, so
that folds matter there: with --repeats the means are over so many draws of folds. In the second
comparison all classifiers have ``class_weight="balanced"``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_friedman1,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import featavg as fa

Array = np.ndarray[Any, Any]
STATE, FOLDS, DRAWS = 2026, 5, 10


def cut(target: Array, classes: int) -> Array:
    """Return which of so many equally frequent ranges each value is in."""
    inner = np.linspace(0, 1, classes + 1)[1:-1]
    return np.searchsorted(np.quantile(target, inner), target)


def small_tables() -> Iterator[tuple[str, Array, Array]]:
    """Yield the name, the points and the classes of each table."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    yield "moons", *make_moons(500, noise=0.25, random_state=STATE)
    yield "circles", *make_circles(500, noise=0.15, factor=0.5, random_state=STATE)
    yield (
        "three classes",
        *make_classification(
            600, 20, n_informative=6, n_classes=3, n_clusters_per_class=2, random_state=STATE
        ),
    )
    x, target = load_diabetes(return_X_y=True)
    yield "diabetes, 3 classes", x, cut(target, 3)
    x, target = make_friedman1(800, noise=1.0, random_state=STATE)
    yield "friedman, 4 classes", x, cut(target, 4)


def compare_tables(repeats: int, only: list[str] | None) -> None:
    """Print the mean accuracy over the folds of each table."""
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=STATE)
    if repeats == 1:
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=STATE)
    chosen = [table for table in small_tables() if not only or table[0] in only]
    near = 0
    for name, x, y in chosen:
        scores = {}
        start = time.process_time()
        for model in (
            LogisticRegression(max_iter=2000),
            MLPClassifier(max_iter=500, random_state=0),
            fa.RadiusClassifier(robustness=0, random_state=0),
        ):
            pipeline = make_pipeline(StandardScaler(), model)
            scores[type(model).__name__] = 100 * cross_val_score(pipeline, x, y, cv=folds).mean()
        linear, network, ours = scores.values()
        behind = ours - max(linear, network)
        near += behind >= -1
        print(
            f"{name}, {x.shape[0]} x {x.shape[1]}: logistic regression {linear:.1f} %, "
            f"MLPClassifier {network:.1f} %, RadiusClassifier {ours:.1f} %, difference to the "
            f"better {behind:+.1f}; {time.process_time() - start:.0f} s",
            flush=True,
        )
    print(f"within a point of the better one: {near} of {len(chosen)}")


def compare_imbalance() -> None:
    """Print recall of the rare class and balanced accuracy, averaged over draws."""
    models = (
        LogisticRegression(class_weight="balanced"),
        fa.RadiusClassifier(class_weight="balanced", robustness=0, random_state=0),
        fa.RadiusClassifier(class_weight="balanced", random_state=0),
    )
    rows: list[list[tuple[float, float]]] = [[] for _ in models]
    for draw in range(DRAWS):
        x, y = make_classification(
            2000, 20, weights=[0.95], class_sep=0.8, random_state=STATE + draw
        )
        x, x_test, y, y_test = train_test_split(x, y, stratify=y, random_state=STATE)
        for row, model in zip(rows, models, strict=True):
            found = clone(model).fit(x, y).predict(x_test)
            row.append((recall_score(y_test, found), balanced_accuracy_score(y_test, found)))
    for name, row in zip(("logistic regression", "robustness 0", "default"), rows, strict=True):
        recall, balanced = np.mean(row, axis=0)
        print(f"{name}: recall {recall:.3f}, balanced accuracy {balanced:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--imbalance", action="store_true", help="a class of 5 %% with overlap")
    parser.add_argument("--repeats", type=int, default=1, help="draws of folds (1)")
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="such as iris")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        if options.imbalance:
            return compare_imbalance()
        return compare_tables(options.repeats, options.only)


if __name__ == "__main__":
    main()

"""Compare certified classifiers: accuracy, certified L2 radius and time, on nine data sets.

    python benchmarks/estimators.py [--data cifar text] [--models glvq decoupled] [--seeds 5]
    python benchmarks/estimators.py --data cifar-first5-resnet50    # the features of a ResNet-50
    python benchmarks/estimators.py --tables    # table and picture of the results that are there
    python benchmarks/estimators.py --quick     # one data set and seed, few knobs, few steps
    python benchmarks/estimators.py --speed     # the time of fitting 10,000 x 512

Each model has one knob. It is settled once for each data set, on a stratified fifth of the training
points of seed 0 that is held out: the largest median radius among the values whose accuracy there
is within one standard error of the model's best, the rule of `featavg.estimators.Frontier`. Then
the model is fitted to all training points of each seed; `estimator_data` says what a seed draws.
Our estimators have no knob to settle: each of their operating points is a row. With --frontier the
peers have further rows too, their knobs at 0 and at 2 standard errors instead of one; otherwise a
peer that could be more robust at a small loss of accuracy is measured at one point alone.

A misclassified point has the radius 0. Where radii need a search, 300 random test points of each
seed get one; their accuracy is still that of all test points, and they are compared with others on
these points. Where a radius is not exact its lower bound counts. Certified accuracies are at
multiples of the median radius of the chosen k-means prototypes on the held-out points. Times are
processor times of one thread.

The results of each data set, model and seed are a JSON file below --out, and a run goes on where
the last one stopped. All peers on all data take about 80 minutes.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

import featavg as fa
from estimator_data import DATA, Data, load, named
from featavg.errors import InputError
from featavg.estimators import Frontier
from featavg.files import write_atomically
from frontier_tables import draw, read_results, tables
from peer_networks import Network
from peer_prototypes import GLVQ, Array
from peers import MODELS, POINTS, Certified, Model, model_of

OUT = Path("runs") / "benchmarks" / "estimators"
SEEDS = 5
HELD_OUT = 0.2
SEARCHED, SEARCHED_HELD_OUT = 300, 100  # how many points get a radius where it needs a search
MULTIPLES = (0.25, 0.5, 1.0, 1.5)
UNIT = "k-means"
LIBRARIES = ("featavg", "deel-torchlip", "numpy", "scikit-learn", "scipy", "torch")
# JSON has no infinity, which is the radius of a constant prediction
LARGEST = 1e9
Result = dict[str, Any]


def measured(fitted: Certified, x: Array, y: Array, some: Array) -> tuple[Result, Array]:
    """Return accuracy over all points, and the radii of some of them, 0 where wrong."""
    right = fitted.predict(x) == y
    start = time.process_time()
    radii, exact = fitted.radii(x[some])
    seconds = time.process_time() - start
    radii = np.where(right[some], np.minimum(radii, LARGEST), 0)
    return {
        "accuracy": float(right.mean()),
        "median_radius": float(np.median(radii)),
        "mean_radius": float(radii.mean()),
        "radius_points": len(some),
        "exact_share": float(exact.mean()),
        "certify_seconds_per_1000": 1000 * seconds / len(some),
    }, radii


def fitted(model: Model, knob: Any, seed: int, x: Array, y: Array) -> tuple[Certified, float]:
    """Return a fitted model, and the seconds that it took."""
    made = model.make(knob, seed)
    start = time.process_time()
    made.fit(x, y)
    return made, time.process_time() - start


def searched_points(points: int, searched: int, seed: int) -> Array:
    """Return random points, the same for all models.

    Each seed has its own: the median of 300 points varies by 6 %, and seeds average that out.
    """
    return np.random.default_rng(seed).permutation(points)[:searched]


def settled(key: str, knobs: tuple[Any, ...], data: Data, searched: int) -> Result:
    """Measure every value of the knob on held-out points."""
    model = MODELS[key]
    x, x_held, y, y_held = train_test_split(
        data.x, data.y, test_size=HELD_OUT, random_state=0, stratify=data.y
    )
    some = searched_points(len(x_held), searched if model.searched else len(x_held), 0)
    rows = []
    for knob in knobs:
        made, seconds = fitted(model, knob, 0, x, y)
        row, _ = measured(made, x_held, y_held, some)
        rows.append({"knob": knob, "fit_seconds": seconds, **row})
        report(f"{data.name}, {key}, held-out points, {model.knob} {knob}", rows[-1])
    return {"data": data.name, "model": key, "held_out_points": len(x_held), "rows": rows}


def frontier_of(found: Result) -> Frontier:
    """Return what was measured on held-out points as a frontier over the values of the knob."""
    rows = found["rows"]
    return Frontier(
        values=np.arange(len(rows)),
        accuracy=np.array([row["accuracy"] for row in rows]),
        radius=np.array([row["median_radius"] for row in rows]),
        points=found["held_out_points"],
        radius_points=rows[0]["radius_points"],
    )


def tested(name: str, knob: Any, data: Data, seed: int, unit: float, searched: int) -> Result:
    """Fit the model of a row to all training points, and measure it on the test points."""
    model = model_of(name)
    made, seconds = fitted(model, knob, seed, data.x, data.y)
    some = common = searched_points(len(data.x_test), searched, seed)
    if not model.searched:
        some = np.arange(len(data.x_test))
    row, radii = measured(made, data.x_test, data.y_test, some)
    result = {
        "data": data.name,
        "model": name,
        "seed": seed,
        "knob": knob,
        "train_points": len(data.x),
        "test_points": len(data.x_test),
        "fit_seconds": seconds,
        **row,
        "certified_radii": [multiple * unit for multiple in MULTIPLES],
        "certified_accuracy": [float((radii >= m * unit).mean()) for m in MULTIPLES],
        "percentiles": rounded(np.percentile(radii, np.arange(101))),
        "common_radii": rounded(radii if model.searched else radii[common]),
    }
    report(f"{data.name}, {name}, seed {seed}", result)
    return result


def rounded(values: Array) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def report(title: str, row: Result) -> None:
    print(
        f"{title}: accuracy {row['accuracy']:.4f}, median radius {row['median_radius']:.4g}, "
        f"{row['exact_share']:.0%} exact; fit {row['fit_seconds']:.1f} s, certify "
        f"{row['certify_seconds_per_1000']:.2f} s per 1,000",
        flush=True,
    )


def run(options: argparse.Namespace) -> None:
    """Measure what is wanted and not there yet."""
    for name in options.data:
        try:
            first = load(name, 0)
        except InputError as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        measures = knobs_of(options, UNIT, first)
        unit = measures["rows"][frontier_of(measures).best()]["median_radius"]
        for key in options.models:
            for row, knob in rows_of(options, key, first):
                for seed in range(options.seeds):
                    path = options.out / name / row / f"seed-{seed}.json"
                    if not path.exists():
                        data = load(name, seed) if seed else first
                        write(path, tested(row, knob, data, seed, unit, options.searched))


def rows_of(options: argparse.Namespace, key: str, data: Data) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a model and their knobs: the best one, and others with --frontier."""
    if len(MODELS[key].knobs) == 1:
        yield key, MODELS[key].knobs[0]
        return
    found = knobs_of(options, key, data)
    frontier = frontier_of(found)
    seen = frontier.best()
    yield key, found["rows"][seen]["knob"]
    for point in POINTS if options.frontier else ():
        if (other := frontier.best(point)) != seen:
            yield f"{key}@{point}", found["rows"][other]["knob"]


def knobs_of(options: argparse.Namespace, key: str, data: Data) -> Result:
    """Return what held-out points say about each value of the knob."""
    path = options.out / data.name / key / "knobs.json"
    if path.exists():
        found: Result = json.loads(path.read_text(encoding="utf-8"))
        return found
    knobs = MODELS[key].knobs
    found = settled(key, knobs[2:7:4] if options.quick else knobs, data, options.searched_held_out)
    write(path, found)
    return found


def write(path: Path, result: Result) -> None:
    write_atomically(path, (json.dumps(result, allow_nan=False) + "\n").encode())


def note(options: argparse.Namespace) -> None:
    """Write what the results were made with."""
    about = {
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in LIBRARIES},
        "held_out_share": HELD_OUT,
        "searched_points": options.searched,
        "multiples": MULTIPLES,
        "quick": options.quick,
    }
    write(options.out / "about.json", about)


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def speed() -> None:
    """Print the time of fitting as a ratio to that of scikit-learn's network of 30 neurons."""
    law = fa.MultiCluster(clusters=10, dim=512).sample(10_000, rng=np.random.default_rng(0))
    hard = make_classification(
        10_000, 512, n_informative=30, n_clusters_per_class=3, random_state=0
    )
    for name, (x, y) in {"make_classification": hard, "the law": (law.x, law.y)}.items():
        times = []
        for model in (
            MLPClassifier(hidden_layer_sizes=30, random_state=0),
            fa.DecoupledClassifier(random_state=0),
            fa.RadiusClassifier(random_state=0),
        ):
            start = time.perf_counter()
            model.fit(x, y)
            times.append(time.perf_counter() - start)
        start = time.perf_counter()
        model.predict_radius(x[:1000], exact=False)
        certify = time.perf_counter() - start
        print(
            f"10,000 x 512, {name}: MLPClassifier(30) {times[0]:.1f} s, DecoupledClassifier "
            f"{times[1]:.1f} s, ratio {times[1] / times[0]:.2f}, RadiusClassifier {times[2]:.1f} "
            f"s, ratio {times[2] / times[0]:.2f}, its radii of 1,000 points {certify:.2f} s",
            flush=True,
        )


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", nargs="*", metavar="PART", help=f"of {', '.join(DATA)}")
    parser.add_argument("--models", nargs="*", metavar="PART", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, help=f"{OUT}, or {OUT}-quick with --quick")
    parser.add_argument("--frontier", action="store_true", help="also other points of the peers")
    parser.add_argument("--quick", action="store_true", help="digits, one seed, few steps")
    parser.add_argument("--tables", action="store_true", help="show what is there, run nothing")
    parser.add_argument("--speed", action="store_true", help="time the fit, run nothing else")
    options = parser.parse_args()
    options.searched, options.searched_held_out = SEARCHED, SEARCHED_HELD_OUT
    if options.quick:
        options.data, options.seeds = ["digits-first5"], 1
        options.searched = options.searched_held_out = 5
        Network.steps = GLVQ.steps = 50
    options.out = options.out or OUT.with_name(f"{OUT.name}-quick" if options.quick else OUT.name)
    options.data = named(options.data)
    options.models = [name for name in MODELS if matches(name, options.models)]
    return options


def matches(name: str, parts: list[str] | None) -> bool:
    return not parts or any(part in name for part in parts)


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.speed:
        return speed()
    for key in [key for key in options.models if not MODELS[key].is_available]:
        print(f"{key} is left out: it needs {MODELS[key].needs}", flush=True)
        options.models.remove(key)
    if not options.tables:
        with threadpool_limits(1):
            run(options)
        return note(options)
    results = read_results(options.out)
    text = tables(results)
    write_atomically(options.out / "table.md", text.encode())
    write_atomically(options.out / "frontier.png", draw(results))
    return print(text)


if __name__ == "__main__":
    main()

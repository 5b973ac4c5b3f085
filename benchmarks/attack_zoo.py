"""Networks whose exact L2 radii are known, for `benchmarks/attacks.py`.

Points and networks are rescaled, by one factor and one shift for all coordinates, so that the data
lie in [0, 1]: the scale for which the default step sizes of attacks were made.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import featavg as fa
from featavg.datasets.cache import cache_folder
from featavg.robustness.models import as_shallow

Array = np.ndarray[Any, Any]

NO_EMBEDDINGS = (
    "skipped: no embeddings in the cache; 'featavg data get cifar10' and "
    "'python benchmarks/estimator_data.py' compute them"
)


@dataclass(frozen=True, eq=False)
class Case:
    """A network, points, and the exact radii of its predictions, all in units of [0, 1].

    Attributes
    ----------
    name : str
        What the network is.
    net : ShallowNet
        The network.
    points, labels : arrays
        The points, and the number of the predicted label of each.
    starts : array
        For each point the nearest training point with another prediction.
    radii : Radii
        The exact radii.
    seconds : float
        CPU time of the exact radii, for a point.
    own : BinaryNet, MultiClassNet or None
        The same network in the form that `minimal_norm` takes, if it has one.
    """

    name: str
    net: fa.ShallowNet
    points: Array
    labels: Array
    starts: Array
    radii: fa.Radii
    seconds: float
    own: fa.BinaryNet | fa.MultiClassNet | None

    def classes(self, x: Array) -> Array:
        """Return the number of the predicted label of each point, in double precision."""
        return np.searchsorted(np.unique(self.net.labels), self.net.predict(x))


def zoo(points: int, seed: int, quick: bool) -> Iterator[tuple[str, Callable[[], Case | None]]]:
    """Yield names of networks, and functions that return them, or None if data are missing."""
    if quick:
        yield "digits, 2 classes, 10 hidden", partial(digits, True, 10, points, seed)
        yield "digits, 10 classes, 10 hidden", partial(digits, False, 10, points, seed)
        return
    for labels in ("coarse labels", "fine labels", "large initial weights"):
        yield f"paper's law, {labels}", partial(paper, labels, points, seed)
    for hidden in (30, 200):
        for coarse, words in ((True, "2 classes"), (False, "10 classes")):
            name = f"digits, {words}, {hidden} hidden"
            yield name, partial(digits, coarse, hidden, points, seed)
    yield "breast cancer, 100 hidden", partial(cancer, points, seed)
    yield "CIFAR-10 embeddings, 10 classes, 50 hidden", partial(embeddings, points, seed)


def paper(setting: str, points: int, seed: int) -> Case:
    """Return a network trained on the paper's law.

    With coarse or fine labels it is the paper's own; with large initial weights, 30 neurons a side
    start with weights of the size of what they learn.
    """
    rng = np.random.default_rng(seed)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    test = train.fresh(points, rng=rng)
    start: fa.BinaryNet | fa.MultiClassNet
    if setting == "fine labels":
        start = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng, readout="argmax")
    else:
        width, scale = (5, 1e-5) if setting == "coarse labels" else (30, 1e-3)
        start = fa.BinaryNet.init(train, width=width, weight_scale=scale, bias_scale=scale, rng=rng)
    net = fa.descend(start, train, learning_rate=1e-3, steps=100).net
    return case(f"paper's law, {setting}", net, train.x, test.x)


def digits(coarse: bool, hidden: int, points: int, seed: int) -> Case:
    """Return an MLP on handwritten digits, the second half of them against the first or all ten."""
    X, y = load_digits(return_X_y=True)
    words = "2 classes" if coarse else "10 classes"
    return mlp(
        f"digits, {words}, {hidden} hidden", X, y >= 5 if coarse else y, hidden, points, seed
    )


def cancer(points: int, seed: int) -> Case:
    """Return an MLP on the breast cancer data, each feature in standard deviations."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return mlp("breast cancer, 100 hidden", X, y, 100, points, seed)


def embeddings(points: int, seed: int) -> Case | None:
    """Return an MLP on embedded images, or None if none are in the cache."""
    from featavg.experiments.embedded import EmbeddedSetting

    folder = cache_folder("embeddings")
    if not folder.is_dir() or len(list(folder.glob("*.npz"))) < 9:
        return None
    raw = EmbeddedSetting(size=128, samples=8000).load(1000)
    name = "CIFAR-10 embeddings, 10 classes, 50 hidden"
    model = fitted(raw.train, raw.train_classes, 50, seed)
    return case(name, model, raw.train, raw.test[:points].astype(np.float64))


def mlp(name: str, X: Array, y: Array, hidden: int, points: int, seed: int) -> Case:
    x, x_test, y, _ = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    return case(name, fitted(x, y, hidden, seed), x, x_test[:points])


def fitted(x: Array, y: Array, hidden: int, seed: int) -> Any:
    with warnings.catch_warnings():  # it need not converge to have exact radii
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MLPClassifier((hidden,), max_iter=500, random_state=seed).fit(x, y)


def case(name: str, model: Any, train: Array, points: Array) -> Case:
    """Return a case in units of [0, 1], with the exact radii of its points."""
    low = float(min(train.min(), points.min()))
    width = float(max(train.max(), points.max())) - low
    dim = points.shape[1]
    net = as_shallow(model).after_affine(np.full(dim, width), np.full(dim, low))
    x, anchors = (points - low) / width, (np.asarray(train, dtype=np.float64) - low) / width
    begin = time.process_time()
    radii = fa.exact_radii(net, x, time_limit=60.0, jobs=1, progress=True)
    seconds = (time.process_time() - begin) / len(x)
    known = radii.exact
    if not known.all():
        print(f"{name}: {(~known).sum()} points without an exact radius are left out", flush=True)
    x = x[known]
    radii = fa.Radii(
        radii.lower[known],
        radii.upper[known],
        radii.perturbations[known],
        radii.norm,
        radii.turns[known],
    )
    names = np.unique(net.labels)
    labels, others = (np.searchsorted(names, net.predict(z)) for z in (x, anchors))
    squares = (x**2).sum(axis=1)[:, None] - 2 * x @ anchors.T + (anchors**2).sum(axis=1)[None]
    nearest = np.where(labels[:, None] == others[None], np.inf, squares).argmin(axis=1)
    own = two_layer(net, model, low, width)
    if own is not None and (own.predict(x) != 2 * labels - 1).any():
        raise RuntimeError(f"{name}: the network for minimal_norm decides differently")
    return Case(name, net, x, labels, anchors[nearest], radii, seconds, own)


def two_layer(
    net: fa.ShallowNet, model: Any, low: float, width: float
) -> fa.BinaryNet | fa.MultiClassNet | None:
    """Return the network in a form that `minimal_norm` takes, if its decision is a binary one."""
    if isinstance(model, fa.MultiClassNet):
        biases = model.biases + model.weights.sum(axis=1) * low
        return fa.MultiClassNet(
            model.weights * width, model.classes, model.positive, "argmax", biases
        )
    if len(net.labels) != 2:
        return None
    # the difference of the outputs; that of their biases is a neuron that is always on
    outer, offset = np.diff(net.second_layer, axis=0)[0], np.diff(net.output_biases)
    weights = np.vstack([net.weights, np.zeros(net.dim)])
    biases = np.append(net.biases, 1.0)
    return fa.BinaryNet(weights, biases, second_layer=np.append(outer, offset))

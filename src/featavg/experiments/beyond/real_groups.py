"""A network trained on label groups of measured clusters, beside the law for their means."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.networks.multiclass import MultiClassNet
from featavg.robustness import exact_radii
from featavg.theory.measured_granularity import (
    argmax_brackets,
    averaged_features,
    measured_law,
)
from featavg.training.descent import descend
from featavg.training.learning_rate import stable_learning_rate

# So that a first step, which depends on the initial weights, is a small part of the training.
_FEWEST_STEPS = 100
_INIT_SHARE = 1e-6
TOLERANCE = 0.1
"""How far the law may be off and still be said to hold."""


@dataclass(frozen=True)
class Training:
    r"""How long networks are trained, and how many radii the general search computes as well.

    `time` is :math:`\eta t\,p\,\|m\|^2`, the learning rate times the steps times the mean over
    clusters of share and squared norm; in the paper's setting it is 30.72.
    """

    time: float
    searched: int
    seconds: float


def measure_groups(
    train: Sample, test: Sample, training: Training, rng: np.random.Generator
) -> dict[str, float]:
    """Train on the label groups of a sample; return medians of radii, the law, and accuracies.

    ``radius`` is the median certified radius of test points in the trained network (0 where it is
    wrong), ``upper`` that of the upper bounds. ``averages`` is that of the network of averaged
    features on the same points, and ``law`` is its radius at the mean of each point's cluster. So
    radius/averages says whether training finds averaged features, and averages/law what the
    distance of the points from the means does.
    """
    unit = np.sqrt(test.x.shape[1])
    net, loss = _trained(train, training.time, rng)
    lower, upper = argmax_brackets(net, test.x, test.y)
    averaged = averaged_features(train)
    averages, _ = argmax_brackets(averaged, test.x, test.y)
    law = measured_law(train)[test.cluster]
    plain = _orthogonal_law(train)[test.cluster]
    medians = {
        "radius": lower,
        "upper": upper,
        "averages": averages,
        "law": law,
        "orthogonal_law": plain,
    }
    found = {name: float(np.median(values)) / unit for name, values in medians.items()}
    return found | {
        "accuracy": float((net.predict(test.x) == test.y).mean()),
        "averages_accuracy": float((averaged.predict(test.x) == test.y).mean()),
        "label_accuracy": float((net.logits(test.x).argmax(axis=1) == test.labels).mean()),
        "loss": loss,
        "exact": float((upper <= (1 + 1e-6) * lower).mean()),
        "groups_within": _groups_within(lower, law, test),
        **_searched(net, test, lower, training, rng),
    }


def _trained(train: Sample, time: float, rng: np.random.Generator) -> tuple[MultiClassNet, float]:
    """Return the network with one neuron for each label group, and its final loss."""
    counts = np.bincount(train.cluster, minlength=train.law.clusters)
    pull = float((counts / len(train) * np.square(train.centers).sum(axis=1)).mean())
    signs = train.label_signs
    blank = MultiClassNet(
        np.zeros((len(signs), train.x.shape[1])), len(signs), np.flatnonzero(signs == 1).tolist()
    )
    steps = max(_FEWEST_STEPS, ceil(time / pull / stable_learning_rate(blank, train)))
    rate = time / pull / steps
    # far below the first step, which moves the weights by about rate·pull/|m|
    scale = _INIT_SHARE * rate * np.sqrt(pull)
    net = MultiClassNet.init(train, width=1, weight_scale=scale, rng=rng, readout="argmax")
    run = descend(net, train, learning_rate=rate, steps=steps, record=2)
    return run.net, float(run.loss[-1])  # type: ignore[return-value]


def _orthogonal_law(train: Sample) -> FloatArray:
    """Return the law of each cluster from the norms of the means alone, as if orthogonal."""
    Q = np.bincount(train.label_of_cluster, weights=1 / np.square(train.centers).sum(axis=1))
    signs = train.label_signs
    strongest = {side: Q[signs != side].max() for side in (1, -1)}
    opposing = np.array([strongest[int(sign)] for sign in signs])
    return np.asarray(1 / np.sqrt(Q + opposing)[train.label_of_cluster])


def _groups_within(radii: FloatArray, law: FloatArray, test: Sample) -> float:
    """Return the share of label groups whose median radius is within a tenth of their law."""
    held = []
    for group in np.unique(test.labels):
        own = test.labels == group
        predicted = float(np.median(law[own]))
        held.append(abs(float(np.median(radii[own])) - predicted) <= TOLERANCE * predicted)
    return float(np.mean(held))


def _searched(
    net: MultiClassNet,
    test: Sample,
    lower: FloatArray,
    training: Training,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return by how much the true radii of some points are above the certified ones."""
    some = rng.choice(len(test), min(training.searched, len(test)), replace=False)
    found = exact_radii(
        net,
        test.x[some],
        test.y[some],
        certificates=False,
        time_limit=training.seconds,
        jobs=1,
    )
    right = found.lower > 0
    certified, exact = float(lower[some][right].sum()), float(found.lower[right].sum())
    return {
        "searched_exact": float(found.exact.mean()),
        "searched_gain": exact / certified - 1 if certified else np.nan,
    }

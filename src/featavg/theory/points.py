"""Measurements on points: the training points themselves, and fresh points given to networks.

Each takes the evidence, and the quantities of one of its networks or a network.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from featavg.networks import reference
from featavg.networks.base import TwoLayerNet
from featavg.robustness import exact_radii
from featavg.theory.claim import Finding, at_least, at_most, both, not_stated
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.theory.measurements import in_units_of_epsilon

_FOOLED = 0.99


def largest_product_of_noises(e: Evidence) -> float:
    """Return the largest inner product of the noises of two training points."""
    law, P, c = e.train.law, e.training_noise_products, e.train.cluster
    largest = 0.0
    for i in range(e.n):  # <x_i, x_j> = (α μ_i + σ ξ_i, α μ_j + σ ξ_j), solved for the last part
        cross = law.noise * law.signal * (P[i, c] + P[:, c[i]])
        row = (e.train.gram[i] - cross - law.signal**2 * e.center_gram[c[i], c]) / law.noise**2
        row[i] = 0
        largest = max(largest, float(np.abs(row).max()))
    return largest


def extreme_products(e: Evidence) -> tuple[float, float, float]:
    """Return the largest |<x_i, x_j>| across clusters, and both extremes within them, i ≠ j."""
    across, low, high = 0.0, np.inf, -np.inf
    for i in range(e.n):
        row = e.train.gram[i]
        same = e.train.cluster == e.train.cluster[i]
        if not same.all():
            across = max(across, float(np.abs(row[~same]).max()))
        same[i] = False
        if same.any():
            low, high = min(low, float(row[same].min())), max(high, float(row[same].max()))
    return across, low, high


def products_within_clusters(e: Evidence, _: ProofQuantities) -> Finding:
    """Check that d/2 <= <x_i, x_j> <= 2d within clusters, i ≠ j."""
    low, high = extreme_products(e)[1:]
    return both(at_least(low, e.d / 2), at_most(high, 2 * e.d))


def squared_norms(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that the squared norms of training points are at most 2d."""
    squared = np.square(quantities.sample.x, dtype=np.float64).sum(axis=1)
    share = float((squared > 2 * e.d).mean())
    return at_most(squared, 2 * e.d, f"{share:.0%} of the points are above")


def fresh_noise_products(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that the last weights are nearly orthogonal to the noise of fresh points."""
    law, W = e.train.law, quantities.weights[-1]
    along = law.signal * (e.test.centers @ W.T)[e.test.cluster]
    return in_units_of_epsilon(e, np.abs(e.test.x @ W.T - along) / law.noise, 1 / 6)


def error_rate(e: Evidence, net: TwoLayerNet) -> Finding:
    """Check that the share of fresh points that are wrong is at most exp(-ln² d)."""
    wrong = float((net.predict(e.test.x) != e.test.y).mean())
    return at_most(wrong, e.vanishing, f"{len(e.test):,} fresh points")


def _predictions_along_average(
    e: Evidence, net: TwoLayerNet
) -> Callable[[float], NDArray[np.int64]]:
    """Return a function of r: the decisions on x - y · r · (Σ μ₊ - Σ μ₋) of all fresh points."""
    Z = net.preactivations(e.test.x)
    change = np.outer(net.weights @ e.averaged, e.test.y)
    return lambda r: np.where(net.decision(net.outputs_at(Z - r * change)) > 0, 1, -1)


def broken_by_average(e: Evidence, net: TwoLayerNet, factor: float) -> Finding:
    """Check that x - y · (factor/k) (Σ μ₊ - Σ μ₋) is wrong for nearly all fresh points."""
    right = float((_predictions_along_average(e, net)(factor / e.k) == e.test.y).mean())
    return at_most(right, e.vanishing, f"radius {factor * np.sqrt(e.d / e.k):.4g}")


def averaging_classes_break(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that nearly no point stays right if the averaging k-class network is attacked."""
    net = reference.averaging_multiclass(quantities.sample)
    return broken_by_average(e, net, 3 * (1 + e.balance))


def tiny_loss(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that the logarithm of the loss of the averaging k-class network is at most -d/2."""
    net = reference.averaging_multiclass(quantities.sample)
    loss = net.default_loss
    targets = loss.targets(net.output_count, quantities.sample)
    losses = loss.log_losses(net.outputs(quantities.sample.x), targets)
    return at_least(np.log(e.n) - logsumexp(losses.astype(np.float64)), e.d / 2)


def certified(e: Evidence, net: TwoLayerNet, radius: float) -> Finding:
    """Check that nearly all fresh points are proved to be right within a radius."""
    points = slice(0, e.radius_samples)
    lower = exact_radii(net, e.test.x[points], e.test.y[points]).lower
    return at_most(float((lower < radius).mean()), e.vanishing, f"radius {radius:.4g}")


def fooled_by_average(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check the radius at which the direction Σ y μ fools the network on 99 % of fresh points."""
    law = e.train.law
    if e.n < e.k * np.log(e.d) ** 2:
        return not_stated("asks for n >= k ln² d")
    share = min(len(law.positive_clusters), len(law.negative_clusters)) / e.k
    decide = _predictions_along_average(e, quantities.run.net)
    length = float(np.linalg.norm(e.averaged))

    def is_fooled(radius: float) -> bool:
        return float((decide(radius / length) != decide(0.0)).mean()) >= _FOOLED

    low, high = 0.0, 10 * np.sqrt(e.d)
    if not is_fooled(high):
        low = high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_fooled(middle) else (middle, high)
    return at_most(high, np.sqrt(e.d / (share**2 * e.k)), f"c = {share:.2g}")

"""What the proofs measure along training, for either network.

Appendix B and C prove the same statements in the same order with other constants, so each
measurement is written once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featavg.arrays import FloatArray
from featavg.networks.base import TwoLayerNet
from featavg.robustness import exact_radii
from featavg.theory.claim import Finding, at_least, at_most, both, not_stated
from featavg.theory.evidence import Evidence, Learned
from featavg.training.descent import descend

SMALL = 0.1
"""What o(1) is read as."""

NO_EPSILON = "ε has no meaning: √(n/k) is not above ln(n/k)"


def in_units_of_epsilon(
    e: Evidence, measured: ArrayLike, factor: float, offset: float = 0.0
) -> Finding:
    """Return the finding of measured <= offset + factor · ε."""
    if np.isnan(e.epsilon):
        return not_stated(NO_EPSILON)
    return at_most(measured, offset + factor * e.epsilon, f"ε = {e.epsilon:.3g}")


def gaps(values: FloatArray) -> FloatArray:
    """Return the largest difference of two points at each time, shape (times,)."""
    return np.ptp(values, axis=1)


def gaps_within_clusters(learned: Learned, values: FloatArray) -> FloatArray:
    """Return the same for two points of one cluster, shape (times, clusters)."""
    present = np.unique(learned.sample.cluster)
    return np.stack([gaps(values[:, learned.sample.cluster == j]) for j in present], axis=1)


def decomposition(e: Evidence, learned: Learned) -> Finding:
    """Rebuild the last weights from the coefficients."""
    sample, law = learned.sample, learned.sample.law
    squared = np.square(sample.centers, dtype=np.float64).sum(axis=1)
    along_centers = (learned.feature[-1] / squared) @ sample.centers
    # the noise is (x - α μ) / σ
    shares = learned.noise[-1] / np.square(sample.noise_norms, dtype=np.float64) / law.noise
    members = np.eye(law.clusters)[sample.cluster]
    along_noise = shares @ sample.x - (shares @ members * law.signal) @ sample.centers
    rebuilt = learned.run.initial_net.weights + along_centers + along_noise
    scale = np.linalg.norm(learned.run.net.weights, axis=1).max()
    return at_most(
        np.linalg.norm(rebuilt - learned.run.net.weights, axis=1), e.rounding * max(scale, 1e-300)
    )


def updates(e: Evidence, learned: Learned) -> Finding:
    """Compare one step of the engine from some recorded times with the update equations."""
    sample, law, n = learned.sample, learned.sample.law, len(learned.sample)
    members = np.eye(law.clusters)[sample.cluster]
    findings = []
    for t in sorted({0, len(learned.log_steps) // 2, len(learned.log_steps) - 1}):
        net = learned.run.net_at(t)
        step = descend(net, sample, learning_rate=e.eta, steps=1, record=2)
        layer = net.second_layer.astype(np.float64)
        pull = net.residuals(layer @ np.maximum(learned.preactivations[t], 0), net.targets(sample))
        change = e.eta / n * (layer.T @ pull) * (learned.preactivations[t] >= 0)
        feature = change @ members * law.signal * e.d
        noise = change * law.noise * np.square(sample.noise_norms, dtype=np.float64)
        for ours, theirs in (
            (feature, step.feature_coefficients[-1]),
            (noise, step.noise_coefficients[-1]),
        ):
            scale = max(float(np.abs(theirs).max()), 1e-300)
            findings.append(at_most(np.abs(ours - theirs).max() / scale, 100 * e.rounding))
    return both(*findings)


def balance_of_coefficients(e: Evidence, learned: Learned) -> Finding:
    r"""Compare λ/‖μ‖² with the sum of σ/‖ξ‖² over the cluster."""
    sample, law = learned.sample, learned.sample.law
    members = np.eye(law.clusters)[sample.cluster]
    squared = np.square(sample.noise_norms, dtype=np.float64)
    sums = (learned.noise / squared) @ members * law.signal / law.noise
    scale = max(float(np.abs(learned.feature).max()), 1e-300)
    return at_most(np.abs(learned.feature - e.d * sums), e.rounding * scale)


def signs(e: Evidence, learned: Learned) -> Finding:
    """Check that own coefficients are never negative, and all others never positive."""
    scale = max(float(np.abs(learned.feature).max()), 1e-300)
    wrong = max(
        float((-learned.own_feature).max()),
        float((-learned.own_noise).max()),
        float(learned.other_feature.max(initial=0)),
        float(learned.other_noise.max(initial=0)),
        0.0,
    )
    return at_most(wrong, e.rounding * scale)


def always_on(learned: Learned, times: slice) -> Finding:
    """Return the share of own activations that are on at the worst of these times."""
    on = learned.run.active[times][:, learned.own_points].mean(axis=1)
    return at_least(on, 1.0, f"{(on == 1).sum()} of {len(on)} times")


def growth_of_noise(e: Evidence, learned: Learned) -> Finding:
    """(k/2n) ln(ηt) <= own σ <= (2k/n) ln(t+1)."""
    steps = learned.log_steps[1:, None]
    own = learned.own_noise[1:]
    return both(
        at_least(own, e.k / (2 * e.n) * (steps + np.log(e.eta))),
        at_most(own, 2 * e.k / e.n * np.logaddexp(steps, 0)),
    )


def derivative_ratio(learned: Learned) -> Finding:
    """Check the ratio of two pulls against exp(gap/2) and exp(gap) of their margins."""
    gap, ratio = extreme_pair(learned)
    note = "the lower side needs margins whose sum is not negative"
    return both(
        at_most(np.exp(ratio), np.exp(gap + 1e-9)),
        at_least(np.exp(ratio), np.exp(gap / 2 - 1e-9), note),
    )


def extreme_pair(learned: Learned) -> tuple[FloatArray, FloatArray]:
    """Return the largest gap of two margins at each time, and the log-ratio of their pulls."""
    q, pull = learned.margin[1:], learned.log_pull[1:]
    rows, high, low = np.arange(len(q)), q.argmax(axis=1), q.argmin(axis=1)
    return q[rows, high] - q[rows, low], pull[rows, low] - pull[rows, high]


def similar_noise(e: Evidence, learned: Learned, factor: float) -> Finding:
    """Check that any two own σ differ by at most a factor 1 + `factor` ε and 1/(nd)."""
    if np.isnan(e.epsilon):
        return not_stated(NO_EPSILON)
    own = learned.own_noise[1:]
    largest, smallest = own.max(axis=1), own.min(axis=1)
    room = 1 / (e.n * e.d)
    grow = factor * e.epsilon
    return both(
        at_most(largest, (1 + grow) * smallest + room),
        at_least(smallest, (1 - grow) * largest - room),
    )


def margin_by_noise(e: Evidence, learned: Learned) -> Finding:
    """(n/2k) σ - 2ε <= q <= (2n/k) σ + 2ε."""
    if np.isnan(e.epsilon):
        return not_stated(NO_EPSILON)
    low, high = own_noise_range(learned)
    q = learned.margin[1:]
    return both(
        at_least(q, e.n / (2 * e.k) * high - 2 * e.epsilon),
        at_most(q, 2 * e.n / e.k * low + 2 * e.epsilon),
    )


def own_noise_range(learned: Learned) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest σ of each point over its own neurons, (times, points)."""
    masked = np.where(learned.own_points, learned.noise[1:], np.nan)
    return np.nanmin(masked, axis=1), np.nanmax(masked, axis=1)


def pull_by_noise(e: Evidence, learned: Learned, low: float, high: float) -> Finding:
    """Low · exp(-(2n/k) σ) <= pull <= high · exp(-(n/2k) σ), compared as logarithms."""
    smallest, largest = own_noise_range(learned)
    pull = learned.log_pull[1:]
    above = np.log(low) - 2 * e.n / e.k * smallest
    below = np.log(high) - e.n / (2 * e.k) * largest
    return both(at_least(np.exp(pull - above), 1.0), at_most(np.exp(pull - below), 1.0))


def others_small(e: Evidence, learned: Learned) -> Finding:
    """Check that the coefficients of what is not own are within ε, and 2 ε."""
    return both(
        in_units_of_epsilon(e, np.abs(learned.other_feature[1:]), 1),
        in_units_of_epsilon(e, np.abs(learned.other_noise[1:]), 2),
    )


def center_products(e: Evidence, learned: Learned) -> Finding:
    """Check that <w, μ> is within ε/6 of λ."""
    return in_units_of_epsilon(e, np.abs(learned.center_products - learned.feature), 1 / 6)


def noise_products(e: Evidence, learned: Learned) -> Finding:
    """Check that <w, ξ> is within ε/6 of σ."""
    return in_units_of_epsilon(e, np.abs(learned.noise_products - learned.noise), 1 / 6)


def point_products(e: Evidence, learned: Learned) -> Finding:
    """Check that <w, x> is within ε/3 of λ + σ."""
    cluster = learned.sample.cluster
    estimate = learned.feature[:, :, cluster] + learned.noise
    products = learned.preactivations - learned.biases[:, :, None]
    return in_units_of_epsilon(e, np.abs(products - estimate), 1 / 3)


def initial_norms(e: Evidence, learned: Learned) -> Finding:
    """Check that the norms of the initial weights are within 2 σ_w ln d of σ_w √d."""
    norms = np.linalg.norm(learned.run.initial_net.weights.astype(np.float64), axis=1)
    off = np.abs(norms - e.weight_scale * np.sqrt(e.d))
    return at_most(off, 2 * e.weight_scale * np.log(e.d))


def initially_active(learned: Learned) -> FloatArray:
    """Return how many points of each cluster switch each neuron on at the start."""
    members = np.eye(learned.sample.law.clusters)[learned.sample.cluster]
    return (learned.preactivations[0] >= 0) @ members


def growth_of_features(e: Evidence, learned: Learned) -> Finding:
    """Check ln(ηT)/4 <= own λ <= 4 ln(T+1) at the end."""
    own, last = learned.own_feature[-1], learned.log_steps[-1]
    return both(at_least(own, (last + np.log(e.eta)) / 4), at_most(own, 4 * np.logaddexp(last, 0)))


def ratio_of_features(e: Evidence, learned: Learned, factor: float) -> Finding:
    """Check that the largest own λ at the end is at most 1 + `factor` ε times the smallest."""
    own = learned.own_feature[-1]
    ratio = own.max() / own.min() if own.min() > 0 else np.inf
    return in_units_of_epsilon(e, ratio, factor, offset=1.0)


def distance_to_centers(e: Evidence, learned: Learned) -> Finding:
    """Check that √d times the distance of each weight from λ Σ μ/d is small against λ.

    The λ that stands for all is the mean of the own ones.
    """
    typical = float(learned.own_feature[-1].mean())
    target = typical / e.d * (learned.own_centers @ learned.sample.centers.astype(np.float64))
    rest = np.linalg.norm(learned.weights[-1] - target, axis=1) * np.sqrt(e.d)
    return at_most(rest, SMALL * max(typical, 0.0), f"λ = {typical:.3g}")


def fresh_noise_products(e: Evidence, learned: Learned) -> Finding:
    """Check that the last weights are nearly orthogonal to fresh noise."""
    law, W = e.train.law, learned.weights[-1]
    along = law.signal * (e.test.centers @ W.T)[e.test.cluster]
    return in_units_of_epsilon(e, np.abs(e.test.x @ W.T - along) / law.noise, 1 / 6)


def error_rate(e: Evidence, net: TwoLayerNet) -> Finding:
    """Check that the share of fresh points that are wrong is at most exp(-ln² d)."""
    wrong = float((net.predict(e.test.x) != e.test.y).mean())
    return at_most(wrong, e.vanishing, f"{len(e.test):,} fresh points")


def predictions_along_average(
    e: Evidence, net: TwoLayerNet
) -> Callable[[float], NDArray[np.int64]]:
    """Return a function: the decisions on x - y · r · (Σ μ₊ - Σ μ₋) of all fresh points, for r."""
    Z = net.preactivations(e.test.x)
    change = np.outer(net.weights @ e.averaged, e.test.y)
    layer = net.second_layer

    def decide(r: float) -> NDArray[np.int64]:
        return np.where(net.decision(layer @ np.maximum(Z - r * change, 0)) > 0, 1, -1)

    return decide


def broken_by_average(e: Evidence, net: TwoLayerNet, factor: float) -> Finding:
    """Check that x - y · (factor/k) (Σ μ₊ - Σ μ₋) is wrong for nearly all fresh points."""
    right = float((predictions_along_average(e, net)(factor / e.k) == e.test.y).mean())
    return at_most(right, e.vanishing, f"radius {factor * np.sqrt(e.d / e.k):.4g}")


def certified(e: Evidence, net: TwoLayerNet, radius: float) -> Finding:
    """Check that nearly all fresh points are proved to be right within a radius."""
    points = slice(0, e.radius_samples)
    lower = exact_radii(net, e.test.x[points], e.test.y[points]).lower
    return at_most(float((lower < radius).mean()), e.vanishing, f"radius {radius:.4g}")

"""Measurements along training.

Each takes the evidence and the quantities of one of its networks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from featavg.arrays import FloatArray
from featavg.drawing.views import HOLDS
from featavg.theory.claim import Finding, at_least, at_most, both
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.training.descent import descend

SMALL = 0.1
"""The number that stands for o(1)."""


def in_units_of_epsilon(
    e: Evidence, measured: ArrayLike, factor: float, offset: float = 0.0
) -> Finding:
    """Check that measured <= offset + factor · ε."""
    return at_most(measured, offset + factor * e.epsilon, f"ε = {e.epsilon:.3g}")


def gaps(values: FloatArray) -> FloatArray:
    """Return the largest difference of two points at each time, shape (times,)."""
    return np.ptp(values, axis=1)


def gaps_within_clusters(quantities: ProofQuantities, values: FloatArray) -> FloatArray:
    """Return the largest difference of two points of each cluster, shape (times, clusters)."""
    cluster = quantities.sample.cluster
    return np.stack([gaps(values[:, cluster == j]) for j in np.unique(cluster)], axis=1)


def in_window(quantities: ProofQuantities, start: float, k: int) -> Finding:
    """Check start <= T <= exp(√k) as logarithms."""
    last = float(quantities.run.log_steps[-1])
    where = f"ln T = {last:.3g}; the window is {np.log(start):.3g} to {np.sqrt(k):.3g}"
    empty = ", empty" if np.log(start) > np.sqrt(k) else ""
    low = at_least(np.exp(last - np.log(start)), 1 - 1e-9, where + empty)
    return both(low, at_most(last, np.sqrt(k), where + empty))


def initial_norms(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that the norms of the initial weights are within 2 σ_w ln d of σ_w √d."""
    norms = np.linalg.norm(quantities.run.initial_net.weights.astype(np.float64), axis=1)
    off = np.abs(norms - e.weight_scale * np.sqrt(e.d))
    return at_most(off, 2 * e.weight_scale * np.log(e.d))


def initially_active(e: Evidence, quantities: ProofQuantities, factor: float) -> Finding:
    """Check that n / (factor · width²) points of each cluster switch each neuron on at the start.

    The width is m or h.
    """
    counts = (quantities.preactivations[0] >= 0) @ quantities.members
    return at_least(counts, e.n / (factor * quantities.width**2))


def always_on(quantities: ProofQuantities, times: slice) -> Finding:
    """Check that all own activations are on, at the worst of these times."""
    on = quantities.run.active[times][:, quantities.own_points].mean(axis=1)
    return at_least(on, 1.0, f"{(on == 1).sum()} of {len(on)} times")


def decomposition(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Compare the last weights with those rebuilt from the coefficients."""
    run, sample, law = quantities.run, quantities.sample, quantities.sample.law
    squared = np.square(sample.centers, dtype=np.float64).sum(axis=1)
    along_centers = (quantities.feature[-1] / squared) @ sample.centers
    # the noise is (x - α μ) / σ
    shares = quantities.noise[-1] / quantities.squared_noise_norms / law.noise
    along_noise = shares @ sample.x - (shares @ quantities.members * law.signal) @ sample.centers
    rebuilt = run.initial_net.weights + along_centers + along_noise
    scale = np.linalg.norm(run.net.weights, axis=1).max()
    off = np.linalg.norm(rebuilt - run.net.weights, axis=1)
    return at_most(off, e.rounding * max(scale, 1e-300))


def updates(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Compare one step of gradient descent from some recorded times with the update equations."""
    last = len(quantities.run.log_steps) - 1
    times = sorted({0, (last + 1) // 2, last})
    return both(*(_compared_step(e, quantities, t) for t in times))


def updates_without_activations(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Compare the steps of own coefficients with the equations in which all neurons are on."""
    times = range(1, len(quantities.run.log_steps))
    findings = [_compared_step(e, quantities, t, all_on=True) for t in times]
    holding = sum(finding.verdict == HOLDS for finding in findings)
    return replace(both(*findings), note=f"{holding} of {len(findings)} times")


def _compared_step(
    e: Evidence, quantities: ProofQuantities, t: int, *, all_on: bool = False
) -> Finding:
    """Compare one step from a recorded time with the equations, relative to the largest change.

    With `all_on`, only own coefficients, with equations that take their neurons to be on.
    """
    sample, law = quantities.sample, quantities.sample.law
    net, Z = quantities.run.net_at(t), quantities.preactivations[t]
    step = descend(net, sample, learning_rate=e.eta, steps=1, record=2)
    loss = net.default_loss
    residuals = loss.residuals(net.outputs_at(Z), loss.targets(net.output_count, sample))
    slopes = np.ones_like(Z) if all_on else net.hidden_slopes(Z)
    change = e.eta / e.n * (net.second_layer.T @ residuals) * slopes
    off_feature = change @ quantities.members * law.signal * e.d - step.feature_coefficients[-1]
    off_noise = change * law.noise * quantities.squared_noise_norms - step.noise_coefficients[-1]
    if all_on:
        off_feature = off_feature[quantities.own_centers]
        off_noise = off_noise[quantities.own_points]
    feature, noise = _largest(step.feature_coefficients[-1]), _largest(step.noise_coefficients[-1])
    off = np.abs(off_feature).max() / feature, np.abs(off_noise).max() / noise
    return at_most(off, 100 * e.rounding)


def balance_of_coefficients(e: Evidence, quantities: ProofQuantities) -> Finding:
    r"""Compare λ/‖μ‖² with the sum of σ/‖ξ‖² over the cluster."""
    law = e.train.law
    shares = quantities.noise / quantities.squared_noise_norms
    sums = shares @ quantities.members * law.signal / law.noise
    off = np.abs(quantities.feature - e.d * sums)
    return at_most(off, e.rounding * _largest(quantities.feature))


def signs(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that own coefficients are never negative, and all others never positive."""
    own = (-float(values.min()) for values in (quantities.own_feature, quantities.own_noise))
    wrong = max(*own, *(float(values.max(initial=0)) for values in _others(quantities)))
    return at_most(wrong, e.rounding * _largest(quantities.feature))


def _others(quantities: ProofQuantities) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients λ and σ of all other clusters and points, shape (times, entries)."""
    own_centers, own_points = quantities.own_centers, quantities.own_points
    return quantities.feature[:, ~own_centers], quantities.noise[:, ~own_points]


def _largest(values: FloatArray) -> float:
    """Return the largest absolute value, or a tiny number if all are zero."""
    return max(float(np.abs(values).max()), 1e-300)


def growth_of_noise(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that (k/2n) ln(ηt) <= own σ <= (2k/n) ln(t+1)."""
    steps = quantities.run.log_steps[1:, None]
    own = quantities.own_noise[1:]
    return both(
        at_least(own, e.k / (2 * e.n) * (steps + np.log(e.eta))),
        at_most(own, 2 * e.k / e.n * np.logaddexp(steps, 0)),
    )


def others_small(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that |λ| of all other clusters is within ε, and |σ| of all other points within 2 ε."""
    feature, noise = (np.abs(values[1:]) for values in _others(quantities))
    return both(in_units_of_epsilon(e, feature, 1), in_units_of_epsilon(e, noise, 2))


def similar_noise(e: Evidence, quantities: ProofQuantities, factor: float) -> Finding:
    """Check that any two own σ differ by at most a factor 1 + `factor` ε and 1/(nd)."""
    own = quantities.own_noise[1:]
    largest, smallest = own.max(axis=1), own.min(axis=1)
    room = 1 / (e.n * e.d)
    grow = factor * e.epsilon
    return both(
        at_most(largest, (1 + grow) * smallest + room),
        at_least(smallest, (1 - grow) * largest - room),
    )


def margin_by_noise(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that (n/2k) σ - 2ε <= q <= (2n/k) σ + 2ε."""
    low, high = _own_noise_range(quantities)
    q = quantities.margin[1:]
    return both(
        at_least(q, e.n / (2 * e.k) * high - 2 * e.epsilon),
        at_most(q, 2 * e.n / e.k * low + 2 * e.epsilon),
    )


def pull_by_noise(e: Evidence, quantities: ProofQuantities, low: float, high: float) -> Finding:
    """Check that low · exp(-(2n/k) σ) <= pull <= high · exp(-(n/2k) σ), as logarithms."""
    smallest, largest = _own_noise_range(quantities)
    pull = quantities.log_pull[1:]
    above = np.log(low) - 2 * e.n / e.k * smallest
    below = np.log(high) - e.n / (2 * e.k) * largest
    return both(at_least(np.exp(pull - above), 1.0), at_most(np.exp(pull - below), 1.0))


def _own_noise_range(quantities: ProofQuantities) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest σ of each point over its own neurons, (times, points)."""
    masked = np.where(quantities.own_points, quantities.noise[1:], np.nan)
    return np.nanmin(masked, axis=1), np.nanmax(masked, axis=1)


def growth_of_features(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that ln(ηT)/4 <= own λ <= 4 ln(T+1) at the end."""
    own, last = quantities.own_feature[-1], quantities.run.log_steps[-1]
    return both(at_least(own, (last + np.log(e.eta)) / 4), at_most(own, 4 * np.logaddexp(last, 0)))


def ratio_of_features(e: Evidence, quantities: ProofQuantities, factor: float) -> Finding:
    """Check that the largest own λ at the end is at most 1 + `factor` ε times the smallest."""
    own = quantities.own_feature[-1]
    ratio = own.max() / own.min() if own.min() > 0 else np.inf
    return in_units_of_epsilon(e, ratio, factor, offset=1.0)


def distance_to_centers(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that √d times the distance of each weight from λ Σ μ/d is small compared with λ.

    λ is the mean of all own feature coefficients.
    """
    mean = float(quantities.own_feature[-1].mean())
    target = mean / e.d * (quantities.own_centers @ quantities.sample.centers.astype(np.float64))
    rest = np.linalg.norm(quantities.weights[-1] - target, axis=1) * np.sqrt(e.d)
    return at_most(rest, SMALL * max(mean, 0.0), f"λ = {mean:.3g}; {_absolutely(rest)}")


def _absolutely(distance: ArrayLike) -> str:
    """Say whether a distance that is read as a share of λ or of f is small in itself, too."""
    holds = at_most(distance, SMALL).verdict == HOLDS
    return f"the absolute reading, at most {SMALL:g}, {'holds too' if holds else 'fails'}"


def distance_to_averaging(e: Evidence, quantities: ProofQuantities) -> Finding:
    """Check that the network is nearly a multiple of f_FA on the sphere of radius √d.

    The distance is bounded by the distances of the weights from C Σ μ, at the C that fits best.
    """
    net = quantities.run.net
    sums = quantities.own_centers @ quantities.sample.centers.astype(np.float64)
    C = float((net.weights * sums).sum() / np.square(sums).sum())
    rest = np.linalg.norm(net.weights - C * sums, axis=1) * np.sqrt(e.d) + np.abs(net.biases)
    size = C * np.sqrt(e.d) * float(np.linalg.norm(sums, axis=1).max())
    bound = rest.sum() / e.m
    note = f"an upper bound of the distance; {_absolutely(bound)}"
    return at_most(bound, SMALL * max(size, 0.0), note)

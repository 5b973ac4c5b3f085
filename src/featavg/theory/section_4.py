"""Section 4: the theorems."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from featavg.networks import reference
from featavg.theory.claim import Finding, at_least, at_most, both, claim
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.theory.measurements import (
    SMALL,
    broken_by_average,
    certified,
    distance_to_centers,
    error_rate,
)

THEOREMS = "Section 4: the theorems"
ERROR = "exp(-Ω(log² d)), read with the constant 1"


def _window(quantities: ProofQuantities, start: float, k: int) -> Finding:
    """Check start <= T <= exp(√k) as logarithms."""
    last = float(quantities.log_steps[-1])
    where = f"ln T = {last:.3g}; the window is {np.log(start):.3g} to {np.sqrt(k):.3g}"
    empty = ", empty" if np.log(start) > np.sqrt(k) else ""
    low = at_least(np.exp(last - np.log(start)), 1 - 1e-9, where + empty)
    return both(low, at_most(last, np.sqrt(k), where + empty))


@claim(THEOREMS, bound="1/η to exp(√k)", reading="no constants given; read with 1")
def theorem_4_5_window(e: Evidence) -> Finding:
    """theorem-4.5.window: the 2-class network is trained for a number of steps in this range."""
    return _window(e.coarse, 1 / e.eta, e.k)


@claim(THEOREMS, bound="exp(-ln² d)", reading=ERROR)
def theorem_4_5_1(e: Evidence) -> Finding:
    """theorem-4.5.1: trained on 2 classes, the network is right on nearly every fresh point."""
    return error_rate(e, e.coarse.run.net)


@claim(THEOREMS, bound="λ/10", reading="o(d^-1/2), read as λ d^-1/2 / 10")
def theorem_4_5_2(e: Evidence) -> Finding:
    """theorem-4.5.2: each weight is nearly λ times the sum of the centres of its side."""
    return distance_to_centers(e, e.coarse)


@claim(THEOREMS, bound="1", reading="Ω(1), read with 1")
def theorem_4_5_2_lambda(e: Evidence) -> Finding:
    """theorem-4.5.2.lambda: and this λ does not vanish."""
    return at_least(e.coarse.own_feature[-1].mean(), 1.0)


@claim(THEOREMS, bound="1/10", reading="o(1), read as 1/10")
def theorem_4_5_2_biases(e: Evidence) -> Finding:
    """theorem-4.5.2.biases: the biases are small."""
    return at_most(np.abs(e.coarse.biases[-1]), SMALL)


@claim(THEOREMS, bound="exp(-ln² d)", reading=ERROR)
def theorem_4_5_3(e: Evidence) -> Finding:
    """theorem-4.5.3: moved by 2(1+c) √(d/k) along the averaged centres, nearly none is right."""
    return broken_by_average(e, e.coarse.run.net, 2 * (1 + e.balance))


@claim(THEOREMS, bound="C sup|f_FA|/10", reading="o(1), read against the size of f")
def theorem_4_6(e: Evidence) -> Finding:
    r"""theorem-4.6: on the sphere of radius √d the network is nearly a multiple of f_FA.

    The distance is bounded by the distances of the weights from C Σ μ, at the C that fits best.
    """
    net, own = e.coarse.run.net, e.coarse.own_centers
    sums = own @ e.train.centers.astype(np.float64)
    C = float((net.weights * sums).sum() / np.square(sums).sum())
    rest = np.linalg.norm(net.weights - C * sums, axis=1) * np.sqrt(e.d) + np.abs(net.biases)
    size = C * np.sqrt(e.d) * float(np.linalg.norm(sums, axis=1).max())
    return at_most(rest.sum() / e.m, SMALL * max(size, 0.0), "an upper bound of the distance")


@claim(THEOREMS, bound="k^8/η to exp(√k)", reading="no constants given; with 1")
def theorem_4_7_window(e: Evidence) -> Finding:
    """theorem-4.7.window: the k-class network is trained for a number of steps in this range."""
    return _window(e.fine, float(e.k) ** 8 / e.eta, e.k)


@claim(THEOREMS, bound="exp(-ln² d)", reading=ERROR)
def theorem_4_7_1(e: Evidence) -> Finding:
    """theorem-4.7.1: trained on k classes, its binary decision is right nearly everywhere."""
    return error_rate(e, e.fine_net)


@claim(THEOREMS, bound="λ/10", reading="o(d^-1/2), read as λ d^-1/2 / 10")
def theorem_4_7_2(e: Evidence) -> Finding:
    """theorem-4.7.2: each weight is nearly λ times its own centre."""
    return distance_to_centers(e, e.fine)


@claim(THEOREMS, bound="ln k", reading="Ω(log k), read with 1")
def theorem_4_7_2_lambda(e: Evidence) -> Finding:
    """theorem-4.7.2.lambda: and this λ is at least of the order of log k."""
    return at_least(e.fine.own_feature[-1].mean(), np.log(e.k))


@claim(THEOREMS, bound="exp(-ln² d)", reading=ERROR + "; the radius is of the proof")
def theorem_4_7_3(e: Evidence) -> Finding:
    """theorem-4.7.3: nearly every fresh point stays right within the radius √d/10."""
    return certified(e, e.fine_net, np.sqrt(e.d) / 10)


@claim(THEOREMS, bound="-d/2", reading="exp(-Ω(d)), read as exp(-d/2)")
def proposition_4_8_loss(e: Evidence) -> Finding:
    """proposition-4.8.loss: the averaging k-class network has a tiny loss; its logarithm."""
    net = reference.averaging_multiclass(e.train)
    loss = net.default_loss
    losses = loss.log_losses(net.outputs(e.train.x), loss.targets(net.output_count, e.train))
    return at_least(np.log(e.n) - logsumexp(losses.astype(np.float64)), e.d / 2)


@claim(THEOREMS, bound="exp(-ln² d)", reading=ERROR)
def proposition_4_8_accuracy(e: Evidence) -> Finding:
    """proposition-4.8.accuracy: it is right on nearly every fresh point."""
    return error_rate(e, reference.averaging_multiclass(e.train))


@claim(THEOREMS, bound="exp(-ln² d)", reading=ERROR)
def proposition_4_8_robustness(e: Evidence) -> Finding:
    """proposition-4.8.robustness: moved by 3(1+c) √(d/k), nearly none is right."""
    return broken_by_average(e, reference.averaging_multiclass(e.train), 3 * (1 + e.balance))

"""How far a network is from a KKT point of the max-margin problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import refuse_smooth
from featavg.networks.base import TwoLayerNet
from featavg.training.state import check_pair

_CHECK_EVERY = 20


@dataclass(frozen=True, eq=False, repr=False)
class KKTResidual:
    r"""How far a network is from a KKT point, with the multipliers that prove it.

    Paper: none, an extension; see `kkt_residual`.

    Attributes
    ----------
    stationarity : float
        :math:`\|\hat\theta - \sum_e \lambda_e h_e\| / \|\hat\theta\|`.
    complementarity : float
        :math:`\sum_e \lambda_e (q_e - 1) / \|\hat\theta\|^2`.
    multipliers : array of shape (constraints of a point, points)
        :math:`\lambda`; one constraint for each point, or one for each other class.
    free : int
        How many gates were at a kink, and so free.
    pattern_margin : float
        The largest normalised margin of any network with these activations, kinks being free.
    accuracy : float
        By how much `gap` may exceed the smallest possible one: a proof.

    Examples
    --------
    >>> KKTResidual(0.1, 0.02, np.ones((1, 3)), free=2, pattern_margin=8.0, accuracy=1e-6)
    KKTResidual(stationarity 0.1, complementarity 0.02, gap 0.05, 2 gates free)
    """

    stationarity: float
    complementarity: float
    multipliers: FloatArray
    free: int
    pattern_margin: float
    accuracy: float

    @property
    def gap(self) -> float:
        r"""Both conditions in one number, stationarity² + 2·complementarity.

        The duality gap relative to :math:`\frac12\|\hat\theta\|^2`; 0 at a KKT point and only
        there.
        """
        return self.stationarity**2 + 2 * self.complementarity

    def __repr__(self) -> str:
        return (
            f"KKTResidual(stationarity {self.stationarity:.3g}, complementarity "
            f"{self.complementarity:.3g}, gap {self.gap:.3g}, {self.free} gates free)"
        )


def kkt_residual(
    net: TwoLayerNet,
    sample: Sample,
    *,
    kink: float = 1e-3,
    accuracy: float = 1e-5,
    iterations: int = 20_000,
) -> KKTResidual:
    r"""Measure how far a network is from a KKT point of the max-margin problem.

    Paper: none, an extension; the limit of training by Lyu and Li (2020).

    The problem is :math:`\min \frac12\|\theta\|^2` subject to :math:`q_e(\theta) \ge 1`, with one
    constraint for each point, :math:`y_i f(x_i)`, or for a multi-class network one for each point
    and other class, :math:`f_y(x_i) - f_j(x_i)`. The network, scaled to
    :math:`\min_e q_e(\hat\theta) = 1`, is a KKT point if there are :math:`\lambda \ge 0` and
    :math:`h_e \in \partial^\circ q_e(\hat\theta)` with :math:`\hat\theta = \sum_e \lambda_e h_e`
    (stationarity) and :math:`\lambda_e (q_e - 1) = 0` (complementarity).

    Neither condition means much alone: gradient descent is a sum of gradients, so stationarity
    holds early with multipliers on all points. Because :math:`\langle\theta, h_e\rangle = q_e`,

    .. math:: \tfrac12\|\hat\theta - \textstyle\sum_e\lambda_e h_e\|^2
              + \sum_e \lambda_e (q_e - 1)
              = \tfrac12\|\hat\theta\|^2
              - \Big(\sum_e \lambda_e - \tfrac12\|\textstyle\sum_e \lambda_e h_e\|^2\Big),

    the duality gap of the support vector machine with the features :math:`h_e`. The multipliers
    returned are those that make it smallest, and so no weight between the two conditions has to
    be chosen. Whatever the multipliers, both numbers are true of them.

    Where a pre-activation is 0 the ReLU has a kink, and any gate in [0, 1] gives an element of
    the subdifferential (of a leaky ReLU, any slope from its leak to 1). Neurons do slide along
    the kinks at points of other sides, so there gates are variables: :math:`\mu = \lambda g`
    with :math:`0 \le \mu \le \lambda`, which is the same convex problem. Gates of neurons of
    the own side of a point stay as they are, which can only make the result larger.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        A network that fits every point; of outputs that are homogeneous of degree 1 in what is
        trained, so with a piecewise linear activation and a fixed second layer.
    sample : Sample
        The training points.
    kink : float
        What counts as a kink: a pre-activation of the scaled network of at most this size. A
        simulated network is never exactly at one; moving :math:`\hat w_r` by `kink` / ||x|| is
        enough to put it there. 0 frees none but exact zeros.
    accuracy : float
        How near to its minimum the duality gap is brought, relative to the dual value.
    iterations : int
        The most steps that are taken.

    Notes
    -----
    Left at kink=0, the residual of a network that slides stops falling, because its gates flicker
    between 0 and 1 and neither is right; from 1e-4 to 1e-2 the threshold makes no difference late
    in training.

    Accelerated projected gradient descent with restarts on the dual, through the Gram matrix:
    neurons·n² for each iteration, whatever the dimension.

    Examples
    --------
    Two clusters on each side, without noise. Neurons with the average of their own centres slide
    along the kink at the points of the other side, held there by their bias, with a gate of
    2 / (d + 2): a KKT point. Without the bias it is none.

    >>> from featavg import BinaryNet, MultiCluster
    >>> train = MultiCluster(clusters=4, dim=98, noise=0).sample(40, rng=np.random.default_rng(0))
    >>> own = np.array([train.centers[:2].sum(axis=0), train.centers[2:].sum(axis=0)])
    >>> gate = 2 / 100
    >>> net = BinaryNet(own - gate * own[::-1], [2 * (1 - gate)] * 2)
    >>> f"{kkt_residual(net, train).gap:.4f} {kkt_residual(BinaryNet(own), train).gap:.4f}"
    '0.0000 0.0196'
    """
    check_pair(net, sample)
    kink = checks.scale("kink", kink, zero=True)
    accuracy = checks.scale("accuracy", accuracy)
    iterations = checks.count("iterations", iterations)
    problem = _Problem(net, sample, kink)
    multipliers, gates, bound = problem.solve(accuracy, iterations)
    return problem.residual(multipliers, gates, bound)


class _Problem:
    """The dual of the max-margin problem at the activations of one network.

    Arrays over constraints have the shape (constraints of a point, points), those over gates
    (constraints of a point, neurons, points). `sign` is the derivative of each constraint by each
    activation: s = Aᵀ D, with D the coefficients of the outputs in the constraint.
    """

    def __init__(self, net: TwoLayerNet, sample: Sample, kink: float) -> None:
        left, right = refuse_smooth(net.activation, "kkt_residual")
        if net.degree != 1:
            raise InputError(
                "kkt_residual needs outputs that are homogeneous of degree 1 in what is trained; "
                f"got {net!r}, of degree {net.degree}."
            )
        Z = net.preactivations(sample.x).astype(np.float64)
        D = _output_coefficients(net, net.default_loss.targets(net.output_count, sample))
        self.sign = np.einsum("or,eoi->eri", net.second_layer.astype(np.float64), D)
        q = (self.sign * net.activation.value(Z)).sum(axis=1)
        smallest = float(q.min())
        if not smallest > 0:
            raise InputError(
                "a KKT point must fit every point, and only a network that does can be scaled to "
                f"margins of at least 1; got a smallest margin of {smallest:.4g}."
            )
        self.q, self.Z = q / smallest, Z / smallest
        theta = np.square(net.weights / smallest, dtype=np.float64).sum()
        if net.has_biases:
            theta += np.square(net.biases / smallest, dtype=np.float64).sum()
        self.squared_norm = float(theta)
        # a free gate g stands for the slope left + (right - left) g
        self.free: BoolArray = (self.sign * (right - left) < 0) & (np.abs(self.Z) <= kink)
        self.fixed = self.sign * np.where(self.free, left, net.activation.slope(self.Z))
        self.loose = self.sign * self.free * (right - left)
        self._gram, self._bias = sample.gram, float(net.has_biases)

    def coefficients(self, multipliers: FloatArray, gates: FloatArray) -> FloatArray:
        """Return C with Σ λ h = (C X, C 1), shape (neurons, points)."""
        fixed = np.einsum("eri,ei->ri", self.fixed, multipliers)
        return fixed + np.einsum("eri,eri->ri", self.loose, gates)

    def product(self, C: FloatArray) -> FloatArray:
        """Return the pre-activations of the network (C X, C 1)."""
        return C @ self._gram + self._bias * C.sum(axis=1, keepdims=True)

    def constraints(self, V: FloatArray) -> FloatArray:
        """Return what the constraints are at pre-activations V: free neurons count if active."""
        fixed = np.einsum("eri,ri->ei", self.fixed, V)
        return fixed + np.einsum("eri,ri->ei", self.loose, np.maximum(V, 0))

    def solve(self, accuracy: float, iterations: int) -> tuple[FloatArray, FloatArray, float]:
        """Maximise Σ λ - ½ ||Σ λ h||²; return λ, μ and how far from the maximum it may be."""
        step = 1 / self._curvature()
        x = np.full(self.q.shape, self.squared_norm / self.q.size), np.zeros(self.sign.shape)
        x = _project(x[0], x[1], self.free)
        ahead, momentum = x, 1.0
        bound = np.inf
        best = x
        for iteration in range(iterations):
            V = self.product(self.coefficients(*ahead))
            up = (
                ahead[0] + step * (1 - np.einsum("eri,ri->ei", self.fixed, V)),
                ahead[1] - step * self.loose * V,
            )
            new = _project(*up, self.free)
            moved = tuple(a - b for a, b in zip(new, x, strict=True))
            # restart where the momentum points uphill
            wrong = sum(
                float(((a - n) * m).sum()) for a, n, m in zip(ahead, new, moved, strict=True)
            )
            momentum = 1.0 if wrong > 0 else momentum
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            weight = (momentum - 1) / following
            x, momentum = new, following
            ahead = (x[0] + weight * moved[0], x[1] + weight * moved[1])
            if iteration % _CHECK_EVERY == 0:
                scaled, found, value = self._bound(x)
                if found < bound:
                    best, bound = scaled, found
                    if bound <= accuracy * value:
                        break
        return best[0], best[1], bound

    def _bound(
        self, x: tuple[FloatArray, FloatArray]
    ) -> tuple[tuple[FloatArray, FloatArray], float, float]:
        """Return x scaled as well as possible, its distance from the maximum, and its value."""
        C = self.coefficients(*x)
        V = self.product(C)
        total, square = float(x[0].sum()), float((C * V).sum())
        scale = total / square if square > 0 else 1.0
        value = scale * total - 0.5 * scale**2 * square
        smallest = scale * float(self.constraints(V).min())
        bound = 0.5 * scale**2 * square / smallest**2 - value if smallest > 0 else np.inf
        return (scale * x[0], scale * x[1]), max(bound, 0.0), value

    def _curvature(self) -> float:
        """Return a little more than the largest eigenvalue of the quadratic form."""
        x = np.linspace(1, 2, self.q.size).reshape(self.q.shape)  # any that is not symmetric
        y = np.linspace(1, 2, self.free.size).reshape(self.free.shape) * self.free
        largest = 0.0
        for _ in range(30):
            size = np.sqrt(np.square(x).sum() + np.square(y).sum())
            V = self.product(self.coefficients(x / size, y / size))
            x, y = np.einsum("eri,ri->ei", self.fixed, V), self.loose * V
            largest = float(np.sqrt(np.square(x).sum() + np.square(y).sum()))
        return 1.1 * largest

    def residual(self, multipliers: FloatArray, gates: FloatArray, bound: float) -> KKTResidual:
        """Return both conditions at given multipliers."""
        C = self.coefficients(multipliers, gates)
        square = float((C * self.product(C)).sum())
        distance = self.squared_norm - 2 * float((C * self.Z).sum()) + square
        return KKTResidual(
            stationarity=float(np.sqrt(max(distance, 0.0) / self.squared_norm)),
            complementarity=float((multipliers * (self.q - 1)).sum() / self.squared_norm),
            multipliers=multipliers,
            free=int(self.free.sum()),
            pattern_margin=float(1 / np.sqrt(square)) if square > 0 else np.inf,
            accuracy=2 * bound / self.squared_norm,
        )


def _output_coefficients(net: TwoLayerNet, targets: IntArray) -> FloatArray:
    """Return the coefficients D of the outputs in each constraint, (constraints, outputs, points).

    For a binary network y; for a multi-class one e_y - e_j for every other class j.
    """
    if net.has_one_output:
        return targets.astype(np.float64)[None, None, :]
    k, points = len(net.second_layer), np.arange(len(targets))
    D = np.zeros((k - 1, k, len(targets)))
    D[:, targets, points] = 1
    for e in range(k - 1):
        D[e, (targets + 1 + e) % k, points] = -1
    return D


def _project(
    multipliers: FloatArray, gates: FloatArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the nearest λ >= 0 and 0 <= μ <= λ; μ is 0 where it is not free.

    For given λ the best μ is clipped, and the best λ is the mean of itself and of the μ above it:
    the largest of the means of λ with the s largest μ.
    """
    if not free.any():
        return np.maximum(multipliers, 0), np.zeros_like(gates)
    top = -np.sort(-np.where(free, gates, -np.inf), axis=1)
    sums = multipliers[:, None] + np.cumsum(top, axis=1)
    means = sums / np.arange(2, top.shape[1] + 2)[:, None]
    nearest = np.maximum(np.maximum(multipliers, means.max(axis=1)), 0)
    return nearest, np.where(free, np.clip(gates, 0, nearest[:, None]), 0.0)

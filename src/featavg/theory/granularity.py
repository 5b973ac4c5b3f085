r"""The granularity law: how far a point is from the boundary, by the groups that share a label.

Paper: none, an extension; Theorems 4.5 and 4.7 are its two ends. The page "The granularity law" of
the documentation has the proofs.

Trained on a label for each group of clusters, with the argmax readout, a point of the group A has
the radius

.. math:: r_A = \alpha \sqrt{\frac{d}{Q_A + \max_B Q_B}}, \qquad Q_G = \sum_{j \in G} \nu_j^{-2},

B running over the groups of the other side and :math:`\nu_j \sqrt d` being the norms of the
centres. With equal norms :math:`Q_G` is the number of clusters in the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq
from scipy.special import ndtr

from featavg.arrays import FloatArray, IntArray
from featavg.data.grouping import Grouping
from featavg.data.multicluster import MultiCluster
from featavg.errors import InputError
from featavg.networks.activation import ReLU
from featavg.networks.base import TwoLayerNet
from featavg.robustness import exact_radii

# A perturbation that turns a decision is this much longer than the bound that it shows to be tight.
_STRETCH = 1 + 1e-7
# Gauss-Hermite nodes for the noise along the own group's weight.
_NODES = 60
# Steps of Newton's method for the margin at a time: far more than it takes from above the root.
_ITERATIONS = 60


def granularity_radii(grouping: Grouping, law: MultiCluster) -> FloatArray:
    r"""Return the radius that the granularity law gives each label group, shape (groups,).

    Paper: none, an extension. It is the limit of many dimensions, points and steps.

    Examples
    --------
    >>> law = MultiCluster(clusters=10, dim=3072)
    >>> granularity_radii(Grouping.parse("5|5"), law).round(2)             # sqrt(d/k)
    array([17.53, 17.53])
    >>> granularity_radii(Grouping.parse("1,4|2,3"), law).round(2)
    array([27.71, 20.95, 22.63, 20.95])
    """
    _check(grouping, law)
    Q = np.bincount(grouping.labels(law.signs), weights=_norms(law) ** -2.0)
    opposing = [Q[grouping.opposing(g)].max() for g in range(len(grouping))]
    return law.signal * np.sqrt(law.dim / (Q + np.array(opposing)))


@dataclass(frozen=True)
class FinitePrediction:
    r"""The radii that theory predicts after finitely many steps, on finitely many noisy points.

    Paper: none, an extension. Three things change the law, and nothing is fitted:

    - *Time.* By gradient flow the margin :math:`m_j` of a cluster solves
      :math:`e^m + (L-1)\,m = 1 + (L-1)\,\tau_j` with L labels and :math:`\tau_j = \eta t\,p_j d\,
      (\alpha^2\nu_j^2 + \sigma^2/n_j)/h`. Its logarithm of time forgets :math:`p_j` and
      :math:`\nu_j` only slowly.
    - *Noise of the training points.* It makes the squared norm of a weight larger by the factor
      :math:`1 + \sigma^2/(\alpha^2\nu_j^2 n_j)` for each cluster of :math:`n_j` points.
    - *Noise of the point itself.* The distance to each opposing group has the standard deviation
      :math:`\sigma`, and the nearest of several groups counts.

    Parameters
    ----------
    grouping : Grouping
        The label groups.
    law : MultiCluster
        The law, with orthogonal centres.
    counts : array of shape (clusters,)
        The number of training points of each cluster.
    time : float
        :math:`\eta t`, the learning rate times the number of steps.
    width : int
        h, the number of neurons of each class.
    biases : bool
        Whether the network has biases, which are trained too.

    Examples
    --------
    >>> law = MultiCluster(clusters=10, dim=3072)
    >>> fine = Grouping.fine(5, 5)
    >>> found = FinitePrediction(fine, law, np.full(10, 100), time=0.1)
    >>> (found.medians() / granularity_radii(fine, law))[:2].round(3)
    array([0.974, 0.974])
    """

    grouping: Grouping
    law: MultiCluster
    counts: IntArray
    time: float
    width: int = 1
    biases: bool = False

    def __post_init__(self) -> None:
        _check(self.grouping, self.law)

    @property
    def _gains(self) -> tuple[FloatArray, FloatArray]:
        """Return what signal and noise of a cluster add to its own margin, over d."""
        norms = _norms(self.law)
        signal = np.square(self.law.signal * norms)
        return signal, self.law.noise**2 / np.maximum(self.counts, 1)

    def coefficients(self) -> FloatArray:
        r"""Return :math:`\alpha\lambda_j`, the output at the centre of each cluster."""
        signal, noise = self._gains
        shares = self.counts / self.counts.sum()
        tau = self.time * shares * self.law.dim * (signal + noise) / self.width
        return margin_at(tau, len(self.grouping)) * signal / (signal + noise)

    def medians(self, shares: FloatArray | None = None) -> FloatArray:
        """Return the median radius of fresh points of each group, shape (groups,).

        `shares` are those of the clusters among the fresh points, by default the same for all.
        """
        labels = self.grouping.labels(self.law.signs)
        weights = np.ones(len(labels)) if shares is None else np.asarray(shares)
        contests = [self._contest(j) for j in range(len(labels))]
        return np.array(
            [
                _median([contests[j] for j in members], weights[members])
                for members in (np.flatnonzero(labels == g) for g in range(len(self.grouping)))
            ]
        )

    def _contest(self, cluster: int) -> _Contest:
        """Return a cluster's points against the groups of the other side."""
        law, labels = self.law, self.grouping.labels(self.law.signs)
        signal, noise = self._gains
        norms, values = _norms(law), self.coefficients()
        lam = values / law.signal
        squares = np.square(lam / norms) / law.dim * (1 + noise / signal)
        sizes = np.sqrt(np.bincount(labels, weights=squares))
        own, others = int(labels[cluster]), self.grouping.opposing(int(labels[cluster]))
        lead = np.full(len(others), values[cluster])
        if self.biases:  # each is the sum of the pulls that made the weight
            pulls = lam / (law.signal * np.square(norms) * law.dim)
            sums = np.bincount(labels, weights=pulls)
            lead += sums[own] - sums[others]
        return _Contest(lead, float(sizes[own]), sizes[others], law.noise)


@dataclass(frozen=True, eq=False)
class _Contest:
    """The points of a cluster against the groups of the other side.

    Attributes
    ----------
    lead : array of shape (opposing groups,)
        By how much the own output is ahead at the centre.
    own, others : float and array
        The norms of the weights, which are orthogonal.
    noise : float
        The standard deviation of the noise of a point.
    """

    lead: FloatArray
    own: float
    others: FloatArray
    noise: float

    @property
    def radii(self) -> FloatArray:
        """The distance of the centre to each opposing group."""
        return self.lead / np.hypot(self.own, self.others)

    def survival(self, radius: float) -> float:
        """Return the share of points whose every opposing group is further than a radius."""
        if self.noise == 0:
            return float(self.radii.min() > radius)
        u, w = hermegauss(_NODES)
        ahead = self.lead - radius * np.hypot(self.own, self.others)
        standard = (ahead[:, None] + self.noise * self.own * u) / (
            self.noise * self.others[:, None]
        )
        return float(w @ np.prod(ndtr(standard), axis=0) / w.sum())


def _median(contests: Sequence[_Contest], weights: FloatArray) -> float:
    """Return the median radius of points of several clusters."""

    def above_half(radius: float) -> float:
        shares = [contest.survival(radius) for contest in contests]
        return float(np.average(shares, weights=weights)) - 0.5

    nearest = [float(contest.radii.min()) for contest in contests]
    room = 9 * contests[0].noise + 1e-3 * max(nearest)
    return float(brentq(above_half, min(nearest) - room, max(nearest) + room))


def margin_at(tau: FloatArray, labels: int) -> FloatArray:
    r"""Return the margin m with :math:`e^m + (L-1)\,m = 1 + (L-1)\,\tau` for L labels.

    Paper: none, an extension. The own output of a class grows by
    :math:`\dot m = (L-1)/(e^m + L - 1)` while the other outputs are 0.

    Examples
    --------
    >>> margin_at(np.array([0.0, 1.0, 1e6]), 2).round(3)
    array([ 0.   ,  0.443, 13.815])
    """
    others = labels - 1
    right = 1 + others * np.asarray(tau, dtype=np.float64)
    m = np.log1p(np.asarray(tau, dtype=np.float64) * others)  # above the root
    for _ in range(_ITERATIONS):
        m = m - (np.exp(m) + others * m - right) / (np.exp(m) + others)
    return m


def argmax_radii(net: TwoLayerNet, x: FloatArray, y: IntArray) -> FloatArray:
    r"""Return exact radii of a network with one neuron for each class and the argmax readout.

    Paper: none, an extension; the proof of the granularity law for trained weights. With A the
    largest output of the own side and B any class of the other side, nothing nearer than

    .. math:: \min_B \min\Big(\frac{z_A - z_B}{\|w_A - w_B\|}, \frac{z_A}{\|w_A\|}\Big)

    turns the decision. Where the perturbation along :math:`w_A - w_B` of the nearest B does turn
    it, this is the radius. Elsewhere `featavg.exact_radii` decides.

    Examples
    --------
    >>> from featavg import MultiClassNet
    >>> net = MultiClassNet(np.eye(4), classes=4, readout="argmax")
    >>> argmax_radii(net, np.array([[3.0, 0.0, 1.0, 0.0]]), np.array([1])).round(4)   # sqrt(2)
    array([1.4142])
    """
    if net.readout != "argmax" or len(net.weights) != net.output_count or net.activation != ReLU():
        raise InputError(
            f"the closed form needs one ReLU for each class and the argmax readout; got {net!r}."
        )
    W, Z, points = net.weights, net.preactivations(x), np.arange(len(y))
    own_side = net.output_signs[:, None] == y[None, :]
    own = np.where(own_side, Z, -np.inf).argmax(axis=0)
    apart = np.linalg.norm(W[:, None] - W[None], axis=2)[own]
    with np.errstate(divide="ignore", invalid="ignore"):  # only a class beside itself
        distance = np.where(own_side.T, np.inf, (Z[own, points] - Z).T / apart)
    other = distance.argmin(axis=1)
    length = distance[points, other]
    unit = (W[own] - W[other]) / apart[points, other][:, None]
    right = net.predict(x) == y
    turned = net.predict(x - (_STRETCH * length)[:, None] * unit) != y
    proved = length <= Z[own, points] / net.norms[own]
    radii = np.where(right, length, 0.0)
    undecided = right & ~(turned & proved)
    if undecided.any():
        found = exact_radii(net, x[undecided], y[undecided], certificates=False, jobs=1)
        radii[undecided] = found.upper
    return radii


def _norms(law: MultiCluster) -> FloatArray:
    """Return the norms of the centres in units of √d."""
    return np.ones(law.clusters) if law.norms is None else np.array(law.norms)


def _check(grouping: Grouping, law: MultiCluster) -> None:
    if type(law) is not MultiCluster or law.cosine != 0:
        raise InputError(
            f"the granularity law needs orthogonal centres and noise N(0, I); got {law!r}."
        )
    grouping.labels(law.signs)  # refuses groups for other sides

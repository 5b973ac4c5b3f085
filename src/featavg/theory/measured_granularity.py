r"""The granularity law for clusters that were measured: any norms and angles of their means.

Paper: none, an extension. The law of `featavg.theory.granularity` is for orthogonal centres, where
training on label groups ends at the weights :math:`w_G = \lambda\sum_{j\in G} \mu_j/\|\mu_j\|^2`:
every cluster of a group has the same output. Put the measured means :math:`m_j` in their place,

.. math:: w_G = \sum_{j \in G} \frac{m_j}{\|m_j\|^2},

and ask for the radius of a point at a mean. For a cluster a of a side with the label groups A,

.. math:: r_a = \max_A \min_B \min\Big(\frac{\langle w_A - w_B, m_a\rangle}{\|w_A - w_B\|},
          \frac{\langle w_A, m_a\rangle}{\|w_A\|}\Big), \qquad
          \|w_A - w_B\|^2 = \sum_{i,j \in A \cup B} s_i s_j
          \frac{\langle m_i, m_j\rangle}{\|m_i\|^2\|m_j\|^2},

with B over the groups of the other side, and s = 1 in A, -1 in B. For orthogonal means the largest
is that of the own group, the first term is the smaller one,
:math:`\langle w_A - w_B, m_a\rangle = 1`, and :math:`\|w_A - w_B\|^2 = Q_A + Q_B`: the law as it
was. Correlated means change both: those of one group add up in the numerator as well as in the
norm.
"""

from __future__ import annotations

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import ReLU
from featavg.networks.base import TwoLayerNet
from featavg.networks.multiclass import MultiClassNet

# How much longer than the certified bound the perturbations are that are tried.
_STRETCHES = (1 + 1e-7, 1.01, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0)
_POINTS_AT_ONCE = 500


def averaged_features(sample: Sample) -> MultiClassNet:
    r"""Return the network whose weights average the cluster means of each label group.

    Paper: none, an extension; `featavg.networks.reference.averaging` for any label groups.

    .. math:: f_G(x) = \mathrm{relu}\Big(\sum_{j \in G} \frac{\langle m_j, x\rangle}{\|m_j\|^2}
              \Big)

    Examples
    --------
    >>> sample = Sample.from_points(np.diag([1.0, 2.0, 1.0, 4.0]), [0, 1, 2, 3]).grouped("2|1,1")
    >>> averaged_features(sample).weights
    array([[1.  , 0.5 , 0.  , 0.  ],
           [0.  , 0.  , 1.  , 0.  ],
           [0.  , 0.  , 0.  , 0.25]])
    """
    means = sample.centers.astype(np.float64)
    squares = np.square(means).sum(axis=1, keepdims=True)
    if not squares.all():
        empty = int(np.flatnonzero(squares == 0)[0])
        raise InputError(f"each cluster must have a mean that is not zero; got cluster {empty}.")
    signs = sample.label_signs
    weights = np.zeros((len(signs), means.shape[1]))
    np.add.at(weights, sample.label_of_cluster, means / squares)
    return MultiClassNet(weights, len(signs), np.flatnonzero(signs == 1).tolist(), "argmax")


def measured_law(sample: Sample) -> FloatArray:
    r"""Return :math:`r_a` of every cluster: the granularity law with measured means and angles.

    Paper: none, an extension; the formula is that of this module. A cluster whose mean is on the
    wrong side of the boundary of averaged features has the radius 0.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> from featavg.theory.granularity import granularity_radii
    >>> law = MultiCluster(clusters=5, dim=500, norms=(1.0, 2.0, 1.0, 0.5, 1.0))
    >>> sample = law.sample(5, rng=np.random.default_rng(0)).grouped("1,2|2")
    >>> measured_law(sample).round(3)
    array([9.129, 8.944, 8.944, 8.944, 8.944])
    >>> granularity_radii(sample.grouping, law)[sample.label_of_cluster].round(3)
    array([9.129, 8.944, 8.944, 8.944, 8.944])
    """
    means = sample.centers.astype(np.float64)
    return argmax_brackets(averaged_features(sample), means, sample.law.signs)[0]


def argmax_brackets(net: TwoLayerNet, x: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    r"""Return certified lower and upper bounds of the radii of a network with one ReLU a class.

    Paper: none, an extension. Nothing nearer than

    .. math:: \max_A \min_B \min\Big(\frac{z_A - z_B}{\|w_A - w_B\|}, \frac{z_A}{\|w_A\|}\Big)

    turns the decision, with A over the classes of the own side and B over the others: nearer,
    :math:`\mathrm{relu}(z_A)` stays above :math:`\mathrm{relu}(z_B)` for all B. The upper bound is
    the shortest of some perturbations along :math:`w_A - w_B` that does turn it; infinity where
    none does. A point that is on the wrong side has the radius 0.

    Examples
    --------
    >>> net = MultiClassNet(np.eye(4), classes=4, readout="argmax")
    >>> lower, upper = argmax_brackets(net, np.array([[3.0, 0.0, 1.0, 0.0]]), np.array([1]))
    >>> lower.round(4), upper.round(4)
    (array([1.4142]), array([1.4142]))
    """
    if net.readout != "argmax" or len(net.weights) != net.output_count or net.activation != ReLU():
        raise InputError(
            f"the closed form needs one ReLU for each class and the argmax readout; got {net!r}."
        )
    parts = [
        _brackets(net, x[start : start + _POINTS_AT_ONCE], y[start : start + _POINTS_AT_ONCE])
        for start in range(0, len(x), _POINTS_AT_ONCE)
    ]
    lower, upper = (np.concatenate(some) for some in zip(*parts, strict=True))
    return lower, upper


def _brackets(net: TwoLayerNet, x: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    lower, upper = np.zeros(len(x)), np.zeros(len(x))
    right = net.predict(x) == y
    for side in (1, -1):
        at = np.flatnonzero(right & (y == side))
        own, others = (np.flatnonzero(net.output_signs == s) for s in (side, -side))
        if not len(at):
            continue
        found, directions = _nearest(net, x[at], own, others)
        lower[at] = found
        upper[at] = np.inf
        for stretch in reversed(_STRETCHES):
            turned = net.predict(x[at] - (stretch * found)[:, None] * directions) != side
            upper[at[turned]] = stretch * found[turned]
    return lower, upper


def _nearest(
    net: TwoLayerNet, x: FloatArray, own: IntArray, others: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the lower bound of each point, and the unit vector along which it may be reached."""
    W, Z = net.weights, net.preactivations(x)
    apart = W[own][:, None] - W[others][None]
    norms = np.linalg.norm(apart, axis=2)
    distances = (Z[own][:, None] - Z[others][None]) / norms[:, :, None]
    nearest = distances.argmin(axis=1)  # B for each A and point
    to_zero = Z[own] / net.norms[own][:, None]
    bounds = np.minimum(distances.min(axis=1), to_zero)
    best = bounds.argmax(axis=0)
    points = np.arange(len(x))
    against = nearest[best, points]
    units = apart[best, against] / norms[best, against][:, None]
    return np.maximum(bounds[best, points], 0.0), units

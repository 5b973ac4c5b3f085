"""The paper's closed-form networks: what averaging and decoupling look like when they are exact."""

from __future__ import annotations

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet


def averaging(
    sample: Sample, *, positive_bias: float = 0.0, negative_bias: float = 0.0
) -> BinaryNet:
    r"""Return the feature-averaging network: one neuron a side, pointing to all of its centres.

    Paper: Definition 4.1 with zero biases; Appendix D.1 with biases.

    .. math:: f(x) = \mathrm{relu}(\langle\textstyle\sum_{J_+}\mu_j, x\rangle + b_+)
                   - \mathrm{relu}(\langle\sum_{J_-}\mu_j, x\rangle + b_-)

    which with zero biases is the paper's
    :math:`|J_+|\,\mathrm{relu}\langle\mu_+, x\rangle - |J_-|\,\mathrm{relu}\langle\mu_-, x\rangle`
    with the averages :math:`\mu_\pm`.

    Examples
    --------
    >>> from featavg import MultiCluster, averaging_index
    >>> train = MultiCluster(clusters=6, dim=60).sample(9, rng=np.random.default_rng(0))
    >>> round(averaging_index(averaging(train), train), 6)
    1.0
    """
    return BinaryNet(side_sums(sample), [positive_bias, negative_bias]).in_span_if(sample.in_span)


def decoupled(sample: Sample, *, bias: float | None = None) -> BinaryNet:
    r"""Return the feature-decoupling network: one neuron for each centre.

    Paper: Theorem D.3, with the bias :math:`-d/2` by default.

    .. math:: f(x) \propto \sum_{J_+}\mathrm{relu}(\langle\mu_j, x\rangle + b)
                         - \sum_{J_-}\mathrm{relu}(\langle\mu_j, x\rangle + b)

    Differs from the paper: m is the size of the larger side, not k; the smaller side is filled up
    with neurons that are zero everywhere, as in the paper.

    Examples
    --------
    >>> from featavg import MultiCluster, averaging_index
    >>> train = MultiCluster(clusters=6, dim=60).sample(9, rng=np.random.default_rng(0))
    >>> round(averaging_index(decoupled(train), train), 6)
    0.0
    """
    if bias is None:
        bias = -sample.law.dim / 2
    sides = (list(sample.law.positive_clusters), list(sample.law.negative_clusters))
    width = max(map(len, sides))
    weights = np.zeros((2, width, sample.centers.shape[1]), sample.centers.dtype)
    biases = np.zeros((2, width), sample.centers.dtype)
    for s, clusters in enumerate(sides):
        weights[s, : len(clusters)] = sample.centers[clusters]
        biases[s, : len(clusters)] = bias
    return BinaryNet(weights.reshape(2 * width, -1), biases.ravel()).in_span_if(sample.in_span)


def averaging_multiclass(sample: Sample) -> MultiClassNet:
    r"""Return a multi-class network that is accurate and yet averages.

    Paper: Proposition 4.8 and Theorem D.4: fine labels alone do not make a network robust, what
    gradient descent does with them does.

    .. math:: f_j(x) = \mathrm{relu}(\langle\mu_j + \textstyle\sum_{l \in J_s}\mu_l, x\rangle)
              \quad\text{for } j \in J_s

    Examples
    --------
    >>> from featavg import MultiCluster, clean_accuracy
    >>> train = MultiCluster(clusters=6, dim=600).sample(99, rng=np.random.default_rng(0))
    >>> clean_accuracy(averaging_multiclass(train), train.x, train.y)
    1.0
    """
    law = sample.law
    positive, negative = side_sums(sample)
    own_side = np.where(law.signs[:, None] == 1, positive, negative)
    weights = sample.centers + own_side
    return MultiClassNet(weights, law.clusters, law.positive_clusters).in_span_if(sample.in_span)


def side_sums(sample: Sample) -> FloatArray:
    """Return the sums of the positive and of the negative centres, shape (2, coordinates)."""
    signs = sample.law.signs
    return np.stack([sample.centers[signs == s].sum(axis=0) for s in (1, -1)])

"""A stable learning rate for given points."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh

from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import refuse_smooth
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss
from featavg.training.loss_check import check_curvature
from featavg.training.state import check_pair


def stable_learning_rate(net: TwoLayerNet, sample: Sample, loss: Loss | None = None) -> float:
    r"""Return a learning rate at which gradient descent is stable on these points.

    Paper: none, an extension; the paper chooses :math:`\eta` for points of norm :math:`\sqrt d`.

    While no activation changes, the outputs are linear in the weights, and the curvature of the
    mean loss is at most :math:`L = \|A\|^2 s^2 \lambda_{\max}(C K)/n` with the Gram matrix K of
    the points (+1 where biases are trained), s the largest slope of the activation and C diagonal
    with the largest curvature c of the loss of each point: 1/4 of the logistic loss (where
    :math:`\|A\|^2 = 2/m`), 1/2 of the cross-entropy (where it is :math:`1/h`), times the weight of
    the point where it has one. The rate is 1/L, half of the rate at which
    it would oscillate; for the paper's networks

    .. math:: 1/L = \frac{2 \cdot \text{width}}{\lambda_{\max}(K)/n}.

    Cost: n·d·min(n, d), once.

    Examples
    --------
    >>> from featavg import MultiClassNet, MultiCluster
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=4, dim=400).sample(100, rng=rng)
    >>> net = MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng)
    >>> round(stable_learning_rate(net, train), 4)
    0.0143
    """
    check_pair(net, sample)
    loss = net.default_loss if loss is None else loss
    slope = max(map(abs, refuse_smooth(net.activation, "stable_learning_rate")))
    if net.trains_second_layer:
        raise InputError(f"stable_learning_rate needs a fixed second layer; got {net!r}.")
    check_curvature(loss, net, sample)
    curvatures = loss.curvatures(len(sample))
    if curvatures is None:
        raise InputError(f"stable_learning_rate needs a loss of bounded curvature; got {loss!r}.")
    x = sample.x
    if net.has_biases:
        x = np.column_stack([x, np.ones(len(x), x.dtype)])
    c = float(curvatures.max())
    if (curvatures != c).any():
        x = x * np.sqrt(curvatures / c)[:, None].astype(x.dtype)
    small = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    last = len(small) - 1
    largest = float(eigvalsh(small.astype(np.float64), subset_by_index=[last, last])[0]) / len(x)
    if not largest > 0:
        raise InputError("sample must have a point that is not zero.")
    # each neuron has one output, so the rows of A are orthogonal
    squared_norm = float(np.square(net.second_layer, dtype=np.float64).sum(axis=1).max())
    return 1 / (c * squared_norm * slope**2) / largest

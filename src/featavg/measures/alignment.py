"""What a network has learned: its cosines with the centres, how much it averages, its accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, unit_rows
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.training.state import check_pair


def alignment(net: TwoLayerNet, centers: Sample | ArrayLike) -> FloatArray:
    r"""Return the cosine between each centre and each neuron, shape (clusters, neurons).

    Paper: the entries of Figure 2, before neurons are grouped. A weight of zero has the cosine 0.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The network.
    centers : Sample or array of shape (clusters, coordinates)
        The centres, or the sample whose centres they are.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 1.0], [0.0, 3.0]])
    >>> alignment(net, [[5.0, 0.0], [0.0, 5.0]]).round(3)
    array([[0.707, 0.   ],
           [0.707, 1.   ]])
    """
    if isinstance(centers, Sample):
        check_pair(net, centers)
        centers = centers.centers
    return cosines(checks.matrix("centers", centers, columns=net.dim), net.weights)


def equivalent_weights(net: TwoLayerNet, sample: Sample) -> FloatArray:
    r"""Return one weight for each cluster, so that networks of any width can be compared.

    Paper: Section 6.1. A multi-class network has the mean of its h neurons for each class. The m
    neurons of each side of a binary network are divided, in order and as equally as possible,
    among the clusters of that side, and each gets the mean of its share; neurons whose weight is
    zero are left out.

    Returns
    -------
    array of shape (clusters, coordinates)

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster
    >>> train = MultiCluster(clusters=4, dim=9).sample(5, rng=np.random.default_rng(0))
    >>> net = BinaryNet(weights=np.arange(72.0).reshape(8, 9))       # 4 + 4 neurons
    >>> equivalent_weights(net, train)[:, 0]                         # 2 for each cluster
    array([ 4.5, 22.5, 40.5, 58.5])
    """
    check_pair(net, sample)
    law = sample.law
    own = net.own_clusters(sample)
    weights = np.empty((law.clusters, net.dim), net.weights.dtype)
    for clusters in np.unique(own, axis=0):  # those of a side or label
        neurons = np.flatnonzero((own == clusters).all(axis=1))
        live = neurons[net.weights[neurons].any(axis=1)]
        count = int(clusters.sum())
        if len(live) < count > 1:
            raise InputError(
                f"width must be at least {count} for one weight for each cluster of a label; got "
                f"{len(live)} neurons that are not zero."
            )
        shares = np.array_split(live if len(live) else neurons, count)
        for j, share in zip(np.flatnonzero(clusters), shares, strict=True):
            weights[j] = net.weights[share].mean(axis=0)
    return weights


def equivalent_alignment(net: TwoLayerNet, sample: Sample) -> FloatArray:
    r"""Return the matrix of Figure 2: the cosine of centre i and equivalent weight j.

    Paper: Figure 2. Averaging shows as blocks of :math:`1/\sqrt{|J_s|}`, decoupling as a diagonal.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> from featavg.networks import reference
    >>> train = MultiCluster(clusters=4, dim=9).sample(5, rng=np.random.default_rng(0))
    >>> np.abs(equivalent_alignment(reference.decoupled(train), train)).round(6)
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.]])
    """
    weights = equivalent_weights(net, sample)
    return cosines(sample.centers, weights)


def averaging_index_per_neuron(net: TwoLayerNet, sample: Sample) -> FloatArray:
    r"""Return the averaging index of each neuron, shape (neurons,).

    Paper: none, an extension.

    With :math:`c_1, \dots, c_p` the cosines of a neuron and the centres of its own side, negative
    ones set to zero, the index is the normalised participation ratio

    .. math:: \Big(\frac{(\sum_j c_j^2)^2}{\sum_j c_j^4} - 1\Big) \Big/ (p - 1)

    1 if all centres of the side have the same cosine, 0 if a single one has it all. NaN where the
    question has no answer: a side of a single cluster, or a neuron with no positive cosine.

    It tells averaging from decoupling where centres are nearly orthogonal. Where they share a large
    common part, every weight has nearly the same cosine with all of them: with a pairwise cosine of
    0.75 a weight along a single one of five has an index of 0.92. Such centres need to be centred
    first (their mean subtracted), as `featavg run figure2-embeddings` does.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster
    >>> train = MultiCluster(clusters=5, dim=9).sample(5, rng=np.random.default_rng(0))
    >>> mu = train.centers                        # the first three are positive
    >>> net = BinaryNet([mu[:3].sum(axis=0), mu[0], mu[3] + mu[4], 2 * mu[3] + mu[4]])
    >>> averaging_index_per_neuron(net, train).round(2)
    array([1.  , 0.  , 1.  , 0.47])
    """
    check_pair(net, sample)
    own = sample.law.signs[:, None] == net.neuron_signs[None, :]
    return participation(alignment(net, sample.centers).astype(np.float64), own)


def participation(cosines: FloatArray, own: BoolArray) -> FloatArray:
    """Return the averaging index of each neuron from its cosines with centres.

    Both arrays have the shape (centres, neurons); `own` says which centres count for which neuron.
    See `averaging_index_per_neuron`.
    """
    squares = np.square(np.where(own, np.maximum(cosines, 0), 0))
    size = own.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = squares.sum(axis=0) ** 2 / np.square(squares).sum(axis=0)
        index: FloatArray = (ratio - 1) / (size - 1)
    index[size == 1] = np.nan
    return index


def averaging_index(net: TwoLayerNet, sample: Sample) -> float:
    r"""Return how much a network averages: 1 averaging, 0 decoupled.

    Paper: none, an extension. The mean of `averaging_index_per_neuron` over the neurons that have
    one; NaN if none has.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster
    >>> train = MultiCluster(clusters=4, dim=9).sample(5, rng=np.random.default_rng(0))
    >>> mu = train.centers
    >>> both = BinaryNet(weights=[mu[0] + mu[1], mu[2] + mu[3]])
    >>> one = BinaryNet(weights=[mu[0], mu[3]])
    >>> round(averaging_index(both, train), 6), round(averaging_index(one, train), 6)
    (1.0, 0.0)
    """
    index = averaging_index_per_neuron(net, sample)
    known = index[~np.isnan(index)]
    return float(known.mean()) if len(known) else float("nan")


def clean_accuracy(net: TwoLayerNet, x: ArrayLike, y: ArrayLike) -> float:
    """Return the share of points whose binary decision is right.

    Paper: Section 3.2, clean accuracy.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> clean_accuracy(net, [[2.0, 1.0], [1.0, 2.0], [3.0, 1.0], [0.0, 0.0]], [1, -1, -1, 1])
    0.5
    """
    labels = getattr(net, "labels", getattr(net, "classes_", (-1, 1)))
    if not np.isin(labels, (-1, 1)).all():
        names = ", ".join(map(str, np.asarray(labels).tolist()))
        raise InputError(f"net must have the labels -1 and 1, as y has; got a net with {names}.")
    predicted = net.predict(x)
    return float((predicted == checks.signs("y", y, length=len(predicted))).mean())


def cosines(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Return the cosines between two sets of vectors; 0 for vectors of zeros."""
    return unit_rows(rows) @ unit_rows(others).T

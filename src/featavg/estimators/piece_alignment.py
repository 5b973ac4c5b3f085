"""What affine pieces have learned: how much they average the features of a class."""

from __future__ import annotations

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, IntArray, unit_rows
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.estimators.pieces import PieceHead
from featavg.measures.alignment import participation


def deciding_pieces(head: PieceHead, x: FloatArray, classes: IntArray) -> IntArray:
    """Return the largest piece of its own class for each point, shape (points,)."""
    values = head.piece_values(x)
    own: IntArray = np.where(head.class_of == classes[:, None], values, -np.inf).argmax(axis=1)
    return own


def piece_averaging_index(head: PieceHead, sample: Sample) -> float:
    r"""Return how much the pieces of two classes average: 1 averaging, 0 decoupled.

    Paper: none, an extension; see `featavg.measures.alignment.averaging_index`.

    A vector that is added to all pieces changes no decision, so the cosines of a piece and the
    centres mean nothing. What counts is how a piece differs from those of the other class. For each
    point x of the sample let w(x) be its largest own piece (if the pieces are functions of learned
    features: the gradient of that piece at x), and

    .. math:: v(x) = w(x) - \mathrm{mean}_{x' \text{ of the other class}}\, w(x').

    The index is the normalised participation ratio of the cosines of v(x) and the centres of the
    own side, as for networks, averaged over the points. So pieces count by the points they decide,
    and pieces that decide none do not count. For pieces :math:`a\mu_j + b\sum_{i \ne j}\mu_i` of
    orthogonal centres of the own side, it is that of a neuron with these weights.

    Parameters
    ----------
    head : PieceHead
        Pieces of two classes, the second of which is the positive side, for the points as they are.
    sample : Sample
        The points that pieces are weighted by, and the centres.

    Returns
    -------
    float
        NaN if no piece has an index: sides of a single cluster, or no positive cosine.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> train = MultiCluster(clusters=4, dim=50).sample(100, rng=np.random.default_rng(0))
    >>> mu, classes = train.centers, np.array([0, 0, 1, 1])
    >>> sums = np.array([mu[2] + mu[3], mu[0] + mu[1]])[classes]
    >>> one = PieceHead(mu[[2, 3, 0, 1]] + 7.0, np.zeros(4), classes)    # 7.0 is added to all
    >>> averaged = piece_averaging_index(PieceHead(sums, np.zeros(4), classes), train)
    >>> round(averaged, 6), round(piece_averaging_index(one, train), 6)
    (1.0, 0.0)
    """
    if head.classes != 2:
        raise InputError(f"head must have two classes, one for each side; got {head.classes}.")
    checks.matrix("x", sample.x, columns=_dimension(head))
    positive = sample.y == 1
    pieces = deciding_pieces(head, sample.x, positive.astype(np.int64))
    along = _products(head, sample.x, pieces, unit_rows(sample.centers))
    for side in (positive, ~positive):
        if not side.any():
            raise InputError("sample must have points of both sides.")
    means = along[positive].mean(axis=0), along[~positive].mean(axis=0)
    along = along - np.where(positive[:, None], means[1], means[0])
    own = sample.law.signs[:, None] == sample.y[None, :]
    index = participation(along.T, own)
    known = index[~np.isnan(index)]
    return float(known.mean()) if len(known) else float("nan")


def _dimension(head: PieceHead) -> int:
    layer = head.weights if head.features is None else head.features.weights
    return int(layer.shape[1])


def _products(
    head: PieceHead, x: FloatArray, pieces: IntArray, directions: FloatArray
) -> FloatArray:
    """Return the products of the gradient of a piece at each point, and of directions."""
    if head.features is None:
        products: FloatArray = (head.weights @ directions.T)[pieces]
    else:
        gradients = head.features.unsort(head.features.rotate(x), head.weights[pieces])
        products = gradients @ (head.features.weights @ directions.T)
    return products

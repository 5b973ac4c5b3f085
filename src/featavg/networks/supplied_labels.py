"""The loss of labels that are handed in: for some points, wrong ones, or any number of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import BoolArray, IntArray, frozen
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.coarse_loss import CoarseCrossEntropy


class SuppliedLabels(CoarseCrossEntropy):
    r"""Cross-entropy on labels that are handed in, and on the side alone where a point has none.

    Paper: none, an extension. With the softmax p of the outputs, a point with the label c has the
    loss :math:`-\log p_c`, and a point without one, of the side s, the loss
    :math:`-\log \sum_{j \in J_s} p_j` of `CoarseCrossEntropy`. A label need not be the cluster of
    its point: it may be wrong, be shared by several clusters, or be one of several of a cluster.

    Parameters
    ----------
    labels : array of shape (points,)
        The output that each training point is labelled with; -1 where only its side is known.
    positive : int or sequence of int, optional
        How many outputs stand for the positive side (the first ones), or which; the first half by
        default. The network must have the same ones.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> train = MultiCluster(clusters=4, dim=50).sample(3, rng=np.random.default_rng(0))
    >>> train.cluster, train.y
    (array([2, 0, 2]), array([-1,  1, -1]))
    >>> loss = SuppliedLabels([2, -1, 0])              # right, the side alone, wrong
    >>> loss
    SuppliedLabels(2 of 3 points)
    >>> loss.targets(4, train).astype(int)
    array([[0, 1, 1],
           [0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """

    def __init__(
        self, labels: ArrayLike | Sequence[int], positive: int | Sequence[int] | None = None
    ) -> None:
        super().__init__()
        given = np.asarray(labels)
        if given.ndim != 1 or not given.size or not np.issubdtype(given.dtype, np.integer):
            raise InputError(
                "labels must hold a whole number for each training point; got "
                f"{given.dtype} of the shape {given.shape}."
            )
        self.labels, self._positive = frozen(given.astype(np.int64)), positive

    def __repr__(self) -> str:
        return f"SuppliedLabels({int((self.labels >= 0).sum())} of {len(self.labels)} points)"

    def output_signs(self, outputs: int, sample: Sample) -> IntArray:
        """Return the side that each output is trained to speak for."""
        return checks.signs_of_partition(self._positive, outputs)

    def targets(self, outputs: int, sample: Sample) -> BoolArray:
        """Return which outputs count as right for each point, shape (outputs, points)."""
        labels = self.labels
        if outputs == 1:
            raise InputError("SuppliedLabels needs a network of many outputs; got 1 output.")
        if len(labels) != len(sample):
            raise InputError(
                f"labels must hold one number for each of the {len(sample)} points of the sample; "
                f"got {len(labels)}."
            )
        if labels.min() < -1 or labels.max() >= outputs:
            raise InputError(
                f"labels must be from 0 to {outputs - 1}, the outputs of the network, or -1; got "
                f"{labels.min()} to {labels.max()}."
            )
        own_side: BoolArray = self.output_signs(outputs, sample)[:, None] == sample.y[None, :]
        labelled: BoolArray = np.arange(outputs)[:, None] == labels[None, :]
        return np.where(labels >= 0, labelled, own_side)

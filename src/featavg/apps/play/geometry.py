"""The training points in two dimensions: two clusters of each side."""

from __future__ import annotations

from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.drawing.views import rounded

_POINTS = 40  # the most that are drawn of a cluster


def two_of_each_side(sample: Sample) -> dict[str, Any]:
    r"""Return two clusters of each side, projected onto their centres.

    Paper: Definition 3.1.

    With the first two centres :math:`\mu_a, \mu_b` of the positive side and :math:`\mu_c, \mu_d` of
    the negative one, a point is drawn at :math:`\langle x, \mu_a - \mu_c \rangle / d` to the right
    and :math:`\langle x, \mu_b - \mu_d \rangle / d` up, so that orthogonal centres lie on the axes
    and the sides are divided by a diagonal. A side of one cluster has no second centre.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> law = MultiCluster(clusters=10, dim=400)
    >>> shown = two_of_each_side(law.sample(100, rng=np.random.default_rng(0)))
    >>> shown["clusters"], shown["centers"]
    ([0, 1, 5, 6], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    """
    law, centers = sample.law, sample.centers.astype(np.float64)
    sides = [np.flatnonzero(law.signs == sign)[:2] for sign in (1, -1)]
    clusters = np.concatenate(sides)
    directions = np.zeros((2, centers.shape[1]))
    for sign, side in zip((1, -1), sides, strict=True):
        directions[: len(side)] += sign * centers[side]
    directions /= law.dim

    def place(x: FloatArray) -> list[list[float]]:
        # adding 0 turns -0 into 0
        return [rounded(np.round(row, 3) + 0.0, 4) for row in x.astype(np.float64) @ directions.T]

    members = [np.flatnonzero(sample.cluster == j)[:_POINTS] for j in clusters]
    return {
        "clusters": clusters.tolist(),
        "centers": place(law.signal * centers[clusters]),
        "points": [place(sample.x[some]) for some in members],
    }

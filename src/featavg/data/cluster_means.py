"""Means of clusters of measured points, and the distances of points from them."""

from __future__ import annotations

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError


def cluster_means(x: FloatArray, cluster: IntArray) -> FloatArray:
    """Return the mean of the points of each cluster, shape (clusters, coordinates)."""
    sizes = np.bincount(cluster)
    if not sizes.all():
        raise InputError(
            "cluster must name each number up to its largest because a centre is the mean of the "
            f"points of its cluster; got no point in cluster {int(np.argmin(sizes))}."
        )
    return np.stack([x[cluster == j].mean(axis=0, dtype=np.float64) for j in range(len(sizes))])


def distances_from_means(x: FloatArray, cluster: IntArray, means: FloatArray) -> FloatArray:
    """Return the distance of each point from the mean of its cluster, shape (points,)."""
    distances = np.empty(len(x), x.dtype)
    for j, mean in enumerate(means):
        distances[cluster == j] = np.linalg.norm(x[cluster == j] - mean, axis=1)
    return distances

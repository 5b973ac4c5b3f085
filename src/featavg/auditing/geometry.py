"""The geometry of subclasses: means, cosines and sizes, and the averaging index of neurons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.measures.alignment import cosines, participation

NOT_ORTHOGONAL, UNBALANCED, OVERLAPPING = 0.3, 3.0, 0.8
"""Thresholds: the minimum of non-orthogonality and imbalance, the maximum of overlap."""


@dataclass(frozen=True, eq=False)
class Geometry:
    r"""The means, cosines and sizes of subclasses.

    Paper: Assumption 3.2 requires orthogonal features, Assumption 3.3 balanced ones.

    Attributes
    ----------
    means : array of shape (subclasses, coordinates)
        The mean of each subclass minus the mean of all points.
    cosines : array of shape (subclasses, subclasses)
        The cosines between these means.
    class_of : array of shape (subclasses,)
        The class of each subclass, from 0.
    sizes : array of shape (subclasses,)
        The number of points of each subclass.
    """

    means: FloatArray
    cosines: FloatArray
    class_of: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, x: FloatArray, labels: IntArray, class_of: IntArray) -> Geometry:
        """Return the geometry of centred points, given the subclass of each."""
        means = np.stack([x[labels == j].mean(axis=0) for j in range(len(class_of))])
        means = means.astype(np.float64)
        sizes = np.bincount(labels, minlength=len(class_of))
        return cls(means, cosines(means, means), class_of, sizes)

    @property
    def orthogonal_cosine(self) -> float:
        """The cosine that k orthogonal means of equal norm have once centred: -1/(k-1)."""
        return -1 / (len(self.class_of) - 1)

    @property
    def cosine_deviation(self) -> float:
        """The mean distance, over pairs within a class, of cosines from `orthogonal_cosine`.

        It is between 0 and 2, and 0 if no class has two subclasses.
        """
        same = self.class_of[:, None] == self.class_of[None, :]
        pairs = same & ~np.eye(len(self.class_of), dtype=bool)
        if not pairs.any():
            return 0.0
        return float(np.abs(self.cosines[pairs] - self.orthogonal_cosine).mean())

    @property
    def decoupled_index(self) -> float:
        """The averaging index of neurons that are each equal to the mean of one subclass.

        It is 0 for orthogonal means. If the means of a class have similar directions it is near 1,
        and the index cannot distinguish networks that average from others.
        """
        return self.averaging_index(self.means, self.class_of)

    @property
    def imbalance(self) -> float:
        """The size of the largest subclass over that of the smallest, within the worst class."""
        sizes = [self.sizes[self.class_of == c] for c in np.unique(self.class_of)]
        return float(max(own.max() / max(1, own.min()) for own in sizes))

    def averaging_index(self, weights: FloatArray, neuron_class: IntArray) -> float:
        """Return the mean over neurons of `featavg.averaging_index_per_neuron`, for any classes.

        NaN if no class has two subclasses. A neuron is compared with the means of the subclasses of
        its own class.
        """
        index = participation(
            cosines(self.means, weights), self.class_of[:, None] == neuron_class[None, :]
        )
        known = index[~np.isnan(index)]
        return float(known.mean()) if len(known) else float("nan")

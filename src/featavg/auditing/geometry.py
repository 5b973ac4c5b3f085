"""The geometry of subclasses, and the averaging index of neurons with respect to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.measures.alignment import participation

NOT_ORTHOGONAL, UNBALANCED, OVERLAPPING = 0.3, 3.0, 0.8
"""From these on means are not orthogonal and sizes unbalanced; below, subclasses overlap."""


@dataclass(frozen=True, eq=False)
class Geometry:
    r"""The means of subclasses and the cosines between them.

    Paper: Assumption 3.2 asks for orthogonal features, Assumption 3.3 for balanced ones.

    Attributes
    ----------
    means : array of shape (subclasses, coordinates)
        The mean of each subclass, less the mean of all points.
    cosines : array of shape (subclasses, subclasses)
        Between these means.
    class_of : array of shape (subclasses,)
        The class of each, from 0 on.
    sizes : array of shape (subclasses,)
        The number of points of each.
    """

    means: FloatArray
    cosines: FloatArray
    class_of: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, x: FloatArray, labels: IntArray, class_of: IntArray) -> Geometry:
        """Measure centred points by the subclass of each."""
        means = np.stack([x[labels == j].mean(axis=0) for j in range(len(class_of))])
        return cls(
            means.astype(np.float64),
            cosines(means, means),
            class_of,
            np.bincount(labels, minlength=len(class_of)),
        )

    @property
    def orthogonal_cosine(self) -> float:
        """The cosine that k orthogonal means of equal norm have once centred: -1/(k-1)."""
        return -1 / (len(self.class_of) - 1)

    @property
    def cosine_deviation(self) -> float:
        """How far cosines within a class are from `orthogonal_cosine`, in the mean over pairs.

        Not a cosine: it is from 0 to 2. 0 where no class has two subclasses.
        """
        same = self.class_of[:, None] == self.class_of[None, :]
        pairs = same & ~np.eye(len(self.class_of), dtype=bool)
        if not pairs.any():
            return 0.0
        return float(np.abs(self.cosines[pairs] - self.orthogonal_cosine).mean())

    @property
    def decoupled_index(self) -> float:
        """The averaging index of neurons that each are the mean of one subclass.

        0 for orthogonal means. Where the means of a class point the same way it is near 1, and
        then the index cannot tell networks that average from others.
        """
        return self.averaging_index(self.means, self.class_of)

    @property
    def imbalance(self) -> float:
        """The largest subclass over the smallest, both in points, within the worst class."""
        ratios = [
            self.sizes[self.class_of == c].max() / max(1, self.sizes[self.class_of == c].min())
            for c in np.unique(self.class_of)
        ]
        return float(max(ratios))

    def averaging_index(self, weights: FloatArray, neuron_class: IntArray) -> float:
        """Return the mean over neurons of `featavg.averaging_index_per_neuron`, for any classes.

        NaN if no class has two subclasses. A neuron is compared with the means of the subclasses of
        the class that it speaks for.
        """
        index = participation(
            cosines(self.means, weights), self.class_of[:, None] == neuron_class[None, :]
        )
        known = index[~np.isnan(index)]
        return float(known.mean()) if len(known) else float("nan")


def cosines(rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the cosines between two sets of vectors; 0 for a vector that is zero."""
    a, b = (_unit(v.astype(np.float64)) for v in (rows, columns))
    return a @ b.T


def _unit(vectors: FloatArray) -> FloatArray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.where(norms > 0, vectors / np.where(norms > 0, norms, 1), 0)

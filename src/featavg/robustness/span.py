"""An attack on a two-layer network has as many dimensions as the network has neurons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg._checks import FloatArray
from featavg.networks.base import TwoLayerNet


@dataclass(frozen=True, eq=False, repr=False)
class WeightSpan:
    r"""A network seen from the span of its own weights.

    A perturbation :math:`\rho` changes the pre-activations by :math:`W\rho`, so only its part in
    the span of the rows of W matters. With an orthonormal basis Q of that span, :math:`\rho = Qu`
    changes them by :math:`(WQ)u` and has the norm :math:`\|u\|`.

    Attributes
    ----------
    basis : array of shape (coordinates, span)
        Q. The span has as many dimensions as there are neurons, or coordinates if they are fewer.
    weights : array of shape (neurons, span)
        W Q.
    """

    basis: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, net: TwoLayerNet) -> WeightSpan:
        """Return the span of a network's weights."""
        W = net.weights.astype(np.float64)
        largest = np.abs(W).max()
        basis, triangle = np.linalg.qr((W / largest if largest > 0 else W).T)
        return cls(basis=basis, weights=largest * triangle.T)

    def embed(self, coordinates: FloatArray) -> FloatArray:
        """Return the perturbations Qu, shape (points, coordinates), of u, shape (span, points)."""
        return (self.basis @ coordinates).T

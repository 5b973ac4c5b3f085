"""Theory of unequal clusters: what the networks learn of each, and how robust that makes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, roots_hermitenorm

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster

_NODES, _WEIGHTS = roots_hermitenorm(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class UnequalClusters:
    r"""Clusters of any sizes :math:`n_j` and norms :math:`\nu_j\sqrt d`, with orthogonal centres.

    Paper: none, an extension. The page "Who pays for unequal clusters" has the derivation.

    A network that has learned :math:`w = \sum_j \lambda_j \bar x_j / (\alpha \nu_j^2 d)`, with the
    means :math:`\bar x_j` of its training points, has the output :math:`\alpha\lambda_j` at the
    centre of cluster j and :math:`\alpha\lambda_j h_j` at its training points, which have a part in
    the mean: :math:`h_j = 1 + \sigma^2/(\alpha^2\nu_j^2 n_j)`. The part of cluster j in w has the
    squared norm :math:`\lambda_j^2 h_j/(\nu_j^2 d)`.

    Attributes
    ----------
    counts, norms : arrays of shape (clusters,)
        :math:`n_j` and :math:`\nu_j`.
    signs : array of shape (clusters,)
        The side of each cluster.
    dim : int
        :math:`d`.
    signal, noise : float
        :math:`\alpha` and :math:`\sigma`.
    """

    counts: FloatArray
    norms: FloatArray
    signs: IntArray
    dim: int
    signal: float
    noise: float

    @classmethod
    def of(cls, law: MultiCluster, sample: Sample) -> UnequalClusters:
        """Return the clusters of a sample."""
        counts = np.bincount(sample.cluster, minlength=law.clusters).astype(np.float64)
        norms = np.array(law.norms or [1.0] * law.clusters)
        return cls(counts, norms, law.signs, law.dim, law.signal, law.noise)

    @property
    def own_noise(self) -> FloatArray:
        """h, by how much the outputs of training points exceed those of the centres."""
        shift = np.square(self.signal * self.norms)
        gains: FloatArray = 1 + self.noise**2 / (shift * self.counts)
        return gains

    def coefficients(
        self, time: float, rivals: int, weights: FloatArray | float = 1.0
    ) -> FloatArray:
        r"""Return :math:`\lambda_j` after gradient flow on the cross-entropy.

        The output f of the own training points grows by the residual
        :math:`q/(e^f + q)` while the q other outputs are 0, so with
        :math:`s_j = \omega_j \frac{n_j}{n} \alpha^2\nu_j^2 d\, h_j`

        .. math:: e^{f_j} - 1 + q f_j = q s_j t, \qquad \alpha\lambda_j = f_j/h_j.

        Parameters
        ----------
        time : float
            t, the learning rate times the steps, over the width of a mean of neurons.
        rivals : int
            q: 1 for coarse labels, k - 1 for fine ones.
        weights : array of shape (clusters,), optional
            :math:`\omega_j`, the weight of the points of each cluster in the loss.
        """
        shift = np.square(self.signal * self.norms) * self.dim
        speed = weights * self.counts / self.counts.sum() * shift * self.own_noise
        return _grown(speed * time, rivals) / (self.own_noise * self.signal)

    def coarse_radii(self, coefficients: FloatArray) -> FloatArray:
        r"""Return the median radius of each cluster for averaged features.

        .. math:: r_j = \frac{\alpha\lambda_j\sqrt d}{\sqrt{\sum_i \lambda_i^2 h_i/\nu_i^2}}
        """
        size = np.sqrt((np.square(coefficients / self.norms) * self.own_noise).sum() / self.dim)
        radii: FloatArray = self.signal * coefficients / size
        return radii

    def fine_radii(self, coefficients: FloatArray) -> FloatArray:
        r"""Return the median radius of each cluster for decoupled features, argmax readout.

        Without noise it is the least of

        .. math:: r_{jl} = \frac{\alpha\lambda_j\sqrt d}
                                {\sqrt{\lambda_j^2 h_j/\nu_j^2 + \lambda_l^2 h_l/\nu_l^2}}

        over opposing clusters l. The noise of a fresh point shifts each of them by
        :math:`\sigma(N_j g_j - N_l g_l)/\sqrt{N_j^2 + N_l^2}` with independent normal g and the
        norms N of the weights; the median of the least is found from its distribution.
        """
        sizes = coefficients / self.norms * np.sqrt(self.own_noise / self.dim)
        return np.array(
            [
                self._median_least(
                    self.signal * coefficients[j], sizes[j], sizes[self.signs != self.signs[j]]
                )
                for j in range(len(coefficients))
            ]
        )

    def _median_least(self, output: float, own: float, others: FloatArray) -> float:
        distances = np.sqrt(own**2 + np.square(others))
        least = float((output / distances).min())
        if self.noise == 0:
            return least
        outputs = output + self.noise * own * _NODES[:, None]

        def excess(radius: float) -> float:
            """Return the probability that all distances are larger, minus 1/2."""
            larger = ndtr((outputs - radius * distances) / (self.noise * others))
            return float(_WEIGHTS @ larger.prod(axis=1)) - 0.5

        reach = 5 * self.noise
        return float(brentq(excess, least - reach, least + reach))


def _grown(growth: FloatArray, rivals: int) -> FloatArray:
    r"""Return the root of :math:`e^f - 1 + q f = q g`, by Newton's method from above."""
    outputs = np.log1p(rivals * growth)
    for _ in range(60):
        excess = np.expm1(outputs) + rivals * (outputs - growth)
        outputs = outputs - excess / (np.exp(outputs) + rivals)
    return outputs

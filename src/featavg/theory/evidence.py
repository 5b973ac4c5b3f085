"""What claims are checked on: trained networks, and everything the proofs speak of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from featavg.arrays import BoolArray, FloatArray
from featavg.data.law import Sample
from featavg.networks.multiclass import MultiClassNet
from featavg.training.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Learned:
    r"""One network along its training, in the symbols of the proofs.

    All arrays begin with the recorded time, the first of which is the start; neurons are indexed
    r, centres j, training points i. `own` is what a neuron is to learn: for the 2-class network the
    clusters of its side, for the k-class network its own.
    """

    run: Trajectory

    @property
    def sample(self) -> Sample:
        """The training points."""
        return self.run.sample

    @cached_property
    def own_centers(self) -> BoolArray:
        """Which centres each neuron is to learn, shape (neurons, clusters)."""
        net, law = self.run.net, self.sample.law
        if isinstance(net, MultiClassNet):
            return np.repeat(np.eye(net.classes, dtype=bool), net.width, axis=0)
        return net.neuron_signs[:, None] == law.signs[None, :]

    @cached_property
    def own_points(self) -> BoolArray:
        """Which training points each neuron is to be active on, shape (neurons, points)."""
        return self.own_centers[:, self.sample.cluster]

    @property
    def width(self) -> int:
        """The number m or h of neurons that speak for each label."""
        return int(self.own_centers[:, 0].sum())

    @property
    def log_steps(self) -> FloatArray:
        """The logarithms of the recorded steps t."""
        return self.run.log_steps

    @cached_property
    def feature(self) -> FloatArray:
        r"""The coefficients :math:`\lambda_{r,j}`, shape (times, neurons, clusters)."""
        return self.run.feature_coefficients.astype(np.float64)

    @cached_property
    def noise(self) -> FloatArray:
        r"""The coefficients :math:`\sigma_{r,i}`, shape (times, neurons, points)."""
        return self.run.noise_coefficients.astype(np.float64)

    @cached_property
    def weights(self) -> FloatArray:
        """The weights, shape (times, neurons, coordinates)."""
        dual, start = self.run.dual, self.run.initial_net.weights
        flat = dual.reshape(-1, dual.shape[-1]) @ self.sample.x
        return start + flat.reshape(*dual.shape[:2], -1)

    @cached_property
    def biases(self) -> FloatArray:
        """The biases, shape (times, neurons)."""
        grown = self.run.dual.sum(axis=2, dtype=np.float64) * self.run.initial_net.has_biases
        return self.run.initial_net.biases + grown

    @cached_property
    def preactivations(self) -> FloatArray:
        """The pre-activations of the training points, shape (times, neurons, points)."""
        weights = self.weights
        flat = weights.reshape(-1, weights.shape[-1]) @ self.sample.x.T
        return flat.reshape(*weights.shape[:2], -1) + self.biases[:, :, None]

    @cached_property
    def center_products(self) -> FloatArray:
        """The inner products of weights and centres, shape (times, neurons, clusters)."""
        return (self.weights @ self.sample.centers.T).astype(np.float64)

    @cached_property
    def noise_products(self) -> FloatArray:
        """The inner products of weights and training noise, shape (times, neurons, points)."""
        law = self.sample.law
        along = law.signal * self.center_products[:, :, self.sample.cluster]
        return (self.preactivations - self.biases[:, :, None] - along) / law.noise

    @cached_property
    def outputs(self) -> FloatArray:
        """The outputs on the training points, shape (times, outputs, points)."""
        layer = self.run.net.second_layer.astype(np.float64)
        return layer @ np.maximum(self.preactivations, 0)

    @cached_property
    def margin(self) -> FloatArray:
        """Q: y f(x) of the 2-class network, f of the own class of the other; (times, points)."""
        sample, F = self.sample, self.outputs
        if isinstance(self.run.net, MultiClassNet):
            return F[:, sample.cluster, np.arange(len(sample))]
        return sample.y * F[:, 0]

    @cached_property
    def estimated_margin(self) -> FloatArray:
        r"""The margin from coefficients, the mean of :math:`\lambda + \sigma` over own neurons."""
        total = self.feature[:, :, self.sample.cluster] + self.noise
        return np.einsum("tri,ri->ti", total, self.own_points / self.width)

    @cached_property
    def log_pull(self) -> FloatArray:
        """The logarithm of minus the loss derivative of the own label, shape (times, points)."""
        net, targets = self.run.net, self.run.net.targets(self.sample)
        return np.stack([net.log_residuals(F, targets) for F in self.outputs])

    @property
    def own_feature(self) -> FloatArray:
        """The own feature coefficients, shape (times, entries)."""
        return self.feature[:, self.own_centers]

    @property
    def other_feature(self) -> FloatArray:
        """The feature coefficients of what a neuron is not to learn, shape (times, entries)."""
        return self.feature[:, ~self.own_centers]

    @property
    def own_noise(self) -> FloatArray:
        """The own noise coefficients, shape (times, entries)."""
        return self.noise[:, self.own_points]

    @property
    def other_noise(self) -> FloatArray:
        """The noise coefficients of points that are not own, shape (times, entries)."""
        return self.noise[:, ~self.own_points]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Both networks, fresh points, and the hyper-parameters they were trained with.

    Attributes
    ----------
    coarse, fine : Learned
        The 2-class and the k-class network.
    test : Sample
        Fresh points.
    weight_scale, bias_scale : float
        The standard deviations of the initial weights and biases.
    radius_samples : int
        How many of the fresh points exact radii are computed for.
    """

    coarse: Learned
    fine: Learned
    test: Sample
    weight_scale: float
    bias_scale: float
    radius_samples: int = 100

    @property
    def train(self) -> Sample:
        """The training points."""
        return self.coarse.sample

    @property
    def k(self) -> int:
        """The number of clusters."""
        return self.train.law.clusters

    @property
    def d(self) -> int:
        """The dimension."""
        return self.train.law.dim

    @property
    def n(self) -> int:
        """The number of training points."""
        return len(self.train)

    @property
    def m(self) -> int:
        """The number of positive neurons of the 2-class network."""
        return len(self.coarse.run.net.weights) // 2

    @property
    def h(self) -> int:
        """The number of neurons of each class of the k-class network."""
        return self.fine.width

    @property
    def eta(self) -> float:
        """The learning rate."""
        return self.coarse.run.learning_rate

    @property
    def balance(self) -> float:
        """The smallest c of Assumption 3.3, at least 1."""
        law = self.train.law
        sizes = len(law.positive_clusters), len(law.negative_clusters)
        return max(sizes) / min(sizes)

    @property
    def cross(self) -> float:
        """The bound Δ = 4 √d ln d on inner products of what is independent."""
        return 4 * np.sqrt(self.d) * np.log(self.d)

    @property
    def epsilon(self) -> float:
        """The ε of Lemma B.7; NaN where its first term has no meaning."""
        size, log_size = np.sqrt(self.n / self.k), np.log(self.n / self.k)
        if size <= log_size:
            return np.nan
        return float(
            max(
                2 * log_size / (size - log_size),
                self.k**2 * self.cross / self.d,
                self.k**2 / self.n,
            )
        )

    @property
    def rounding(self) -> float:
        """How far an identity may be off: some hundred units in the last place."""
        return float(1e3 * np.sqrt(self.n) * np.finfo(self.train.x.dtype).eps)

    @property
    def vanishing(self) -> float:
        """Exp(-ln² d), which is exp(-Ω(log² d)) with the constant 1."""
        return float(np.exp(-(np.log(self.d) ** 2)))

    @cached_property
    def training_noise_products(self) -> FloatArray:
        """The inner products of training noise and centres, shape (points, clusters)."""
        law, train = self.train.law, self.train
        centers = train.centers.astype(np.float64)
        return (train.x @ train.centers.T - law.signal * (centers @ centers.T)[train.cluster]) / (
            law.noise
        )

    @property
    def averaged(self) -> FloatArray:
        """The sum of the positive centres minus that of the negative ones."""
        return self.train.law.signs @ self.train.centers

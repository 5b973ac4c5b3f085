"""The evidence for the claims: trained networks, and the quantities that the proofs speak of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from featavg.arrays import BoolArray, FloatArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import ReLU
from featavg.networks.base import TwoLayerNet
from featavg.training.rule import GradientDescent
from featavg.training.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class ProofQuantities:
    r"""The quantities of the proofs, along the training of one network.

    The first axis of every array over time is the recorded time, beginning with the start of
    training; neurons are indexed r, centres j, training points i. The own clusters of a neuron are
    those that it is to learn: the clusters of its side for the 2-class network, the cluster of its
    class for the k-class network.

    Attributes
    ----------
    run : Trajectory
        The training run.
    """

    run: Trajectory

    def __post_init__(self) -> None:
        # the assumptions of the paper are not checked here: these are claims
        run, law, net = self.run, self.run.sample.law, self.run.net
        if not law.follows_definition:
            raise InputError(f"the proofs need the law of Definition 3.1; got {law!r}.")
        if law.noise == 0:
            raise InputError("the proofs divide by the noise, which must be positive; got noise=0.")
        if net.activation != ReLU() or net.trains_second_layer:
            raise InputError(f"the proofs need ReLUs and a fixed second layer; got {net!r}.")
        if run.rule != GradientDescent():
            raise InputError(f"the proofs need gradient descent (equation 1); got {run.rule!r}.")
        if run.sample.grouping is not None and not net.has_one_output:
            raise InputError(
                "the proofs need a fine label for each cluster; got the label groups "
                f"{run.sample.grouping}."
            )
        if run.loss_function != net.default_loss:
            raise InputError(f"the proofs need {net.default_loss!r}; got {run.loss_function!r}.")

    @property
    def sample(self) -> Sample:
        """The training points."""
        return self.run.sample

    @cached_property
    def members(self) -> FloatArray:
        """1 where a training point belongs to a cluster, else 0, shape (points, clusters)."""
        return np.eye(self.sample.law.clusters)[self.sample.cluster]

    @cached_property
    def own_centers(self) -> BoolArray:
        """The centres that each neuron is to learn, shape (neurons, clusters)."""
        return self.run.net.own_clusters(self.sample)

    @cached_property
    def own_points(self) -> BoolArray:
        """The training points that each neuron is to be active on, shape (neurons, points)."""
        return self.own_centers[:, self.sample.cluster]

    @property
    def width(self) -> int:
        """The number of neurons for each label: m of the 2-class, h of the k-class network."""
        return int(self.own_centers[:, 0].sum())

    @cached_property
    def feature(self) -> FloatArray:
        r"""The coefficients :math:`\lambda_{r,j}`, shape (times, neurons, clusters)."""
        return self.run.feature_coefficients.astype(np.float64)

    @cached_property
    def noise(self) -> FloatArray:
        r"""The coefficients :math:`\sigma_{r,i}`, shape (times, neurons, points)."""
        return self.run.noise_coefficients.astype(np.float64)

    @cached_property
    def squared_noise_norms(self) -> FloatArray:
        r"""The :math:`\|\xi_i\|^2`, shape (points,)."""
        return np.square(self.sample.noise_norms, dtype=np.float64)

    @cached_property
    def weights(self) -> FloatArray:
        """The weights, shape (times, neurons, coordinates)."""
        C, start = self.run.point_coefficients, self.run.initial_net.weights
        flat = C.reshape(-1, C.shape[-1]) @ self.sample.x
        return start + flat.reshape(*C.shape[:2], -1)

    @cached_property
    def biases(self) -> FloatArray:
        """The biases, shape (times, neurons)."""
        return self.run.biases.astype(np.float64)

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

    @property
    def point_products(self) -> FloatArray:
        """The inner products of weights and training points, shape (times, neurons, points)."""
        return self.preactivations - self.biases[:, :, None]

    @property
    def estimated_products(self) -> FloatArray:
        r"""The estimates :math:`\lambda + \sigma` of the same, shape (times, neurons, points)."""
        return self.feature[:, :, self.sample.cluster] + self.noise

    @cached_property
    def noise_products(self) -> FloatArray:
        """The inner products of weights and training noise, shape (times, neurons, points)."""
        law = self.sample.law
        along = law.signal * self.center_products[:, :, self.sample.cluster]
        return (self.point_products - along) / law.noise

    @cached_property
    def outputs(self) -> FloatArray:
        """The outputs on the training points, shape (times, outputs, points)."""
        return self.run.net.outputs_at(self.preactivations)

    @cached_property
    def margin(self) -> FloatArray:
        """The margin q, shape (times, points): y f(x), or the output of the point's own class."""
        # y, or 1 for the own class and 0 for the others: the signs of the own neurons
        signs = np.sign(self.run.net.second_layer) @ self.own_points / self.width
        return np.einsum("toi,oi->ti", self.outputs, signs)

    @cached_property
    def estimated_margin(self) -> FloatArray:
        r"""The margin from coefficients, the mean of :math:`\lambda + \sigma` over own neurons."""
        return np.einsum("tri,ri->ti", self.estimated_products, self.own_points / self.width)

    @cached_property
    def log_pull(self) -> FloatArray:
        """The logarithm of each point's pull: minus the derivative of its loss by its own output.

        Shape (times, points).
        """
        loss = self.run.loss_function
        targets = loss.targets(self.run.net.output_count, self.sample)
        return np.stack([loss.log_pulls(F, targets) for F in self.outputs])

    @property
    def own_feature(self) -> FloatArray:
        """The own feature coefficients, shape (times, entries)."""
        return self.feature[:, self.own_centers]

    @property
    def own_noise(self) -> FloatArray:
        """The own noise coefficients, shape (times, entries)."""
        return self.noise[:, self.own_points]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Both networks, fresh points, and the hyper-parameters they were trained with.

    Attributes
    ----------
    coarse, fine : ProofQuantities
        The 2-class and the k-class network.
    test : Sample
        Fresh points.
    weight_scale, bias_scale : float
        The standard deviations of the initial weights and biases.
    radius_samples : int
        The number of fresh points whose exact radii are computed.
    grouped : Trajectory, optional
        A network that was trained on label groups, for the claims of our own.
    """

    coarse: ProofQuantities
    fine: ProofQuantities
    test: Sample
    weight_scale: float
    bias_scale: float
    radius_samples: int = 100
    grouped: Trajectory | None = None

    def __post_init__(self) -> None:
        coarse = self.coarse.run.net
        if not coarse.has_one_output:
            raise InputError(f"coarse must be a network of one output; got {coarse!r}.")
        if self.fine_net.has_biases:
            raise InputError("fine must have no biases (Section 4.2); got a network with biases.")

    @property
    def fine_net(self) -> TwoLayerNet:
        """The trained k-class network, whose probabilities decide as in Section 4.2."""
        return self.fine.run.net.with_readout("probability")

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
        return self.coarse.width

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
        """The bound Δ = 4 √d ln d on inner products of independent vectors."""
        return 4 * np.sqrt(self.d) * np.log(self.d)

    @property
    def epsilon(self) -> float:
        """The ε of Lemma B.7; NaN where √(n/k) is not above ln(n/k), as its first term needs."""
        size, log_size = np.sqrt(self.n / self.k), np.log(self.n / self.k)
        if size <= log_size:
            return np.nan
        first = 2 * log_size / (size - log_size)
        return float(max(first, self.k**2 * self.cross / self.d, self.k**2 / self.n))

    @property
    def rounding(self) -> float:
        """The rounding error allowed to an identity: some hundred units in the last place."""
        return float(1e3 * np.sqrt(self.n) * np.finfo(self.train.x.dtype).eps)

    @property
    def vanishing(self) -> float:
        """The share exp(-ln² d) of points, which is exp(-Ω(log² d)) with the constant 1."""
        return float(np.exp(-(np.log(self.d) ** 2)))

    @property
    def center_gram(self) -> FloatArray:
        """The inner products of the centres, shape (clusters, clusters)."""
        centers = self.train.centers.astype(np.float64)
        return centers @ centers.T

    @cached_property
    def training_noise_products(self) -> FloatArray:
        """The inner products of training noise and centres, shape (points, clusters)."""
        law, train = self.train.law, self.train
        along = law.signal * self.center_gram[train.cluster]
        return (train.x @ train.centers.T - along) / law.noise

    @property
    def averaged(self) -> FloatArray:
        """The sum of the positive centres minus that of the negative ones."""
        return self.train.law.signs @ self.train.centers

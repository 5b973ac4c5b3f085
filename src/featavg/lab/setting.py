"""The paper's synthetic setting, shared by its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from featavg.arrays import BoolArray
from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.data.span import SpanFrame
from featavg.drawing.views import Mark
from featavg.errors import InputError
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet
from featavg.training.descent import descend
from featavg.training.rule import GradientDescent, Rule
from featavg.training.trajectory import Trajectory

Learner = TypeVar("Learner", TwoLayerNet, Trajectory)


@dataclass(frozen=True, kw_only=True)
class CoarseSetting(CheckedParameters):
    """The hyper-parameters of Section 6.1 for the 2-class network alone."""

    clusters: int = parameter(10, "k, the number of clusters", least=2)
    positive: int | None = parameter(
        None, "how many clusters are positive; by default half of them", checked=False
    )
    dim: int = parameter(3072, "d, the dimension")
    signal: float = parameter(1.0, "alpha, the factor of the centres")
    noise: float = parameter(1.0, "sigma, the standard deviation of the noise", least=0)
    cosine: float = parameter(0.0, "the cosine between any two centres", checked=False)
    samples: int = parameter(1000, "n, the number of training points")
    test_samples: int = parameter(1000, "the number of test points")
    width: int = parameter(5, "m, positive (and negative) neurons of the 2-class network")
    learning_rate: float = parameter(0.001, "eta")
    steps: int = parameter(100, "T, the number of gradient steps")
    weight_scale: float = parameter(1e-5, "sigma_w, the scale of the initial weights", least=0)
    bias_scale: float = parameter(1e-5, "sigma_b, the scale of the initial biases", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        law = self.law  # refuses what cannot be drawn
        object.__setattr__(self, "cosine", law.cosine)

    @property
    def law(self) -> MultiCluster:
        """The data law."""
        return MultiCluster(
            clusters=self.clusters,
            dim=self.dim,
            positive=self.positive,
            signal=self.signal,
            noise=self.noise,
            cosine=self.cosine,
        )

    @property
    def rule(self) -> Rule:
        """The rule of training: gradient descent."""
        return GradientDescent()

    @property
    def predicted(self) -> tuple[float, float]:
        """The median radii that theory predicts for coarse and fine labels.

        Centres with the pairwise cosine c are nearer to each other by the factor sqrt(1 - c).
        """
        distance = self.signal * np.sqrt(self.dim * (1 - self.cosine))
        return distance / np.sqrt(self.clusters), distance / np.sqrt(2)

    @property
    def formulas(self) -> tuple[str, str]:
        """The predictions as formulas."""
        plain = self.signal == 1 and self.cosine == 0
        return ("√(d/k)", "√(d/2)") if plain else ("α√(d(1-c)/k)", "α√(d(1-c)/2)")

    def marks(self, reach: float) -> list[Mark]:
        """Return the predictions up to a radius, to be drawn into a panel."""
        radii = zip(self.formulas, self.predicted, strict=True)
        return [Mark(f"{text} = {radius:.1f}", radius) for text, radius in radii if radius <= reach]

    def draw(self, seed: int, **sampling: Any) -> tuple[Sample, Sample]:
        """Return the training points and the fresh points of a seed.

        `sampling` are further arguments of `MultiCluster.sample`, such as ``dtype``.
        """
        data = _streams(seed)[0]
        train = self.law.sample(self.samples, rng=data, **sampling)
        return train, train.fresh(self.test_samples, rng=data)

    def train_coarse(self, train: Sample, seed: int, *, progress: bool = False) -> Trajectory:
        """Train the 2-class network of a seed on points that were drawn already."""
        return self._descend(self._binary(train, _streams(seed)[1]), train, progress=progress)

    def _binary(self, train: Sample, rng: np.random.Generator) -> TwoLayerNet:
        return BinaryNet.init(
            train,
            width=self.width,
            weight_scale=self.weight_scale,
            bias_scale=self.bias_scale,
            rng=rng,
        )

    def _descend(
        self, net: TwoLayerNet, train: Sample, *, record: int = 2, progress: bool = False
    ) -> Trajectory:
        return descend(
            net,
            train,
            learning_rate=self.learning_rate,
            steps=self.steps,
            rule=self.rule,
            record=record,
            progress=progress,
        )


@dataclass(frozen=True, kw_only=True)
class SyntheticSetting(CoarseSetting):
    """The hyper-parameters of Section 6.1, for both networks."""

    fine_width: int = parameter(1, "h, neurons for each class of the k-class network")

    @property
    def neurons(self) -> tuple[int, int]:
        """The number of neurons of the 2-class and of the k-class network."""
        return 2 * self.width, self.clusters * self.fine_width

    @property
    def fewest_coordinates(self) -> int:
        """The fewest coordinates that the points and both networks can be drawn in.

        Those of the span if there are fewer of them than dimensions.
        """
        span = SpanFrame(self.dim, self.clusters, self.samples, sum(self.neurons))
        return min(span.coordinates, self.dim)

    def memory(self, dtype: str = "float64") -> int:
        """Return how many bytes the points take in the fewest coordinates, with a Gram matrix.

        An upper bound: gradient descent needs the Gram matrix for dual steps alone, and those are
        never taken if the primal ones need fewer multiplications.
        """
        n, d = self.samples, self.fewest_coordinates
        return n * (d + (n if n < 2 * d else 0)) * np.dtype(dtype).itemsize

    @property
    def step_cost(self) -> int:
        """The multiplications of a gradient step of the larger network, see `featavg.descend`."""
        n, d = self.samples, self.fewest_coordinates
        return max(self.neurons) * n * min(n, 2 * d)

    def draw_networks(
        self, seed: int, *, fewest_coordinates: bool = False, dtype: str = "float64"
    ) -> Pair[TwoLayerNet]:
        """Draw a sample, fresh points and both networks.

        The data, both initialisations and all later draws have random streams of their own, so
        that changing one leaves the others as they are. With `fewest_coordinates` the sample is
        drawn in span coordinates whenever they are fewer than the dimensions, or else by the rule
        of `MultiCluster.sample`.
        """
        sampling: dict[str, Any] = {"dtype": dtype}
        if fewest_coordinates:
            is_span = self.fewest_coordinates < self.dim
            sampling["coordinates"] = "span" if is_span else "ambient"
            sampling["reserve"] = sum(self.neurons)
        train, test = self.draw(seed, **sampling)
        _, coarse, fine, after = _streams(seed)
        # in span coordinates the order counts: changing it would change saved numbers
        multi: TwoLayerNet = MultiClassNet.init(
            train, width=self.fine_width, weight_scale=self.weight_scale, rng=fine
        )
        return Pair(train, test, self._binary(train, coarse), multi, after)

    def train(self, seed: int, record: int = 2) -> Pair[Trajectory]:
        """Draw a sample and train both networks on it, recording `record` times of each."""
        drawn = self.draw_networks(seed)
        coarse, fine = (
            self._descend(net, drawn.train, record=record) for net in (drawn.coarse, drawn.fine)
        )
        return Pair(drawn.train, drawn.test, coarse, fine, drawn.rng)


@dataclass(frozen=True, kw_only=True)
class MatrixSetting(SyntheticSetting):
    """The synthetic setting of experiments that show the matrix of cosines."""

    def __post_init__(self) -> None:
        super().__post_init__()
        largest_side = max(self.side_sizes)
        if self.width < largest_side:
            raise InputError(
                f"width must be at least {largest_side} because the matrix of Figure 2 has a "
                f"weight for each cluster of a side; got {self.width}."
            )

    @property
    def side_sizes(self) -> tuple[int, int]:
        """How many clusters are positive and how many negative."""
        return len(self.law.positive_clusters), len(self.law.negative_clusters)

    @property
    def own_side(self) -> BoolArray:
        """Where a centre and an equivalent weight are of the same side."""
        signs = self.law.signs
        return signs[:, None] == signs[None, :]

    @property
    def average_cosines(self) -> tuple[float, float]:
        r"""The cosines of exact averages: the mean with own centres, the largest with others.

        A weight along the sum of p centres with the pairwise cosine c has the cosine
        :math:`\sqrt{(1 + (p-1)c)/p}` with each of them.
        """
        sizes, c = np.array(self.side_sizes), self.cosine
        own = np.average(np.sqrt((1 + (sizes - 1) * c) / sizes), weights=sizes**2)
        # between the sums of p and of q centres, and between two centres
        opposite = max(abs(c) * np.sqrt(s / (1 + (s - 1) * c)) for s in sizes)
        return float(own), float(opposite)


@dataclass(frozen=True, eq=False)
class Pair(Generic[Learner]):
    """A sample, fresh points, two networks or their trajectories, and a stream for later draws.

    `coarse` is trained on the sides of the points, `fine` on their clusters.
    """

    train: Sample
    test: Sample
    coarse: Learner
    fine: Learner
    rng: np.random.Generator


def _streams(seed: int) -> list[np.random.Generator]:
    """Return the random streams of a seed: data, coarse network, fine network, later draws."""
    return np.random.default_rng(seed).spawn(4)

"""What the experiments about learners share: the setting, and training to a loss or for steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.experiments.beyond.learner_zoo import (
    Learner,
    Stop,
    stops,
    three_layer_path,
    two_layer_path,
)
from featavg.experiments.beyond.three_layers import ThreeLayerNet, attacked_radii, averaging
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.measures.alignment import alignment, averaging_index, clean_accuracy
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.robustness import exact_radii
from featavg.robustness.radii import Radii
from featavg.training.rule import Rule

STOPS = {"loss": "at equal loss", "steps": "at equal steps"}
"""Where training is stopped."""

QUANTITIES = {
    "index": "averaging index",
    "cosine": "mean cosine with own centres",
    "radius": "median radius (L2)",
    "accuracy": "clean accuracy",
}
COLUMNS = (
    *QUANTITIES,
    *("radius_lower", "exact", "radius_positive", "radius_negative", "radius_of_sides"),
    *("training_loss", "step"),
)
"""What is measured of a trained network."""


@dataclass(frozen=True, kw_only=True)
class LearnerSetting(CheckedParameters):
    """The setting of Section 6.1, and where training stops.

    The common measure of loss is the mean logistic loss of the margins on the training points,
    whatever loss a learner minimises. Square and hinge loss end at margins of 1, which is
    a logistic loss of log(1 + 1/e) = 0.313; the target is a little above, so that all reach it.
    """

    clusters: int = parameter(10, "k, the number of clusters", least=4)
    dim: int = parameter(3072, "d, the dimension")
    noise: float = parameter(1.0, "sigma, the standard deviation of the noise", least=0)
    samples: int = parameter(1000, "n, the number of training points")
    width: int = parameter(5, "m, neurons on each side, where it is not varied")
    weight_scale: float = parameter(1e-5, "sigma_w, the scale of the initial weights")
    bias_scale: float = parameter(1e-5, "sigma_b, the scale of the initial biases")
    learning_rate: float = parameter(0.001, "eta, where it is not said otherwise")
    steps: int = parameter(100, "steps of training at equal steps")
    target_loss: float = parameter(0.35, "the logistic loss at which training stops")
    most_steps: int = parameter(200, "steps after which the target counts as not reached")
    test_samples: int = parameter(1000, "fresh points for clean accuracy")
    radius_samples: int = parameter(60, "fresh points for radii")
    max_nodes: int = parameter(2000, "how long the exact radius of a point is searched for")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.law()  # refuses what cannot be drawn

    def law(self, orientation: str = "random") -> MultiCluster:
        """Return the law with centres of an orientation."""
        return MultiCluster(self.clusters, self.dim, noise=self.noise, orientation=orientation)

    @property
    def averaged(self) -> float:
        """The radius of averaged features, √(d/k)."""
        return float(np.sqrt(self.dim / self.clusters))


@dataclass(frozen=True, eq=False)
class Training:
    """The points of a seed, and the learners that are trained on them."""

    parameters: LearnerSetting
    seed: int
    train: Sample
    test: Sample

    @classmethod
    def of(cls, parameters: LearnerSetting, orientation: str, seed: int) -> Training:
        """Draw training points and fresh ones."""
        data = _stream(seed, 0)
        train = parameters.law(orientation).sample(parameters.samples, rng=data)
        return cls(parameters, seed, train, train.fresh(parameters.test_samples, rng=data))

    def tuned(self, learner: Learner) -> tuple[Rule, dict[str, dict[str, float]]]:
        """Return the best rule of a learner, and what was measured with it at both stops.

        The best has the largest median radius on points of its own, at equal loss.
        """
        best, radius = None, -1.0
        for rule in learner.rules:
            found = self._trained(learner, rule)
            value = 0.0
            if len(learner.rules) > 1 and found["loss"] is not None:
                fresh = self.train.fresh(self.parameters.radius_samples, rng=_stream(self.seed, 3))
                value = float(np.median(self._radii(found["loss"].net, fresh).upper))
            if value > radius:
                best, radius = (rule, found), value
        assert best is not None  # noqa: S101  every learner has a rule
        return best[0], {stop: self._measured(at) for stop, at in best[1].items()}

    def three_layers(self) -> dict[str, dict[str, float]]:
        """Return what was measured of a network with two hidden layers."""
        p, rng = self.parameters, _stream(self.seed, 1)
        net = ThreeLayerNet.init(self.train, rng=rng, **self._start)
        rate = p.learning_rate
        path = three_layer_path(net, self.train, learning_rate=rate, steps=p.most_steps)
        found = stops(path, target=p.target_loss, steps=p.steps)
        return {stop: self._measured(at) for stop, at in zip(STOPS, found, strict=True)}

    @property
    def _start(self) -> dict[str, Any]:
        p = self.parameters
        return {"width": p.width, "weight_scale": p.weight_scale, "bias_scale": p.bias_scale}

    def _trained(self, learner: Learner, rule: Rule) -> dict[str, Stop | None]:
        """Train from the same initial directions, once or, where it is slowed down, twice."""
        p, found = self.parameters, []
        for slowdown in {learner.slowdown: 0, 1.0: 0}:
            options: dict[str, Any] = {**self._start, **learner.network}
            net = BinaryNet.init(self.train, rng=_stream(self.seed, 1), **options)
            path = two_layer_path(
                net,
                self.train,
                rule=rule,
                loss=learner.loss,
                learning_rate=p.learning_rate * learner.rate * slowdown,
                steps=p.most_steps,
                rng=_stream(self.seed, 2),
            )
            found.append(stops(path, target=p.target_loss, steps=p.steps))
        return {"loss": found[0][0], "steps": found[-1][1]}

    def _measured(self, at: Stop | None) -> dict[str, float]:
        """Return the quantities of a network; NaN where the target was not reached."""
        if at is None:
            return dict.fromkeys(COLUMNS, np.nan)
        net, test = at.net, self.test
        if isinstance(net, ThreeLayerNet):
            index, cosine = averaging(net, self.train)
            accuracy = float((net.predict(test.x) == test.y).mean())
        else:
            own = self.train.law.signs[:, None] == net.neuron_signs[None, :]
            index = averaging_index(net, self.train)
            cosine = float(alignment(net, self.train.centers)[own].mean())
            accuracy = clean_accuracy(net, test.x, test.y)
        found = {"index": index, "cosine": cosine, "accuracy": accuracy}
        return found | self._median_radii(net) | {"training_loss": at.loss, "step": at.step}

    def _median_radii(self, net: TwoLayerNet | ThreeLayerNet) -> dict[str, float]:
        r"""Return the median radius, its lower bound, and those of both sides.

        Where the weights of the sides are p and q times the sums of their centres, points of the
        sides are :math:`p\sqrt{2d/k}/\sqrt{p^2 + q^2}` and :math:`q\sqrt{2d/k}/\sqrt{p^2 + q^2}`
        from the plane on which both are equal: the root mean square of both is
        :math:`\sqrt{d/k}` for every p and q, while the median of all points is not.
        """
        count = self.parameters.radius_samples
        x, y = self.test.x[:count], self.test.y[:count]
        if isinstance(net, ThreeLayerNet):
            upper, exact = attacked_radii(net, x, y, towards=self.train.centers), 0.0
            lower: FloatArray = np.zeros(len(upper))
        else:
            radii = self._radii(net, self.test)
            lower, upper, exact = radii.lower, radii.upper, float(radii.exact.mean())
        sides = [float(np.median(upper[y == side])) for side in (1, -1)]
        return {
            "radius": float(np.median(upper)),
            "radius_lower": float(np.median(lower)),
            "exact": exact,
            "radius_positive": sides[0],
            "radius_negative": sides[1],
            "radius_of_sides": float(np.sqrt(np.mean(np.square(sides)))),
        }

    def _radii(self, net: TwoLayerNet, points: Sample) -> Radii:
        p = self.parameters
        x, y = points.x[: p.radius_samples], points.y[: p.radius_samples]
        return exact_radii(net, x, y, max_nodes=p.max_nodes, certificates=False, jobs=1)


def _stream(seed: int, number: int) -> np.random.Generator:
    """Return one of the random streams of a seed: data, start, batches, points to choose by."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))

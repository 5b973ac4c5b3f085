"""What the playground trains, step by step: networks, and affine pieces on their radius."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.apps.play.pictures import snapshot, snapshot_of_pieces
from featavg.apps.play.settings import Settings
from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.drawing.views import rounded
from featavg.estimators.pieces import PieceHead
from featavg.experiments.beyond.piece_objectives import OBJECTIVES, averaged_head, descent
from featavg.lab.setting import Pair
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss
from featavg.robustness import Radii, exact_radii
from featavg.training.descent import cheaper_method, descent_steps
from featavg.training.fast_forward import fast_forward_steps
from featavg.training.rule_check import check_rule
from featavg.training.state import new_state
from featavg.training.trajectory import Recorder, Trajectory

_TOLERANCE = 0.05  # of the fast-forward: λ is then within about a percent
_MAX_NODES = 4000
_PERTURBATION = 1e-3  # of averaged features, relative to their norm

Decision = Callable[[FloatArray], FloatArray]
"""The binary decision at points, shape (points,): its sign is the side."""


@dataclass(frozen=True, eq=False)
class Reached:
    """Where a training is after a step; `outputs` are those of a network at its points."""

    position: int
    is_between: bool
    log_time: float
    outputs: FloatArray


class Trained(ABC):
    """A classifier whose exact radii are known."""

    size: int
    """The number of neurons or pieces, which the search for radii takes time for."""

    @abstractmethod
    def radii(self, x: FloatArray, y: IntArray) -> Radii:
        """Return the exact radii of points and their sides."""

    @abstractmethod
    def in_plane(self, plane: FloatArray) -> Decision:
        """Return the decision as a function of coordinates u, at the points plane @ u."""


class TrainedNet(Trained):
    """A network."""

    def __init__(self, net: TwoLayerNet) -> None:
        self.net, self.size = net, len(net.weights)

    def radii(self, x: FloatArray, y: IntArray) -> Radii:
        """Return the exact radii of points and their sides."""
        return exact_radii(self.net, x, y, max_nodes=_MAX_NODES, certificates=False, jobs=1)

    def in_plane(self, plane: FloatArray) -> Decision:
        """Return the decision of the network with the weights W plane."""
        weights, biases = self.net.weights.astype(np.float64), self.net.biases.astype(np.float64)
        flat = self.net.with_parameters(weights @ plane, biases)
        return lambda u: flat.decision(flat.outputs(u))


class TrainedPieces(Trained):
    """Affine pieces, the second class of which is the positive side."""

    def __init__(self, head: PieceHead) -> None:
        self.head, self.size = head, len(head.weights)

    def radii(self, x: FloatArray, y: IntArray) -> Radii:
        """Return the exact radii of points and their sides."""
        return self.head.radii(x.astype(np.float64), (y == 1).astype(int), max_nodes=_MAX_NODES)

    def in_plane(self, plane: FloatArray) -> Decision:
        """Return the decision of the pieces with the weights W plane."""
        return self.head.after_projection(plane).decision


class Learner(ABC):
    """A training that goes on as far as it is asked to.

    `steps` knows nothing of the run that asks for steps: a generator that did would keep it in
    memory until the cyclic garbage collector runs, long after the page is closed.
    """

    @abstractmethod
    def steps(self) -> Iterator[Reached]:
        """Yield after every step, short or long, where the training is."""

    @abstractmethod
    def snapshot(self, now: Reached, test: Sample) -> dict[str, Any]:
        """Return what the page shows of the present position, without the radii."""

    @abstractmethod
    def trained(self, now: Reached) -> Trained:
        """Return the classifier at the present position."""


class NetworkLearner(Learner):
    """The training of a network, by `featavg.descend` and `featavg.fast_forward`."""

    def __init__(
        self,
        settings: Settings,
        net: TwoLayerNet,
        train: Sample,
        loss: Loss,
        rng: np.random.Generator,
    ) -> None:
        self.settings, self.net, self.train, self._loss, self._rng = settings, net, train, loss, rng
        self._rule = check_rule(settings.rule, in_span=train.in_span)
        method = cheaper_method(net, train, settings.expected_steps)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by the first step
            self.state = new_state(method if self._rule.linear else "weights", net, train)

    def steps(self) -> Iterator[Reached]:
        """Yield after every step, short or long, where the training is."""
        settings, rate, literal = self.settings, self.settings.learning_rate, self.settings.literal
        log_time = -math.inf
        taken = descent_steps(
            self.state,
            learning_rate=rate,
            steps=literal,
            rule=self._rule,
            loss=self._loss,
            rng=self._rng,
        )
        for step, outputs in enumerate(taken):
            log_time = _log_time(rate, step)
            yield Reached(step, False, log_time, outputs)
        if not settings.goals:
            return
        goals = np.log([rate]) + np.log(np.array(settings.goals))
        leaps = fast_forward_steps(
            self.state,
            learning_rate=rate,
            goals=np.concatenate([[log_time], goals]),
            tolerance=_TOLERANCE,
            loss=self._loss,
        )
        position = literal
        for log_time, outputs in leaps:
            reached = literal + int((log_time >= goals).sum())
            yield Reached(reached, reached == position, log_time, outputs)
            position = reached

    def _trajectory(self, now: Reached) -> Trajectory:
        """Return a trajectory of the present position alone."""
        rate = self.settings.learning_rate
        recorder = Recorder(self.net, self.train, rate, self._loss, self._rule)
        recorder.add(now.log_time, now.outputs, self.state)
        return recorder.finish("playground")

    def snapshot(self, now: Reached, test: Sample) -> dict[str, Any]:
        """Return what the page shows of the present position, without the radii."""
        # without fine labels no output belongs to a cluster
        return snapshot(self._trajectory(now), test, by_side=self.settings.fine_share == 0)

    def trained(self, now: Reached) -> Trained:
        """Return the network at the present position."""
        return TrainedNet(self._trajectory(now).net)


class PieceLearner(Learner):
    """The training of affine pieces on their radius, from averaged features.

    Paper: none, an extension; the descent of the experiment ``radius-training``, whose pieces start
    as the sums of their side's centres, slightly perturbed.
    """

    def __init__(self, settings: Settings, train: Sample, rng: np.random.Generator) -> None:
        self.settings, self.train = settings, train
        self.margin = float(settings.predicted[1])
        self.head = averaged_head(train, settings.neurons[1] // 2, _PERTURBATION, rng)

    def steps(self) -> Iterator[Reached]:
        """Yield after every step where the training is."""
        objective, rate = OBJECTIVES["radius"], self.settings.learning_rate
        for step in range(self.settings.end + 1):
            if step:
                self.head = descent(self.head, self.train, objective, self.margin, [1])[-1]
            yield Reached(step, False, _log_time(rate, step), np.empty(0))

    def snapshot(self, now: Reached, test: Sample) -> dict[str, Any]:
        """Return what the page shows of the present position, without the radii."""
        seen = snapshot_of_pieces(self.head, self.train, test, self.margin)
        return {"steps": float(now.position), "log_time": rounded(now.log_time, 6), **seen}

    def trained(self, _: Reached) -> Trained:
        """Return the pieces at the present position."""
        return TrainedPieces(self.head)


def new_learner(settings: Settings, network: str, drawn: Pair[TwoLayerNet]) -> Learner:
    """Return the learner of a network, "coarse" or "fine", of the points and networks drawn."""
    supply, *of_networks = drawn.rng.spawn(3)
    is_coarse = network == "coarse"
    if settings.on_radius and not is_coarse:
        return PieceLearner(settings, drawn.train, of_networks[1])
    # the argmax readout, because its radii are exact
    net = drawn.coarse if is_coarse else drawn.fine.with_readout("argmax")
    loss = settings.loss_of(net, drawn.train, supply)
    return NetworkLearner(settings, net, drawn.train, loss, of_networks[0 if is_coarse else 1])


def _log_time(rate: float, step: int) -> float:
    return math.log(rate) + math.log(step) if step else -math.inf

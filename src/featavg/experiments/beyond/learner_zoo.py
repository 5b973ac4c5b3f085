"""Learners of coarse labels, each of which differs from the paper's in one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.experiments.beyond.three_layers import ThreeLayerNet, descend_three_layers
from featavg.networks.activation import LeakyReLU
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Exponential, Hinge, Logistic, Loss, Square
from featavg.training.descent import cheaper_method, descent_steps
from featavg.training.rule import (
    SAM,
    SGD,
    Adam,
    GradientDescent,
    Momentum,
    Rule,
    SignDescent,
    WeightDecay,
)
from featavg.training.rule_check import check_rule
from featavg.training.state import new_state
from featavg.training.wrapped_rule import Dropout

_ADAPTIVE_SLOWDOWN = 0.01
_SECOND_LAYER_SPEEDUP = 20.0


@dataclass(frozen=True)
class Learner:
    """What is learned with, and how fast.

    Attributes
    ----------
    name, group : str
        What it is called, and what it differs in from the paper's learner.
    rules : tuple of Rule
        The rules to choose from; most learners have one.
    loss : Loss, optional
        The loss; the logistic one by default.
    network : mapping
        Further arguments of `BinaryNet.init`.
    rate : float
        The learning rate, in units of the paper's.
    slowdown : float
        A further factor of the learning rate where training is stopped at a loss, so that it does
        not jump over it.
    """

    name: str
    group: str
    rules: tuple[Rule, ...] = (GradientDescent(),)
    loss: Loss | None = None
    network: Mapping[str, Any] = field(default_factory=dict)
    rate: float = 1.0
    slowdown: float = 1.0


GRADIENT_DESCENT = Learner("gradient descent (the paper's)", "Rule")
SMALL_BATCHES = Learner("SGD, batches of 10", "Rule", (SGD(10),))
ADAM = Learner("Adam", "Rule", (Adam(),), slowdown=_ADAPTIVE_SLOWDOWN)
SIGN_DESCENT = Learner("sign descent", "Rule", (SignDescent(),), slowdown=_ADAPTIVE_SLOWDOWN)
BOTH_LAYERS = Learner(
    "both layers trained",
    "Network",
    network={"train_second_layer": True},
    rate=_SECOND_LAYER_SPEEDUP,
)
SAM_RADII = (1e-4, 3e-4, 1e-3)
SAM_NAME = "SAM, best ρ"
THREE_LAYERS = "three layers (radius by attack)"


def two_layer_learners(width: int, widths: Sequence[int]) -> list[Learner]:
    """Return the learners with one hidden layer; `width` is the paper's.

    The second layer is ±1/m, so the outputs of a network move in proportion to its learning rate
    over m: other widths have learning rates in proportion to m. With both layers trained from a
    small start the origin is a saddle, which takes the time of 1/(learning rate) to leave.
    """
    return [
        GRADIENT_DESCENT,
        Learner("SGD, batches of 100", "Rule", (SGD(100),)),
        SMALL_BATCHES,
        Learner("momentum 0.9", "Rule", (Momentum(0.9),)),
        Learner("weight decay 1", "Rule", (WeightDecay(1.0),)),
        Learner("dropout of half the neurons", "Rule", (Dropout(0.5),)),
        Learner(SAM_NAME, "Rule", tuple(SAM(radius) for radius in SAM_RADII)),
        ADAM,
        SIGN_DESCENT,
        Learner("label smoothing 0.1", "Loss", loss=Logistic(smoothing=0.1)),
        Learner("square", "Loss", loss=Square()),
        Learner("exponential", "Loss", loss=Exponential()),
        Learner("hinge", "Loss", loss=Hinge()),
        Learner("leaky ReLU 0.1", "Network", network={"activation": LeakyReLU(0.1)}),
        Learner("no biases", "Network", network={"bias_scale": None}),
        BOTH_LAYERS,
        *(
            Learner(f"m = {m}", "Network", network={"width": m}, rate=m / width)
            for m in widths
            if m != width
        ),
    ]


@dataclass(frozen=True, eq=False)
class Stop:
    """A network during training: after how many steps, and its mean logistic loss."""

    step: int
    loss: float
    net: Any


Path = Iterator[tuple[float, Callable[[], Any]]]
"""After each step, the mean logistic loss and a function that returns the network as it is."""


def stops(path: Path, *, target: float, steps: int) -> tuple[Stop | None, Stop | None]:
    """Return where the loss first is at most `target`, and where so many steps were taken.

    None where the path ends before.
    """
    at_loss = at_steps = None
    for step, (loss, network) in enumerate(path):
        if at_loss is None and loss <= target:
            at_loss = Stop(step, loss, network())
        if step == steps:
            at_steps = Stop(step, loss, network())
        if at_loss is not None and at_steps is not None:
            break
    return at_loss, at_steps


def logistic_loss(margins: FloatArray) -> float:
    """Return the mean logistic loss of margins y f(x): the common measure of all learners."""
    return float(np.logaddexp(0, -margins).mean())


def two_layer_path(
    net: TwoLayerNet,
    train: Sample,
    *,
    rule: Rule,
    loss: Loss | None,
    learning_rate: float,
    steps: int,
    rng: np.random.Generator,
) -> Path:
    """Yield what `stops` looks at, for at most so many steps of training."""
    check_rule(rule, in_span=train.in_span)
    method = cheaper_method(net, train, steps) if rule.linear else "weights"
    state = new_state(method, net, train)
    options = {"learning_rate": learning_rate, "steps": steps, "rule": rule, "loss": loss}
    for outputs in descent_steps(state, rng=rng, **options):  # type: ignore[arg-type]
        yield logistic_loss(train.y * outputs[0]), lambda: state.snapshot().rebuild(net, train)


def three_layer_path(
    net: ThreeLayerNet, train: Sample, *, learning_rate: float, steps: int
) -> Path:
    """Yield what `stops` looks at, for at most so many steps of gradient descent."""
    for trained in descend_three_layers(net, train, learning_rate=learning_rate, steps=steps):
        yield logistic_loss(train.y * trained.score(train.x)), partial(_same, trained)


def _same(net: ThreeLayerNet) -> ThreeLayerNet:
    return net

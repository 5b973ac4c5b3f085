"""The worlds of the playground: other optimisers, losses, labels and objectives than the paper's.

Paper: none, an extension. The experiments of the series "beyond" measure each of them with care.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from featavg import checks
from featavg.arrays import BoolArray
from featavg.data.grouping import Grouping
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.lab.parameters import parameter
from featavg.lab.setting import SyntheticSetting
from featavg.networks.base import TwoLayerNet
from featavg.networks.coarse_loss import CoarseCrossEntropy
from featavg.networks.loss import CrossEntropy, Exponential, Hinge, Logistic, Loss, Square
from featavg.robustness import AdversarialTraining
from featavg.theory.granularity import granularity_radii
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
from featavg.training.wrapped_rule import Dropout

# Of PGD, and the share of training over which the radius grows, as in adversarial-training.
_ATTACK_STEPS, _RAMP = 5, 0.8
# Settings that training on the radius has no use for.
_OF_LOSSES = ("optimiser", "loss", "fine_share", "grouping", "adversarial")

RULES: Mapping[str, tuple[str, Rule]] = {
    "gd": ("gradient descent", GradientDescent()),
    "sgd": ("SGD, batches of 32", SGD(32)),
    "momentum": ("momentum 0.9", Momentum(0.9)),
    "decay": ("weight decay 1", WeightDecay(1.0)),
    "dropout": ("dropout of half the neurons", Dropout(0.5)),
    "sam": ("SAM, ρ = 0.001", SAM(1e-3)),
    "adam": ("Adam", Adam()),
    "sign": ("sign descent", SignDescent()),
}
"""The optimisers by their name in an address, with their name on the page."""

LOSSES: Mapping[str, tuple[str, tuple[Loss, Loss]]] = {
    "entropy": ("cross-entropy", (Logistic(), CrossEntropy())),
    "smoothed": ("label smoothing 0.1", (Logistic(0.1), CrossEntropy(0.1))),
    "square": ("square", (Square(), Square())),
    "exponential": ("exponential", (Exponential(), Exponential())),
    "hinge": ("hinge", (Hinge(), Hinge())),
}
"""The losses of one output and of many."""

OBJECTIVES: Mapping[str, str] = {
    "loss": "the loss",
    "radius": "its certified radius",
}
"""What the second network is trained on."""


@dataclass(frozen=True)
class Choice:
    """A menu of the page: its name, the name of each option, and a help text."""

    label: str
    options: Mapping[str, str]
    help: str


CHOICES = {
    "optimiser": Choice(
        "optimiser", {key: name for key, (name, _) in RULES.items()}, "Of both networks."
    ),
    "loss": Choice("loss", {key: name for key, (name, _) in LOSSES.items()}, "Of both networks."),
    "objective": Choice(
        "second network is trained on",
        OBJECTIVES,
        "On the radius: 2-class labels and k affine pieces for each class, by gradient descent "
        "from averaged features with steps of its own length.",
    ),
}
"""The menus by the setting they change."""

GROUPING_HELP = (
    "How many clusters share each label of the second network, positive | negative: 1,4|2,3. "
    "Empty: each has its own."
)


@dataclass(frozen=True, kw_only=True)
class WorldSetting(SyntheticSetting):
    """The synthetic setting, and what of the paper's learners and labels is changed."""

    optimiser: str = parameter("gd", "the rule of training of both networks")
    loss: str = parameter("entropy", "the loss of both networks")
    fine_share: float = parameter(1.0, "the share of points with a fine label", least=0)
    grouping: str = parameter("", "how many clusters share each fine label, such as '1,4|2,3'")
    adversarial: float = parameter(0.0, "the radius of training, in units of √(d/2)", least=0)
    objective: str = parameter("loss", "what the second network is trained on")

    def __post_init__(self) -> None:
        for name, choice in CHOICES.items():
            checks.choice(name, getattr(self, name), tuple(choice.options))
        super().__post_init__()
        if self.grouping:
            grouping = Grouping.parse(self.grouping)
            grouping.labels(self.law.signs)  # refuses groups for other sides
            object.__setattr__(self, "grouping", str(grouping))
        self._refuse_nonsense()

    def _refuse_nonsense(self) -> None:
        for item in fields(WorldSetting) if self.on_radius else ():
            value = getattr(self, item.name)
            if item.name in _OF_LOSSES and value != item.default:
                raise InputError(
                    "training on the radius has 2-class labels, gradient descent and no loss of "
                    f"outputs, so {item.name} must be {item.default!r}; got {value!r}."
                )
        if self.fine_share < 1 and self.loss != "entropy":
            raise InputError(
                "points of which only the side is known need the cross-entropy, because other "
                f"losses have no value for a side; got loss={self.loss!r} and "
                f"fine_share={self.fine_share:g}."
            )

    @property
    def on_radius(self) -> bool:
        """Whether the second network is trained on its radius."""
        return self.objective == "radius"

    @property
    def rule(self) -> Rule:
        """The rule of training of networks."""
        rule = RULES[self.optimiser][1]
        if self.adversarial == 0:
            return rule
        ramp = round(_RAMP * self.steps)
        radius = self.adversarial * float(self.predicted[1])
        return AdversarialTraining(radius, rule=rule, steps=_ATTACK_STEPS, ramp=ramp)

    @property
    def can_leap(self) -> bool:
        """Whether many steps can be taken at once: gradient descent on a suitable loss."""
        losses = LOSSES[self.loss][1]
        plain = self.optimiser == "gd" and self.adversarial == 0 and not self.on_radius
        return plain and all(loss.log_lipschitz for loss in losses)

    def loss_of(self, net: TwoLayerNet, train: Sample, rng: np.random.Generator) -> Loss:
        """Return the loss of a network, for which some fine labels may have to be chosen.

        Points without one have the loss of their side, `CoarseCrossEntropy`.
        """
        one, many = LOSSES[self.loss][1]
        if net.output_count == 1:
            return one
        if self.fine_share == 1:
            return many
        return CoarseCrossEntropy(labelled_points(train, self.fine_share, rng))

    def draw(self, seed: int, **sampling: Any) -> tuple[Sample, Sample]:
        """Return the training points and the fresh points of a seed, with their label groups."""
        train, test = super().draw(seed, **sampling)
        return train.grouped(self.grouping or None), test.grouped(self.grouping or None)

    @property
    def neurons(self) -> tuple[int, int]:
        """The number of neurons of both networks; of pieces where the radius is trained on."""
        return 2 * self.width, (1 + self.on_radius) * self._labels * self.fine_width

    @property
    def needs_frame(self) -> bool:
        """Whether training depends on the axes, as that of Adam, so that it needs all of them."""
        rule = self.rule
        return not (rule.linear or rule.rotation_equivariant)

    @property
    def fewest_coordinates(self) -> int:
        """The fewest coordinates that points and networks can be drawn in."""
        return self.dim if self.needs_frame else super().fewest_coordinates

    def memory(self, dtype: str = "float64") -> int:
        """Return how many bytes points take: with a Gram matrix, or with their attacks."""
        if self.adversarial == 0:
            return super().memory(dtype)
        n, d = self.samples, self.fewest_coordinates
        return n * d * (2 * np.dtype(dtype).itemsize + 16)  # perturbations have double precision

    @property
    def step_cost(self) -> int:
        """The multiplications of a step of the larger network, estimated."""
        rule, n, d = self.rule, self.samples, self.fewest_coordinates
        if rule.linear and not self.on_radius:
            return super().step_cost
        passes = 3 if self.adversarial else 2 if self.optimiser == "sam" else 1
        pairs = (self.neurons[1] // 2) ** 2 if self.on_radius else 0
        return n * (2 * passes * max(self.neurons) * d + 10 * pairs)

    @property
    def titles(self) -> tuple[str, str]:
        """Short names of both networks."""
        return "2-class", "radius-trained" if self.on_radius else f"{self._labels}-class"

    @property
    def headings(self) -> tuple[str, str]:
        """What both networks are told."""
        if self.on_radius:
            return "2-class labels", "2-class labels, on the radius"
        groups = f" {self.grouping}" if self.grouping else ""
        if self.fine_share == 0:
            return "2-class labels", f"2-class labels, {self._labels} outputs{groups}"
        share = "" if self.fine_share == 1 else f", {100 * self.fine_share:.3g} % of them"
        return "2-class labels", f"{self._labels}-class labels{groups}{share}"

    @property
    def told(self) -> tuple[str, str]:
        """What both networks are told of each training point, in words."""
        side = "only its side"
        if self.on_radius or self.fine_share == 0:
            return side, side
        label = "its group of clusters" if self.grouping else "its cluster"
        return side, label if self.fine_share == 1 else f"{label} or {side}"

    @property
    def columns(self) -> tuple[str, str]:
        """What the columns of the heat maps are."""
        if self.on_radius:
            return "neurons", "pieces"
        h = self.fine_width
        return "neurons", f"neurons, {'one' if h == 1 else h} for each class"

    @property
    def _labels(self) -> int:
        return len(Grouping.parse(self.grouping)) if self.grouping else self.clusters

    def granularity(self) -> list[dict[str, Any]] | None:
        """Return the size, side and radius of each label group by the granularity law.

        None where the law says nothing: without groups, with points that have no fine label, with
        adversarial training, and with centres that are not orthogonal.
        """
        if not self.grouping or self.fine_share < 1 or self.adversarial or self.cosine != 0:
            return None
        grouping = Grouping.parse(self.grouping)
        radii = granularity_radii(grouping, self.law)
        return [
            {"size": int(size), "sign": int(sign), "radius": float(radius)}
            for size, sign, radius in zip(grouping.sizes, grouping.signs, radii, strict=True)
        ]


def labelled_points(train: Sample, share: float, rng: np.random.Generator) -> BoolArray:
    """Choose the points whose fine label is known: a share of each label's, but at least one.

    None where the share is 0.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> train = MultiCluster(clusters=4, dim=9).sample(100, rng=np.random.default_rng(0))
    >>> known = labelled_points(train, 0.01, np.random.default_rng(1))
    >>> np.bincount(train.cluster[known])
    array([1, 1, 1, 1])
    """
    known = np.zeros(len(train), dtype=bool)
    if share == 0:
        return known
    for label in range(len(train.label_signs)):
        members = np.flatnonzero(train.labels == label)
        known[rng.permutation(members)[: max(1, round(share * len(members)))]] = True
    return known

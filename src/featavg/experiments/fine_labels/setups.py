"""Networks and how they are trained: two recipes, and what leads from one to the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from featavg.vision.recipes import RECIPES, Recipe


@dataclass(frozen=True)
class Setup:
    """A network and how it is trained.

    Attributes
    ----------
    network : {"strided", "small-cnn", "resnet18"}
        The architecture.
    width : int
        The channels of its first layer.
    recipe : Recipe
        The training.
    images : int or None
        How many images it is trained on, the first ones; None for all.
    batch_norm : bool
        Normalise over the batch ("strided" only; ResNet-18 always does).
    first_stride : int
        The stride of the first convolution ("strided" only).
    """

    network: str
    width: int
    recipe: Recipe
    images: int | None = None
    batch_norm: bool = False
    first_stride: int = 1

    def build(self, shape: tuple[int, ...], classes: int, rng: np.random.Generator) -> Any:
        """Return the network for images of a shape."""
        from featavg.vision.models import ResNet18, SmallCNN, StridedCNN

        channels, size = shape[0], shape[1]
        if self.network == "resnet18":
            return ResNet18(self.width, channels, classes, rng=rng)
        if self.network == "small-cnn":
            return SmallCNN(channels, classes, size=size, width=self.width, rng=rng)
        return StridedCNN(
            channels,
            classes,
            size=size,
            width=self.width,
            first_stride=self.first_stride,
            batch_norm=self.batch_norm,
            rng=rng,
        )

    def trained(self, **changes: Any) -> Setup:
        """Return the setup with other settings of its recipe."""
        return replace(self, recipe=replace(self.recipe, **changes))


ADAM = Setup("strided", 16, RECIPES["adam"], 10_000)
"""The recipe with which fine labels helped: 8 epochs of Adam on 10,000 images."""

SGD = Setup("small-cnn", 32, RECIPES["fashion-mnist-quick"])
"""The recipe of `figure3-fashion --quick`: one epoch of SGD with a large rate on all images."""

CIFAR_SGD = Setup("resnet18", 16, RECIPES["cifar10-quick"])
"""The recipe of `figure3-cifar10 --quick`."""

_OF_ADAM = {
    name: getattr(RECIPES["adam"], name)
    for name in ("optimizer", "learning_rate", "schedule", "weight_decay")
}
_OF_SGD = {name: getattr(SGD.recipe, name) for name in _OF_ADAM}

FROM_ADAM, FROM_SGD = "Adam's recipe, one thing changed", "SGD's recipe, one thing changed"

_CONSTANT_SGD = {"optimizer": "sgd", "weight_decay": SGD.recipe.weight_decay}

OPTIMIZERS: dict[str, tuple[str, Setup]] = {
    "adam": ("Adam, rate 0.001", ADAM),
    "sgd": ("SGD, rate 0.1", ADAM.trained(learning_rate=0.1, **_CONSTANT_SGD)),
    "sgd-small": ("SGD, rate 0.01", ADAM.trained(learning_rate=0.01, **_CONSTANT_SGD)),
}
"""Name and setup of each optimiser of `fine-labels-loss`, at constant rates, by a short name."""

VARIATIONS: dict[str, tuple[str, str, Setup]] = {
    "adam": (FROM_ADAM, "as it is", ADAM),
    "adam_optimizer": (FROM_ADAM, "SGD, one cycle, weight decay", ADAM.trained(**_OF_SGD)),
    "adam_network": (FROM_ADAM, "SGD's network", replace(ADAM, network="small-cnn", width=32)),
    "adam_images": (
        FROM_ADAM,
        "one epoch of all images",
        replace(ADAM.trained(epochs=1), images=None),
    ),
    "adam_short": (FROM_ADAM, "1 epoch", ADAM.trained(epochs=1)),
    "adam_long": (FROM_ADAM, "24 epochs", ADAM.trained(epochs=24)),
    "adam_wide": (FROM_ADAM, "twice as wide", replace(ADAM, width=32)),
    "adam_norm": (FROM_ADAM, "batch normalisation", replace(ADAM, batch_norm=True)),
    "adam_stride": (FROM_ADAM, "both strides 2", replace(ADAM, first_stride=2)),
    "sgd": (FROM_SGD, "as it is", SGD),
    "sgd_optimizer": (FROM_SGD, "Adam, constant, no weight decay", SGD.trained(**_OF_ADAM)),
    "sgd_network": (FROM_SGD, "Adam's network", replace(SGD, network="strided", width=16)),
    "sgd_images": (
        FROM_SGD,
        "8 epochs of 10,000 images",
        replace(SGD.trained(epochs=8), images=10_000),
    ),
    "sgd_long": (FROM_SGD, "8 epochs", SGD.trained(epochs=8)),
    "sgd_decay": (FROM_SGD, "no weight decay", SGD.trained(weight_decay=0.0)),
    "sgd_rate": (FROM_SGD, "a tenth of the rate", SGD.trained(learning_rate=0.01)),
}
"""Group, name and setup of each row of `fine-labels-recipes`, by a short name."""

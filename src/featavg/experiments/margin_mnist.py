"""Margin and robustness of one network on MNIST during long training."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from featavg.arrays import FloatArray
from featavg.drawing.views import DASHES, Curves, Line, Panel, View
from featavg.errors import InputError, optional_imports
from featavg.experiments.image_splits import TEST_IMAGES
from featavg.lab.expectations import Expectation, at_least, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.tables import Measurements, Results, Table, stacked, tidy_rows
from featavg.progress import wanted

if TYPE_CHECKING:
    from torch import nn

    from featavg.datasets import ImageData
    from featavg.vision.recipes import Recipe
    from featavg.vision.training import Trained

_LAYERS = 4  # of SmallCNN: multiplying all its weights by c multiplies its logits by c⁴
_ROLES = ("coarse", "third", "fine", "quiet")
# the talk's five networks: epochs, log₁₀ of the training loss, normalised margin
_TALK = (
    (38, -10.04, 5.65e-5),
    (75, -15.12, 9.50e-5),
    (107, -20.07, 1.30e-4),
    (935, -120.01, 4.61e-4),
    (10_000, -881.51, 1.18e-3),
)


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """The network of the talk, its training and the attack."""

    width: int = parameter(32, "channels of the first layer; 32 is the talk's network")
    train_images: int | None = parameter(None, "train on the first ones only")
    epochs: int = parameter(108, "epochs of the longest training")
    rows: Literal["doublings", "talk"] = parameter(
        "doublings",
        "measure the network at epochs that double up to the last, or at those of the talk's "
        "table (38, 75, 107, 935, 10,000) up to the last",
    )
    networks: int = parameter(3, "how many times the network is measured, at doublings", least=2)
    batch: int = parameter(100, "images in a step")
    learning_rate: float = parameter(0.1, "alpha of the loss-based learning rate, at first")
    attack_images: int = parameter(1000, "how many test images are attacked", most=TEST_IMAGES)
    radii: int = parameter(16, "how many radii, from 0", least=2)
    radius_step: float = parameter(0.2, "the distance between radii")
    pgd_steps: int = parameter(100, "steps of PGD")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows == "talk":
            if len(self.milestones) < 2:
                raise InputError(
                    f"epochs must be at least {_TALK[1][0]} because networks of two rows of the "
                    f"talk's table are compared; got {self.epochs}."
                )
        elif self.epochs < 2 ** (self.networks - 1):
            raise InputError(
                f"epochs must be at least 2^(networks - 1) = {2 ** (self.networks - 1)} because "
                f"each network is trained twice as long as the one before; got {self.epochs}."
            )

    @property
    def grid(self) -> FloatArray:
        """The radii."""
        return self.radius_step * np.arange(self.radii)

    @property
    def milestones(self) -> list[int]:
        """The epochs after which the network is measured."""
        if self.rows == "talk":
            return [epochs for epochs, *_ in _TALK if epochs <= self.epochs]
        return [self.epochs // 2**i for i in reversed(range(self.networks))]

    def recipe(self, epochs: int) -> Recipe:
        """Return the recipe of a training."""
        from featavg.vision.recipes import RECIPES

        usual, rate = RECIPES["mnist-margin"], self.learning_rate
        return replace(usual, epochs=epochs, batch=self.batch, learning_rate=rate)


@optional_imports("margin-mnist")
def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train one network, and measure it after each milestone."""
    from featavg.datasets import load
    from featavg.vision.evaluation import accuracy

    data = load("mnist")
    rows: list[dict[str, Any]] = []
    for trained in _longer_and_longer(parameters, data, seed):
        net = trained.model
        margin, norm = _margin(net, data, parameters.train_images)
        rows.append(
            {
                "epochs": len(trained.log_losses),
                "log10_loss": _log_loss(trained) / math.log(10),
                "margin": margin,
                "norm": norm,
                "normalized_margin": margin / norm**_LAYERS,
                "clean": accuracy(net, data.test_images, data.test_labels),
                "robust": _robust(parameters, net, data, seed),
            }
        )
    found = stacked(rows)
    margins, curves = found["normalized_margin"], found["robust"]
    return found | {
        "final_log10_loss": rows[-1]["log10_loss"],
        "final_clean": rows[-1]["clean"],
        "least_margin_growth": min(float(b / a) for a, b in pairwise(margins)),
        "margin_growth": float(margins[-1] / margins[0]),
        "robust_gain": float((curves[-1] - curves[0])[1:].mean()),
        "clean_gain": rows[-1]["clean"] - rows[0]["clean"],
    }


def _longer_and_longer(parameters: Parameters, data: ImageData, seed: int) -> list[Trained]:
    """Return the network after each milestone; each training continues the one before."""
    from featavg.vision.milestones import train_by_milestones
    from featavg.vision.models import SmallCNN

    images = data.train_images[: parameters.train_images]
    labels, count = data.train_labels[: len(images)], len(images)
    rng = np.random.default_rng([seed, parameters.width])
    start = SmallCNN(width=parameters.width, homogeneous=True, rng=rng)
    recipe = parameters.recipe(1)
    name = f"margin-mnist-{parameters.width}-{recipe.fingerprint[:12]}-{count}-{seed}"
    return train_by_milestones(
        start,
        images,
        labels,
        recipe,
        parameters.milestones,
        seed=seed,
        name=name,
        progress=wanted(),
    )


def _log_loss(trained: Trained) -> float:
    """Return the loss after the last epoch that was not undone."""
    losses = trained.log_losses
    return next(
        losses[epoch]
        for epoch in reversed(range(len(losses)))
        if not trained.recipe.undoes(losses[: epoch + 1])
    )


def _margin(net: nn.Module, data: ImageData, count: int | None) -> tuple[float, float]:
    """Return the smallest margin f_y - max f_j over the training images, and the norm of theta."""
    from featavg.vision.evaluation import outputs

    logits = outputs(net, data.train_images[:count]).double().numpy(force=True)
    labels = data.train_labels[:count]
    images = np.arange(len(labels))
    own = logits[images, labels].copy()
    logits[images, labels] = -np.inf
    squares = (float((weights.detach().double() ** 2).sum()) for weights in net.parameters())
    return float((own - logits.max(axis=1)).min()), math.sqrt(sum(squares))


def _robust(parameters: Parameters, net: nn.Module, data: ImageData, seed: int) -> FloatArray:
    """Return the accuracy on test images under attacks within each radius."""
    from featavg.vision.attacks import pgd_l2

    attacked = slice(0, parameters.attack_images)
    attack = pgd_l2(
        net,
        data.test_images[attacked],
        data.test_labels[attacked],
        radii=parameters.grid,
        objective="cross-entropy",
        steps=parameters.pgd_steps,
        seed=seed,
        full=True,
        progress=wanted(),
    )
    broken = np.asarray(attack.last_own)
    # a success at one radius is also one at every larger radius
    return 1 - np.logical_or.accumulate(broken, axis=1).mean(axis=0)


def expects(parameters: Parameters) -> list[Expectation]:
    """Return what the talk says: the margin grows with training, the robustness only slightly."""
    last = 2 if parameters.rows == "doublings" else len(parameters.milestones) - 1
    growth = f"{_TALK[last][2] / _TALK[0][2]:.2g} from 38 to {_TALK[last][0]:,} epochs"
    return [
        reported("log₁₀ of the final training loss", "final_log10_loss"),
        reported("final clean accuracy", "final_clean"),
        reported("normalised margin: least growth from one to the next", "least_margin_growth"),
        at_least("normalised margin: longest over shortest", "margin_growth", 1, growth),
        reported("robust accuracy: longest minus shortest", "robust_gain", "> 0, slight"),
        reported("clean accuracy: longest minus shortest", "clean_gain"),
    ]


def conclude(parameters: Parameters, results: Results) -> str:
    """Say what longer training did to margin and robustness."""
    first, last = parameters.milestones[0], parameters.milestones[-1]
    growth, gain = results["margin_growth"].mean(), 100 * results["robust_gain"].mean()
    start, end = (results["log10_loss"][:, i].mean() for i in (0, -1))
    return (
        f"From epoch {first} to {last} the training loss fell from 10^{start:.1f} to "
        f"10^{end:.1f}, the normalised margin became {growth:.2g} times as large, and the robust "
        f"accuracy, averaged over radii up to {parameters.grid[-1]:.3g}, changed by {gain:+.1f} "
        "points (PGD on the own cross-entropy, which gives upper bounds of the robust accuracy)."
    )


def table(parameters: Parameters, results: Results) -> Table:
    """Return the talk's table: one row for each network, one column for each radius."""
    names = ("log10_loss", "margin", "norm", "normalized_margin", "clean")
    robust = tuple(f"robust_at_{radius:.3g}" for radius in parameters.grid[1:])
    columns = (results[name] for name in ("epochs", *names))
    rows = tidy_rows(*columns, *np.moveaxis(results["robust"][..., 1:], -1, 0), axes=())
    return Table(("seed", "epochs", *names, *robust), rows)


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return loss and margin over epochs with the talk's, and the robust curves."""
    epochs, talk = results["epochs"], np.array(_TALK)

    def beside_the_talk(title: str, y: str, ours: FloatArray, theirs: FloatArray) -> Panel:
        lines = [
            Line.over_seeds("ours", epochs, ours, "coarse"),
            # grey, not the black of the paper's numbers: the axis ends where black ones are ignored
            Line.over_seeds("the talk's network", talk[:, 0], theirs, "quiet", "points"),
        ]
        return Panel(title, y, lines, y_scale="log")

    over_epochs = [
        beside_the_talk("training loss", "-log₁₀ loss", -results["log10_loss"], -talk[:, 1]),
        beside_the_talk(
            "normalised margin", "min margin / ||θ||⁴", results["normalized_margin"], talk[:, 2]
        ),
    ]
    robust = [
        Line.over_seeds(f"{count} epochs", parameters.grid, results["robust"][:, i], role, dash)
        for i, (count, (dash, role)) in enumerate(
            zip(parameters.milestones, product(DASHES[:4], _ROLES), strict=False)
        )
    ]
    count = parameters.train_images or 60_000
    network = f"SmallCNN of width {parameters.width} on {count:,} images of MNIST"
    note = f"{network}, loss-based learning rate."
    panels = [Panel("robust accuracy", "PGD, own classes", robust)]
    return [
        Curves("Through training", "epochs", over_epochs, x_scale="log"),
        Curves("Robust accuracy at a radius", "radius (L2)", panels, note=note),
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="margin-mnist",
    calibrated=True,
    title="Trained longer, the margin grows and the robustness hardly",
    paper="none; a table of the authors' talk, after Lyu and Li (2020)",
    parameters=Parameters(),
    quick=Parameters(
        width=8, train_images=2000, epochs=400, networks=4, attack_images=200, pgd_steps=40
    ),
    seeds=1,
    data="mnist",
    extra="vision",
)

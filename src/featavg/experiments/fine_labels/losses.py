"""Whether fine labels help at equal training loss: robust accuracy as training goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.drawing.views import Curves, Line, Panel, View
from featavg.errors import InputError, optional_imports
from featavg.experiments.fine_labels.choices import chosen_names
from featavg.experiments.fine_labels.measuring import Attack, Trial
from featavg.experiments.fine_labels.setups import OPTIMIZERS
from featavg.experiments.fine_labels.supplies import ALL_FINE, ONE_SCORE
from featavg.experiments.image_splits import SPLITS, TEST_IMAGES
from featavg.experiments.intervals import mean_interval
from featavg.lab.expectations import Expectation, at_least, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.tables import Measurements, Results, Table, prefixed
from featavg.progress import counted, wanted

_LABELS = {"coarse": ONE_SCORE, "fine": ALL_FINE}
_NUMBERS = ("side_loss", "clean", "median_norm")
_IMAGES = 10_000
_LOSSES = 21  # at which two networks are compared


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """The optimisers, the splits, the times at which networks are attacked, and the attack."""

    splits: str = parameter("first-five, parity", "splits of the classes, with commas between them")
    optimizers: str = parameter(
        ", ".join(OPTIMIZERS), "Adam and SGD at two rates, by short names, with commas between them"
    )
    epochs: int = parameter(16, "attack after 1, 2, 4, ... epochs up to this many", least=2)
    train_images: int = parameter(_IMAGES, "how many images they are trained on")
    attack_images: int = parameter(200, "how many test images are attacked", most=TEST_IMAGES)
    radius: float = parameter(1.0, "the radius at which robust accuracy is judged")
    minimal_steps: int = parameter(30, "steps of DDN; half as many along the boundary")
    pgd_steps: int = parameter(15, "steps of PGD")
    restarts: int = parameter(1, "runs of PGD from new starts")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, options in (("splits", SPLITS), ("optimizers", OPTIMIZERS)):
            object.__setattr__(self, name, chosen_names(name, getattr(self, name), options))
        if self.epochs & (self.epochs - 1):
            raise InputError(f"epochs must be a power of 2; got {self.epochs}.")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The optimisers and splits."""
        return list(product(self.optimizers.split(", "), self.splits.split(", ")))

    @property
    def milestones(self) -> list[int]:
        """The numbers of epochs after which networks are attacked."""
        return [2**i for i in range(self.epochs.bit_length())]

    @property
    def attack(self) -> Attack:
        """The attack."""
        steps = self.minimal_steps, self.pgd_steps, self.restarts
        return Attack(self.attack_images, (self.radius,), *steps)


def _key(optimizer: str, split: str) -> str:
    return f"{optimizer}_{split}".replace("-", "_")


@optional_imports("fine labels on images")
def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train on one score and on all fine labels, and attack both after each milestone."""
    import featavg.vision.training  # noqa: F401 - before data are read
    from featavg.datasets import load

    data, found = load("fashion-mnist"), dict[str, Any]()
    for i in counted(len(parameters.pairs), "optimisers and splits", enabled=wanted()):
        optimizer, split = parameters.pairs[i]
        setup = replace(OPTIMIZERS[optimizer][1], images=parameters.train_images)
        trial = Trial(data, SPLITS[split], setup, seed)
        both = {
            name: trial.measure_milestones(supply, parameters.attack, parameters.milestones)
            for name, supply in _LABELS.items()
        }
        key = _key(optimizer, split)
        for name, one in both.items():
            found |= prefixed(f"{key}_{name}", one)
        survived = {name: one["norms"] > parameters.radius for name, one in both.items()}
        losses = {name: one["side_loss"] for name, one in both.items()}
        gains = gains_at_equal_loss(losses, survived)
        found[f"{key}_gains"] = gains
        found[f"{key}_gain"] = float(gains.mean())
        ends = survived["fine"][-1].mean() - survived["coarse"][-1].mean()
        found[f"{key}_gain_at_the_end"] = float(ends)
    return found


def gains_at_equal_loss(losses: dict[str, Any], survived: dict[str, Any]) -> FloatArray:
    """Return by how much fine labels change the survival of each image at equal training loss.

    Survival, shape (milestones, images), is interpolated over the logarithm of the loss, and the
    difference is averaged over all losses that both networks went through; NaN if there are none.
    """
    logs = {name: np.log(values) for name, values in losses.items()}
    low = max(values.min() for values in logs.values())
    high = min(values.max() for values in logs.values())
    if low > high:
        return np.full(survived["fine"].shape[1], np.nan)
    at = np.linspace(low, high, _LOSSES)
    means = {
        name: _interpolated(at, logs[name], survived[name].astype(np.float64)).mean(axis=0)
        for name in _LABELS
    }
    return means["fine"] - means["coarse"]


def _interpolated(at: FloatArray, x: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate each column of values between the neighbours in x, which need not be sorted."""
    order = np.argsort(x)
    columns = [np.interp(at, x[order], column[order]) for column in values.T]
    return np.stack(columns, axis=1)


def expects(parameters: Parameters) -> list[Expectation]:
    """Return what was expected before the first run.

    `fine-labels-recipes` had a gain by fine labels with Adam and a loss with SGD at a large rate,
    at equal numbers of epochs. But where fine labels harmed, the side was learned to half of the
    loss that one score had, and all networks become less robust as their loss falls. So at equal
    loss Adam should still gain, at least 3 points, and of what SGD loses at the end, 11 and 14
    points there, less than half should be left. For other numbers of images nothing was expected.

    With four seeds, Adam gains in seven of eight trainings, on the first five not in every one by 3
    points. What was expected of SGD is wrong: at equal loss it loses as much as was found there, in
    all eight trainings, and gains at a tenth of the rate. So the rate is the reason, not the loss.
    """
    rows = []
    for optimizer, split in parameters.pairs:
        key, name = _key(optimizer, split), f"{OPTIMIZERS[optimizer][0]}, {split}"
        limit = {"adam": 0.03, "sgd": -0.06}.get(optimizer)
        statement = f"{name}: gain at equal loss of the side"
        rows.append(
            reported(statement, f"{key}_gain")
            if limit is None
            else at_least(statement, f"{key}_gain", limit)
        )
        rows.append(reported(f"{name}: gain at the end", f"{key}_gain_at_the_end"))
    if parameters.train_images == _IMAGES:
        return rows
    return [reported(row.statement, row.quantity) for row in rows]


def _gain_at_the_end(parameters: Parameters, results: Results, key: str) -> FloatArray:
    """Return which images fine labels save and lose at the end, shape (seeds, images)."""
    fine, coarse = (
        (results[f"{key}_{name}_norms"][:, -1] > parameters.radius).astype(np.float64)
        for name in ("fine", "coarse")
    )
    return fine - coarse


def conclude(parameters: Parameters, results: Results) -> str:
    """List the gains at equal loss and at the end, with their intervals."""
    parts = []
    for optimizer, split in parameters.pairs:
        key = _key(optimizer, split)
        gains = results[f"{key}_gains"]
        equal = (
            "no loss in common in some training"
            if np.isnan(gains).any()
            else mean_interval(gains).percent("+.1f")
        )
        end = mean_interval(_gain_at_the_end(parameters, results, key)).percent("+.1f")
        parts.append(
            f"{OPTIMIZERS[optimizer][0]}, {split}: {equal}, after {parameters.epochs} epochs {end}"
        )
    return (
        f"What all fine labels change of robust accuracy at radius {parameters.radius:g}, in "
        "points, at equal loss of the side on training images and at the end, with 95 % intervals "
        f"over trainings and images. {'; '.join(parts)}."
    )


def table(parameters: Parameters, results: Results) -> Table:
    """Return a row for each network and milestone."""
    groups = {
        (OPTIMIZERS[optimizer][0], split, name): [
            *(results[f"{_key(optimizer, split)}_{name}_{number}"] for number in _NUMBERS),
            results[f"{_key(optimizer, split)}_{name}_robust"][:, :, 0],
        ]
        for (optimizer, split), name in product(parameters.pairs, _LABELS)
    }
    about = ("seed", "optimizer", "split", "labels", "epochs")
    columns = (*about, *_NUMBERS, f"robust_{parameters.radius:g}")
    return Table.of_groups(columns, groups, axes=[parameters.milestones])


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return robust accuracy over the loss of the side, a panel for each optimiser and split."""
    panels = []
    for optimizer, split in parameters.pairs:
        key = _key(optimizer, split)
        lines = [
            Line.over_seeds(
                supply.name,
                results[f"{key}_{name}_side_loss"],
                results[f"{key}_{name}_robust"][:, :, 0],
                name,
            )
            for name, supply in _LABELS.items()
        ]
        panels.append(Panel(f"{OPTIMIZERS[optimizer][0]}, {split}", "robust accuracy", lines))
    return [
        Curves(
            "Robust accuracy as the training loss of the side falls",
            "loss of the side on training images",
            panels,
            "log",
            note=f"Fashion-MNIST, {parameters.train_images} training and "
            f"{parameters.attack_images} test images, radius {parameters.radius:g}, worst of all "
            f"attacks, after 1 to {parameters.epochs} epochs; bands are standard deviations over "
            "trainings.",
        )
    ]


EXPERIMENT = Experiment.of_module(
    __name__,
    id="fine-labels-loss",
    calibrated=True,
    title="Whether fine labels help at equal training loss",
    paper="none, an extension",
    parameters=Parameters(),
    quick=Parameters(
        splits="parity", optimizers="adam, sgd", epochs=8, train_images=2000, attack_images=30
    ),
    seeds=4,
    quick_seeds=1,
    data="fashion-mnist",
    extra="vision",
)

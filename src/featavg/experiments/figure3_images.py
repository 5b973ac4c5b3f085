"""Figure 3 (middle, right): robust accuracy on images, by attack and in the worst case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.drawing.views import Curves, Line, Mark, Panel, View
from featavg.errors import optional_imports
from featavg.experiments.image_splits import SPLIT_HELP, SPLITS, TEST_IMAGES
from featavg.experiments.intervals import mean_interval
from featavg.lab.expectations import Expectation, at_least, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.tables import Measurements, Results, Table, prefixed
from featavg.paper import figure3_curve
from featavg.progress import wanted

if TYPE_CHECKING:
    from featavg.datasets import ImageData

# attacks by which the two networks are compared, from the weakest to all together
_COMPARISONS = {
    "plain": "plain PGD on the own cross-entropy, as papers do",
    "cross_entropy": "every attack, on the own cross-entropy",
    "readout": "every attack, on the binary readout",
    "probability": "every attack, on the difference of probabilities",
    "worst": "all of them together",
}
_DASHES = ("dotted", "dash-dot", "dashed", "dashed", "solid")
_NETS = {"coarse": 2, "fine": 10}


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """The networks, their training and the attacks."""

    dataset: ClassVar[str]
    split: Literal["first-five", "parity", "random"] = parameter("first-five", SPLIT_HELP)
    network: Literal["resnet18", "small-cnn"] = parameter("resnet18", "the architecture")
    width: int = parameter(64, "channels of the first layer; 64 is the paper's ResNet-18")
    recipe: str = parameter("mnist", "how it is trained: a name of featavg.vision.recipes.RECIPES")
    train_images: int | None = parameter(None, "train on the first ones only")
    attack_images: int = parameter(1000, "how many test images are attacked", most=TEST_IMAGES)
    radii: int = parameter(21, "how many radii, from 0", least=2)
    radius_step: float = parameter(0.1, "the distance between radii")
    pgd_steps: int = parameter(40, "steps of PGD")
    minimal_steps: int = parameter(100, "steps of the minimal-norm attack")
    devices: int = parameter(1, "how many GPUs; a CPU is one")

    @property
    def positive(self) -> tuple[int, ...]:
        """The classes with the label +1."""
        return SPLITS[self.split]

    @property
    def grid(self) -> FloatArray:
        """The radii."""
        return self.radius_step * np.arange(self.radii)


class Mnist(Parameters):
    """Figure 3 (middle)."""

    dataset = "mnist"


class Cifar10(Parameters):
    """Figure 3 (right)."""

    dataset = "cifar10"


class Fashion(Parameters):
    """Not in the paper."""

    dataset = "fashion-mnist"


@optional_imports("Figure 3 on images")
def measure(parameters: Parameters, seed: int) -> Measurements:
    """Train both networks and attack them with every objective."""
    import featavg.vision.training  # noqa: F401 - before data are read
    from featavg.datasets import load

    data = load(parameters.dataset)
    coarse, coarse_survives = _one_network(parameters, seed, data, classes=2)
    fine, fine_survives = _one_network(parameters, seed, data, classes=10)
    found = prefixed("coarse", coarse) | prefixed("fine", fine)
    for name in _COMPARISONS:
        # the share of radii that an image survives; its mean is the mean of the curve
        gains = (fine_survives[name] - coarse_survives[name])[:, 1:].mean(axis=1)
        found |= {f"gain_{name}": float(gains.mean()), f"gains_{name}": gains}
    return found


def _one_network(
    parameters: Parameters, seed: int, data: ImageData, classes: int
) -> tuple[Measurements, dict[str, FloatArray]]:
    """Train on 2 or 10 labels and attack; return numbers, and where images survive each attack."""
    import torch

    from featavg.datasets.cache import cache_folder
    from featavg.vision.checkpoint import cached_checkpoint
    from featavg.vision.curves import robust_curves
    from featavg.vision.evaluation import outputs
    from featavg.vision.objectives import wrong
    from featavg.vision.recipes import RECIPES
    from featavg.vision.training import train

    recipe = RECIPES[checks.choice("recipe", parameters.recipe, tuple(RECIPES))]
    positive = parameters.positive if classes == 10 else (0,)
    images = data.train_images[: parameters.train_images]
    labels = _labels(parameters, data.train_labels, classes)[: len(images)]
    name = (
        f"{parameters.dataset}-{parameters.split}-{classes}-{parameters.network}-"
        f"{parameters.width}-{recipe.fingerprint[:12]}-{len(images)}-{seed}"
    )
    trained = train(
        _network(parameters, seed, images.shape[1:], classes),
        images,
        labels,
        recipe,
        seed=seed,
        checkpoint=cached_checkpoint(name),
        devices=parameters.devices,
        progress=wanted(),
    )
    test_labels = _labels(parameters, data.test_labels, classes)
    logits = outputs(trained.model, data.test_images)
    own = float((logits.argmax(1).numpy() == test_labels).mean())
    side = torch.tensor([j in positive for j in range(classes)])
    binary = float((~wrong(logits, torch.tensor(test_labels), side)).numpy().mean())
    attacked = slice(0, parameters.attack_images)
    curves = robust_curves(
        trained.model,
        data.test_images[attacked],
        test_labels[attacked],
        radii=parameters.grid,
        positive=positive,
        pgd_steps=parameters.pgd_steps,
        steps=parameters.minimal_steps,
        seed=seed,
        folder=cache_folder("attacks"),
        progress=wanted(),
    )
    survives = {"plain": 1.0 - curves.last}
    for name in _COMPARISONS:
        # two logits have only one objective, their difference
        norms = curves.norms.get(name.replace("_", "-"), curves.norms["worst"])
        survives.setdefault(name, (norms[:, None] > curves.radii).astype(np.float64))
    accuracies = {name: survived.mean(axis=0) for name, survived in survives.items()}
    return {"clean": binary, "own_classes": own, **accuracies}, survives


def _labels(parameters: Parameters, labels: IntArray, classes: int) -> IntArray:
    """Return the labels that a network is trained on: the class, or 0 for positive, 1 for not."""
    if classes == 10:
        return labels
    return np.where(np.isin(labels, parameters.positive), 0, 1)


def _network(parameters: Parameters, seed: int, shape: tuple[int, ...], classes: int) -> Any:
    from featavg.vision.models import ResNet18, SmallCNN

    rng = np.random.default_rng([seed, classes])
    channels, size = shape[0], shape[1]
    if parameters.network == "resnet18":
        return ResNet18(parameters.width, channels, classes, rng=rng)
    return SmallCNN(channels, classes, size=size, width=parameters.width, rng=rng)


_LEAST_ACCURACY = {"mnist": {"coarse": 0.985, "fine": 0.985}, "cifar10": {"coarse": 0.85}}


def expects(parameters: Parameters) -> list[Expectation]:
    """Return the accuracies that make the comparison meaningful; who wins is a result."""
    least = _LEAST_ACCURACY.get(parameters.dataset, {})
    paper = {"plain": _paper_gain(parameters)}
    return [
        *(
            at_least(f"{classes}-class: clean accuracy", f"{net}_clean", least.get(net, -np.inf))
            for net, classes in _NETS.items()
        ),
        *(
            reported(f"10-class minus 2-class, {text}", f"gain_{name}", paper.get(name, ""))
            for name, text in _COMPARISONS.items()
        ),
    ]


def _paper_curves(parameters: Parameters) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the paper's curves, where it has them."""
    if parameters.dataset == "fashion-mnist" or parameters.split != "first-five":
        return {}
    return {net: figure3_curve(parameters.dataset, classes) for net, classes in _NETS.items()}


def _paper_gain(parameters: Parameters) -> str:
    """Return the mean difference of the paper's two curves over its own radii."""
    curves = _paper_curves(parameters)
    if not curves:
        return ""
    (_, coarse), (_, fine) = curves["coarse"], curves["fine"]
    return f"{float((fine - coarse)[1:].mean()):.3f}"


def conclude(parameters: Parameters, results: Results) -> str:
    """Say how the comparison depends on the attack, and what holds under the worst."""
    gains = {name: mean_interval(results[f"gains_{name}"]) for name in _COMPARISONS}
    parts = [f"{gains[name].percent('+.1f')} by {text}" for name, text in _COMPARISONS.items()]
    plain, worst = gains["plain"], gains["worst"]
    lines = [
        f"Robust accuracy of the network trained on 10 classes minus that of the one trained on 2, "
        f"in points, averaged over radii up to {parameters.grid[-1]:.3g} (with 95 % intervals over "
        f"trainings and images): {'; '.join(parts)}.",
        f"Under the worst of all attacks the 10-class network is "
        f"{'more' if worst.value > 0 else 'less'} robust, by {abs(100 * worst.value):.1f} points."
        if worst.excludes_zero
        else "Under the worst of all attacks no difference can be told.",
    ]
    if not plain.excludes_zero:
        return " ".join(lines)
    if worst.excludes_zero and np.sign(plain.value) != np.sign(worst.value):
        lines.append("Plain PGD says the opposite: the conclusion depends on the attack.")
    elif abs(plain.value) > 2 * abs(worst.value):
        lines.append("Plain PGD shows a difference more than twice as large.")
    return " ".join(lines)


def table(parameters: Parameters, results: Results) -> Table:
    """Return every curve of every seed."""
    pairs = product(_NETS.items(), _COMPARISONS)
    groups = {(k, name): [results[f"{net}_{name}"]] for (net, k), name in pairs}
    columns = ("seed", "classes", "attack", "radius", "robust_accuracy")
    return Table.of_groups(columns, groups, axes=[parameters.grid.tolist()])


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return both curves by every attack, beside the paper's, and how much they differ."""
    panels = []
    for name, text in _COMPARISONS.items():
        lines = [
            Line.over_seeds(f"{classes}-class", parameters.grid, results[f"{net}_{name}"], net)
            for net, classes in _NETS.items()
        ]
        if name == "plain":
            lines += [
                Line.over_seeds(
                    f"{_NETS[net]}-class, the paper's PGD",
                    *curve,
                    "paper",
                    "points" if net == "coarse" else "squares",
                )
                for net, curve in _paper_curves(parameters).items()
            ]
        panels.append(Panel(f"By {text}", "robust accuracy", lines))
    differences = [
        Line.over_seeds(
            text,
            parameters.grid,
            results[f"fine_{name}"] - results[f"coarse_{name}"],
            "third" if name == "probability" else "quiet",
            dash,
        )
        for (name, text), dash in zip(_COMPARISONS.items(), _DASHES, strict=True)
    ]
    marks = [Mark("", 0.0, "y")]
    panels.append(Panel("10-class minus 2-class", "difference", differences, marks))
    note = (
        f"{parameters.dataset}, {parameters.network} of width {parameters.width}, "
        f"{parameters.split}, {parameters.attack_images} test images."
    )
    return [Curves("Robust accuracy at a radius, by attack", "radius (L2)", panels, note=note)]


def _experiment(name: str, paper: str, usual: Parameters, **quick: Any) -> Experiment:
    attacks = {"attack_images": 100, "pgd_steps": 20, "minimal_steps": 50}
    radii = {"radii": 11, "radius_step": 2 * usual.radius_step}
    quick |= {"recipe": f"{usual.recipe}-quick", **attacks, **radii}
    return Experiment.of_module(
        __name__,
        id=name,
        calibrated=True,
        title="Robust accuracy on images, by every attack objective and the worst",
        paper=paper,
        parameters=usual,
        quick=replace(usual, **quick),
        seeds=3,
        quick_seeds=1,
        data=usual.dataset,
        extra="vision",
    )


_SMALL = {"network": "small-cnn", "width": 32}
_CIFAR = Cifar10(recipe="cifar10", radius_step=0.05)
_FASHION = Fashion(recipe="fashion-mnist")

EXPERIMENTS = (
    _experiment("figure3-mnist", "Figure 3 (middle)", Mnist(), **_SMALL),
    _experiment("figure3-cifar10", "Figure 3 (right)", _CIFAR, width=16),
    _experiment("figure3-fashion", "none, an extension", _FASHION, **_SMALL),
)

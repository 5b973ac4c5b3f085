"""Train a network on a supply of labels, and attack it; both can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.experiments.fine_labels.setups import Setup
from featavg.experiments.fine_labels.supplies import (
    CLASSES,
    Supply,
    clusters_within_sides,
    labels_for,
    purity,
)
from featavg.files import json_hash
from featavg.lab.tables import Measurements
from featavg.progress import wanted

if TYPE_CHECKING:
    from featavg.datasets import ImageData
    from featavg.vision.supplied_labels import SuppliedLabels
    from featavg.vision.training import Trained

# streams of random numbers of a seed, besides that of the training itself
_START, _LABELS, _CLUSTERS = 1, 2, 3
_LOSS_IMAGES = 10_000
_EARLY = Supply("early", "", "", 0.0)


@dataclass(frozen=True)
class Attack:
    """The attack: how many test images, at which radii, and for how long."""

    images: int
    radii: tuple[float, ...]
    minimal_steps: int
    pgd_steps: int
    restarts: int


@dataclass(frozen=True)
class Trial:
    """Trainings on one data set with one split, one setup and one seed."""

    data: ImageData
    positive: tuple[int, ...]
    setup: Setup
    seed: int
    weight: float = 1.0
    kmeans_epochs: int = 1

    def measure(self, supply: Supply, attack: Attack) -> Measurements:
        """Train on a supply of labels, and attack."""
        labels, numbers = self._labels(supply)
        return {**numbers, **self.measure_labels(labels, supply, attack)}

    def measure_labels(
        self, labels: SuppliedLabels, supply: Supply, attack: Attack
    ) -> Measurements:
        """Train on given labels, for outputs as those of a supply, and attack."""
        return self._judge(self._train(labels), supply, attack)

    def measure_milestones(
        self, supply: Supply, attack: Attack, milestones: Sequence[int]
    ) -> Measurements:
        """Train on a supply of labels, and attack after each of these numbers of epochs."""
        labels, _ = self._labels(supply)
        trained = self._train_by_milestones(labels, milestones)
        judged = [self._judge(one, supply, attack) for one in trained]
        return {name: np.stack([one[name] for one in judged]) for name in judged[0]}

    def _labels(self, supply: Supply) -> tuple[SuppliedLabels, dict[str, float]]:
        """Return the labels of a supply, and what there is to say of them."""
        from featavg.vision.supplied_labels import SuppliedLabels

        own, rng = self._images[1], np.random.default_rng([self.seed, _LABELS])
        if supply.kind != "k-means":
            return labels_for(supply, own, self.positive, self.weight, rng), {}
        setup = self.setup.trained(epochs=self.kmeans_epochs)
        early = replace(self, setup=setup)
        network = early._train(labels_for(_EARLY, own, self.positive, self.weight, rng))
        features = _features(network.model, self._images[0])
        rng = np.random.default_rng([self.seed, _CLUSTERS])
        found = clusters_within_sides(features, own, self.positive, rng)
        labels = SuppliedLabels(found, classes=CLASSES, positive=list(self.positive))
        return labels, {"purity": purity(found, own)}

    @property
    def _images(self) -> tuple[Any, IntArray]:
        """The training images and their classes."""
        part = slice(0, self.setup.images)
        return self.data.train_images[part], self.data.train_labels[part]

    def _train(self, labels: SuppliedLabels) -> Trained:
        return self._train_by_milestones(labels, [self.setup.recipe.epochs])[0]

    def _train_by_milestones(
        self, labels: SuppliedLabels, milestones: Sequence[int]
    ) -> list[Trained]:
        from featavg.vision.identity import fingerprint
        from featavg.vision.milestones import train_by_milestones

        images, recipe = self._images[0], self.setup.recipe
        rng = np.random.default_rng([self.seed, _START, labels.classes])
        network = self.setup.build(images.shape[1:], labels.classes, rng)
        identity = {
            "setup": asdict(self.setup) | {"recipe": recipe.fingerprint},
            "data": self.data.sha256,
            "labels": fingerprint(labels.targets),
        }
        name = f"fine-labels-{self.data.name}-{json_hash(identity)[:16]}-{self.seed}"
        return train_by_milestones(
            network,
            images,
            labels,
            recipe,
            milestones,
            seed=self.seed,
            name=name,
            progress=wanted(),
        )

    def _judge(self, trained: Trained, supply: Supply, attack: Attack) -> dict[str, Any]:
        """Return accuracies, losses, and the norms that the worst of all attacks needs."""
        from featavg.datasets.cache import cache_folder
        from featavg.vision.worst import worst_norms

        positive = (0,) if supply.kind == "score" else self.positive
        labels = self._own_classes(self.data.test_labels, supply)
        readouts = _signed_readouts(trained.model, self.data.test_images, labels, positive)
        on_training = _signed_readouts(trained.model, *self._training_images(supply), positive)
        attacked = slice(0, attack.images)
        norms = worst_norms(
            trained.model,
            self.data.test_images[attacked],
            labels[attacked],
            radii=list(attack.radii),
            positive=positive,
            steps=attack.minimal_steps,
            pgd_steps=attack.pgd_steps,
            restarts=attack.restarts,
            seed=self.seed,
            folder=cache_folder("attacks"),
            progress=wanted(),
        )
        return {
            "clean": float((readouts > 0).mean()),
            "robust": (norms[:, None] > np.array(attack.radii)).mean(axis=0),
            "median_norm": float(np.median(norms)),
            "norms": norms,
            "loss": trained.losses[-1],
            "side_loss": float(np.logaddexp(0, -on_training).mean()),
            "epochs": float(len(trained.losses)),
        }

    def _training_images(self, supply: Supply) -> tuple[Any, IntArray]:
        """Return the first training images, from which the loss of the side is estimated."""
        images, labels = (some[:_LOSS_IMAGES] for some in self._images)
        return images, self._own_classes(labels, supply)

    def _own_classes(self, labels: IntArray, supply: Supply) -> IntArray:
        """Return the network's own classes: the ten, or 0 for positive and 1 for negative."""
        if supply.classes == CLASSES:
            return labels
        return np.where(np.isin(labels, self.positive), 0, 1)


def _signed_readouts(
    model: Any, images: Any, labels: IntArray, positive: tuple[int, ...]
) -> FloatArray:
    """Return the readout, positive where the decision is right; its softplus is the loss."""
    import torch

    from featavg.vision.evaluation import outputs
    from featavg.vision.objectives import readout, sides

    logits = outputs(model, images).double()
    side = torch.tensor([j in positive for j in range(logits.shape[1])])
    signed: FloatArray = (sides(torch.tensor(labels), side) * readout(logits, side)).numpy()
    return signed


def _features(model: Any, images: Any) -> FloatArray:
    """Return the embedding below the last layer, shape (images, features)."""
    from torch import nn

    from featavg.vision.evaluation import outputs

    class Features(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return self.model.features(x)

    found: FloatArray = outputs(Features(), images).numpy()
    return found

"""CIFAR-10 seen by a frozen backbone: the setting that Figures 2 (c, d) and 10 share.

Two decisions, taken before any result was seen:

Centring. Embeddings share a large common part (those that end in a ReLU have no negative entry), so
raw class means are far from orthogonal, which Assumption 3.2 asks for. Subtracting the mean of the
training embeddings removes what all classes share; what is left of ten equally different classes
has pairwise cosines of -1/9. That is the default, and also the only way in which the averaging
index can tell anything, see `averaging_index_per_neuron`. With ``center="none"`` the heads are
trained on raw embeddings, and the index is still that of the centred class means.

Scale. One factor for all points brings their mean squared norm to the number of coordinates, as in
the law of the paper, where a centre has the norm √d. Radii are in these units; divided by √d they
are in units of the typical norm of an embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from featavg import _checks
from featavg._checks import FloatArray, InputError, IntArray
from featavg.experiments.base import parameter
from featavg.law import Sample
from featavg.progress import wanted

DATA = "cifar10"


@dataclass(frozen=True, eq=False)
class Embedded:
    """Embeddings of training and test images, as the backbone gave them, and their classes."""

    train: FloatArray
    train_classes: IntArray
    test: FloatArray
    test_classes: IntArray
    class_names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class EmbeddedSetting:
    """Which images, embedded by what."""

    backbone: Literal["efficientnet-lite0", "clip-vit-b32", "resnet18"] = parameter(
        "efficientnet-lite0", "the frozen network"
    )
    checkpoint: str | None = parameter(
        None, "the weights of resnet18 (a checkpoint) or of clip-vit-b32 (a folder)"
    )
    size: int | None = parameter(
        None, "height and width that images are brought to; by default the backbone's own"
    )
    samples: int = parameter(50_000, "n, the number of training images, the first ones")
    test_samples: int = parameter(10_000, "the number of test images, the first ones")

    def __post_init__(self) -> None:
        for name in ("samples", "test_samples"):
            object.__setattr__(self, name, _checks.count(name, getattr(self, name)))
        if self.size is not None:
            object.__setattr__(self, "size", _checks.count("size", self.size))

    def load(self) -> Embedded:
        """Return the embeddings, computing those that are not kept yet."""
        try:
            from featavg.vision.backbones import load_backbone
            from featavg.vision.embeddings import embed
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise InputError("embeddings need PyTorch: pip install 'featavg[vision]'.") from None
        from featavg.vision import datasets

        data = datasets.load(DATA)
        for name, have in (("samples", data.train_labels), ("test_samples", data.test_labels)):
            if getattr(self, name) > len(have):
                raise InputError(
                    f"{name} must be at most {len(have):,}, all images there are; "
                    f"got {getattr(self, name)}."
                )
        backbone = load_backbone(self.backbone, size=self.size, checkpoint=self.checkpoint)
        n, test_n = self.samples, self.test_samples
        return Embedded(
            embed(data.train_images[:n], backbone, progress=wanted()),
            data.train_labels[:n],
            embed(data.test_images[:test_n], backbone, progress=wanted()),
            data.test_labels[:test_n],
            data.class_names,
        )


def prepared(embedded: Embedded, *, center: str, positive: int) -> tuple[Sample, Sample]:
    """Return the training and test embeddings as samples: centred or not, and scaled.

    Both are moved and scaled by what the training embeddings say, and both have their centres.
    """
    train, test = embedded.train.astype(np.float64), embedded.test.astype(np.float64)
    shift = train.mean(axis=0) if center == "mean" else np.zeros(train.shape[1])
    factor = 1 / np.sqrt(np.square(train - shift).mean())
    points = ((train - shift) * factor).astype(np.float32)
    sample = Sample.of_points(points, embedded.train_classes, positive=positive)
    held_back = ((test - shift) * factor).astype(np.float32)
    return sample, Sample.of_points(
        held_back, embedded.test_classes, positive=positive, centers=sample.centers
    )


def centered(sample: Sample) -> Sample:
    """Return the same points with centres from which the mean of all centres is subtracted."""
    centers = sample.centers - sample.centers.mean(axis=0)
    return Sample.of_points(
        sample.x, sample.cluster, positive=sample.law.positive_clusters, centers=centers
    )

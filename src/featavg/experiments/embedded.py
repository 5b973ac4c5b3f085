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

from featavg import checks, datasets
from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.lab.experiment import parameter
from featavg.progress import wanted

DATA = "cifar10"
CLASS_NAMES = datasets.CATALOGUE[DATA].classes


@dataclass(frozen=True, eq=False)
class Embedded:
    """Embeddings of training and test images, as the backbone gave them, and their classes."""

    train: FloatArray
    train_classes: IntArray
    test: FloatArray
    test_classes: IntArray


@dataclass(frozen=True, kw_only=True)
class EmbeddedSetting:
    """Which images, embedded by what."""

    backbone: Literal["efficientnet-lite0", "clip-vit-b32", "resnet18"] = parameter(
        "efficientnet-lite0", "the frozen network"
    )
    checkpoint: str | None = parameter(
        None, "the checkpoint of a ResNet of ours, or the folder of CLIP"
    )
    size: int | None = parameter(
        None, "pixels a side that images of efficientnet-lite0 get; the others have one size"
    )
    samples: int = parameter(50_000, "n, the number of training images, the first ones")

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", checks.count("samples", self.samples))
        if self.size is not None:
            object.__setattr__(self, "size", checks.count("size", self.size))

    def load(self, test_samples: int = 0) -> Embedded:
        """Return the embeddings, computing those that are not kept yet."""
        try:
            from featavg.vision.backbones import load_backbone
            from featavg.vision.embeddings import embed
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise InputError("embeddings need PyTorch: pip install 'featavg[vision]'.") from None
        data = datasets.load(DATA)
        asked = {"samples": self.samples, "test_samples": test_samples}
        for (name, count), have in zip(
            asked.items(), (len(data.train_labels), len(data.test_labels)), strict=True
        ):
            if count > have:
                raise InputError(
                    f"{name} must be at most {have:,}, all images there are; got {count}."
                )
        size = self.size if self.backbone == "efficientnet-lite0" else None
        backbone = load_backbone(self.backbone, size=size, checkpoint=self.checkpoint)
        train = embed(data.train_images[: self.samples], backbone, progress=wanted())
        test = train[:0]
        if test_samples:
            test = embed(data.test_images[:test_samples], backbone, progress=wanted())
        return Embedded(
            train,
            data.train_labels[: self.samples],
            test,
            data.test_labels[:test_samples],
        )


def prepared(embedded: Embedded, *, center: str, positive: int) -> tuple[Sample, Sample]:
    """Return the training and test embeddings as samples: centred or not, and scaled.

    Both are moved and scaled by what the training embeddings say, and both have their centres.
    """
    train, test = embedded.train, embedded.test
    shift = train.mean(axis=0, dtype=np.float64).astype(train.dtype)
    if center == "none":
        shift = np.zeros_like(shift)
    points, held_back = train - shift, test - shift
    factor = 1 / np.sqrt(np.square(points).mean(dtype=np.float64))
    for some in (points, held_back):
        some *= factor.astype(some.dtype)
    sample = Sample.from_points(points, embedded.train_classes, positive=positive)
    return sample, Sample.from_points(
        held_back, embedded.test_classes, positive=positive, centers=sample.centers
    )


def centered(sample: Sample) -> Sample:
    """Return the same points with centres from which the mean of all centres is subtracted."""
    centers = sample.centers - sample.centers.mean(axis=0)
    return Sample.from_points(
        sample.x, sample.cluster, positive=sample.law.positive_clusters, centers=centers
    )

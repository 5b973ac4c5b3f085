"""CIFAR-10 embedded by a frozen backbone: the common setting of Figures 2 (c, d) and 10.

Two decisions were made before any result was known:

Centring. Embeddings have a large common part (those after a ReLU have no negative entry), so raw
class means are far from orthogonal, which Assumption 3.2 requires. Subtracting the mean of the
training embeddings removes the common part; ten equally different classes then have pairwise
cosines of -1/9. This is the default, and without it the averaging index is not informative, see
`averaging_index_per_neuron`. With ``center="none"`` the heads are trained on raw embeddings, and
the index is still that of the centred class means.

Scale. One factor for all points brings their mean squared norm to the number of coordinates, as in
the law of the paper, where a centre has the norm √d. Radii are in these units; divided by √d they
are in units of the typical norm of an embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from featavg import datasets
from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError, optional_imports
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.progress import wanted

DATA = "cifar10"
CLASS_NAMES = datasets.CATALOGUE[DATA].classes
_SIZED = ("efficientnet-lite0", "resnet50")  # they accept images of several sizes


@dataclass(frozen=True, eq=False)
class Embedded:
    """Raw embeddings of training and test images, and their classes."""

    train: FloatArray
    train_classes: IntArray
    test: FloatArray
    test_classes: IntArray


@dataclass(frozen=True, kw_only=True)
class EmbeddedSetting(CheckedParameters):
    """The images and the backbone."""

    backbone: Literal["efficientnet-lite0", "resnet50", "clip-vit-b32", "resnet18"] = parameter(
        "efficientnet-lite0", "the frozen network"
    )
    checkpoint: str | None = parameter(
        None, "the checkpoint of a ResNet of ours, or the folder of CLIP"
    )
    size: int | None = parameter(
        None, "pixels a side, for efficientnet-lite0 and resnet50; the others have one size"
    )
    samples: int = parameter(50_000, "n, the number of training images, the first ones")

    def load(self, test_samples: int = 0) -> Embedded:
        """Return the embeddings, from the cache or computed."""
        with optional_imports("the embedding of images"):
            from featavg.vision.backbones import load_backbone
            from featavg.vision.embeddings import embed
        data = datasets.load(DATA)
        for name, count, available in (
            ("samples", self.samples, len(data.train_labels)),
            ("test_samples", test_samples, len(data.test_labels)),
        ):
            if count > available:
                raise InputError(
                    f"{name} must be at most {available:,}, the number of images; got {count}."
                )
        size = self.size if self.backbone in _SIZED else None
        backbone = load_backbone(self.backbone, size=size, checkpoint=self.checkpoint)
        train = embed(data.train_images[: self.samples], backbone, progress=wanted())
        test = train[:0]
        if test_samples:
            test = embed(data.test_images[:test_samples], backbone, progress=wanted())
        train_classes = data.train_labels[: self.samples]
        return Embedded(train, train_classes, test, data.test_labels[:test_samples])


def prepared(embedded: Embedded, *, center: str, positive: int) -> tuple[Sample, Sample]:
    """Return the training and test embeddings as samples, scaled and possibly centred.

    Shift, scale and centres of both are those of the training embeddings.
    """
    train, test = embedded.train, embedded.test
    shift = train.mean(axis=0, dtype=np.float64).astype(train.dtype)
    if center == "none":
        shift = np.zeros_like(shift)
    points, held_out = train - shift, test - shift
    factor = 1 / np.sqrt(np.square(points).mean(dtype=np.float64))
    for some in (points, held_out):
        some *= factor.astype(some.dtype)
    sample = Sample.from_points(points, embedded.train_classes, positive=positive)
    return sample, Sample.from_points(
        held_out, embedded.test_classes, positive=positive, centers=sample.centers
    )


def centered(sample: Sample) -> Sample:
    """Return the same points with centres minus the mean of all centres."""
    centers = sample.centers - sample.centers.mean(axis=0)
    return Sample.from_points(
        sample.x, sample.cluster, positive=sample.law.positive_clusters, centers=centers
    )

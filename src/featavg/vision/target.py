"""The state of an attack: the network, a batch of its images, and the best perturbations so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.errors import InputError
from featavg.vision import objectives
from featavg.vision.evaluation import (
    checked_labels,
    checked_pixels,
    evaluating,
    logits_of,
    to_model,
)
from featavg.vision.models import widest_float

Positive = int | list[int] | tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of images on the network's device, with the network that is attacked.

    `x` has pixels in [0, 1]; `labels` are the network's own classes; `positive` says which classes
    are on the positive side of the decision.
    """

    model: nn.Module
    x: Tensor
    labels: Tensor
    positive: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        with torch.no_grad():
            return logits_of(self.model, images)

    def wrong(self, logits: Tensor) -> Tensor:
        """Return where the decision is wrong."""
        return objectives.wrong(logits, self.labels, self.positive)

    def clearly_wrong(self, logits: Tensor) -> Tensor:
        """Return where the decision is wrong by more than the rounding error."""
        return objectives.clearly_wrong(logits, self.labels, self.positive)

    def norms(self, images: Tensor) -> Tensor:
        """Return the distance of each image from `x`, in the widest dtype."""
        dtype = widest_float(self.x.device)
        return (images.to(dtype) - self.x.to(dtype)).flatten(1).norm(dim=1)

    def descent(self, images: Tensor, objective: str) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits, unit vectors of steepest descent of the objective, and its slopes.

        A direction is 0 where the gradient is 0 or not finite.
        """
        with torch.enable_grad():
            inputs = images.detach().clone().requires_grad_()
            logits = logits_of(self.model, inputs)
            value = objectives.objective(objective, logits, self.labels, self.positive)
            (gradient,) = torch.autograd.grad(value.sum(), inputs)
        flat = gradient.flatten(1)
        # divided by the largest entry first: the squares of tiny gradients would underflow
        largest = flat.abs().amax(1, keepdim=True)
        usable = torch.isfinite(largest) & (largest > 0)
        flat = torch.where(usable, flat / largest, 0)
        norm = flat.norm(dim=1, keepdim=True)
        unit = torch.where(usable, -flat / norm, 0).reshape(images.shape)
        return logits.detach(), unit, torch.where(usable, largest * norm, 0)[:, 0]

    def moved(self, perturbations: Tensor) -> Tensor:
        """Return x plus perturbations, within [0, 1] also after rounding."""
        return (self.x + perturbations).clamp(0, 1)


@dataclass(eq=False)
class Best:
    """The nearest misclassified image found so far; the image itself where there is none."""

    norms: Tensor
    images: Tensor

    @classmethod
    def of(cls, batch: Batch) -> Best:
        """Start from the images alone; those that are misclassified need no perturbation."""
        wrong = batch.wrong(batch.logits(batch.x))
        nothing = torch.full((len(batch),), torch.inf, dtype=widest_float(batch.x.device))
        return cls(torch.where(wrong, 0, nothing.to(batch.x.device)), batch.x.clone())

    @contextmanager
    def subset(self, batch: Batch, which: Tensor) -> Iterator[tuple[Batch, Best]]:
        """Work on some of the images; the results are written back at the end."""
        part = Batch(batch.model, batch.x[which], batch.labels[which], batch.positive)
        found = Best(self.norms[which], self.images[which])
        yield part, found
        self.norms[which], self.images[which] = found.norms, found.images

    def offer(self, batch: Batch, images: Tensor, wrong: Tensor | None = None) -> Tensor:
        """Take misclassified images that are nearer; return which images are misclassified."""
        if wrong is None:
            wrong = batch.clearly_wrong(batch.logits(images))
        self.merge(Best(torch.where(wrong, batch.norms(images), torch.inf), images))
        return wrong

    def merge(self, other: Best) -> None:
        """Take the images of another that are nearer."""
        better = other.norms < self.norms
        self.norms = torch.where(better, other.norms, self.norms)
        each = better.reshape(-1, *[1] * (self.images.ndim - 1))
        self.images = torch.where(each, other.images, self.images)

    def copy(self) -> Best:
        """Return a copy."""
        return Best(self.norms.clone(), self.images.clone())

    def improvable(self) -> Tensor:
        """Return the indices of images for which a perturbation was needed and found."""
        return torch.nonzero(torch.isfinite(self.norms) & (self.norms > 0))[:, 0]

    def arrays(self) -> dict[str, Any]:
        """Return the norms and the images as arrays, named as in `ImageAttack`."""
        norms = self.norms.cpu().numpy().astype(np.float64)
        return {"norms": norms, "adversarial": self.images.cpu().numpy()}


@dataclass(frozen=True, eq=False)
class Target:
    """A network and all images that it is attacked on, checked."""

    model: nn.Module
    images: Tensor
    labels: Tensor
    positive: tuple[int, ...]
    classes: int

    @classmethod
    def of(
        cls,
        model: nn.Module,
        images: ArrayLike | Tensor,
        labels: ArrayLike | Tensor,
        positive: Positive,
    ) -> Target:
        """Check the arguments of an attack."""
        pixels = checked_pixels(images)
        own = checked_labels(labels, len(pixels))
        with evaluating(model), torch.no_grad():
            logits = logits_of(model, to_model(model, pixels[:1]))
        if logits.ndim != 2 or logits.shape[1] < 2:
            raise InputError(
                "model must return at least two logits for each image; "
                f"got the shape {tuple(logits.shape)} for one image."
            )
        classes = logits.shape[1]
        if int(own.max()) >= classes:
            raise InputError(
                f"labels must be the network's own classes, from 0 to {classes - 1}; "
                f"got {int(own.max())}."
            )
        return cls(model, pixels, own, checks.partition(positive, classes), classes)

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, index: int, size: int) -> Batch:
        """Return the batch with this index, of at most `size` images."""
        part = slice(index * size, (index + 1) * size)
        x = to_model(self.model, self.images[part])
        positive = torch.zeros(self.classes, dtype=torch.bool)
        positive[list(self.positive)] = True
        return Batch(self.model, x, self.labels[part].to(x.device), positive.to(x.device))

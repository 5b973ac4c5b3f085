"""Images under attack: what is shared by the attacks on image classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.errors import InputError
from featavg.vision import objectives
from featavg.vision.augmentation import checked, checked_labels
from featavg.vision.models import memory_format
from featavg.vision.objectives import wide


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

    def subset(self, which: Tensor) -> Batch:
        """Return a part of the images."""
        return Batch(self.model, self.x[which], self.labels[which], self.positive)

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        with torch.no_grad():
            return _apply(self.model, images)

    def wrong(self, logits: Tensor) -> Tensor:
        """Return where the decision is wrong."""
        return objectives.wrong(logits, self.labels, self.positive)

    def turned(self, logits: Tensor) -> Tensor:
        """Return where the decision is wrong, beyond doubt by rounding."""
        return objectives.clearly_wrong(logits, self.labels, self.positive)

    def norms(self, images: Tensor) -> Tensor:
        """Return the distance of each image from `x`, in the widest type."""
        kind = wide(self.x.device)
        return (images.to(kind) - self.x.to(kind)).flatten(1).norm(dim=1)

    def descent(self, images: Tensor, objective: str) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits, the unit vectors along which the objective falls, and its slopes there.

        A direction is 0 where the gradient is 0 or not finite.
        """
        with torch.enable_grad():
            inputs = images.detach().clone().requires_grad_()
            logits = _apply(self.model, inputs)
            value = objectives.objective(objective, logits, self.labels, self.positive)
            (gradient,) = torch.autograd.grad(value.sum(), inputs)
        flat = gradient.flatten(1)
        # by the largest entry first: the squares of tiny gradients would underflow
        largest = flat.abs().amax(1, keepdim=True)
        usable = torch.isfinite(largest) & (largest > 0)
        flat = torch.where(usable, flat / largest, 0)
        norm = flat.norm(dim=1, keepdim=True)
        unit = torch.where(usable, -flat / norm, 0).reshape(images.shape)
        return logits.detach(), unit, torch.where(usable, largest * norm, 0)[:, 0]

    def moved(self, perturbations: Tensor) -> Tensor:
        """Return images: x plus perturbations, within [0, 1] also after rounding."""
        return (self.x + perturbations).clamp(0, 1)


@dataclass(eq=False)
class Best:
    """The nearest image so far that turns the decision; the image itself where there is none."""

    norms: Tensor
    images: Tensor

    @classmethod
    def of(cls, batch: Batch) -> Best:
        """Start with nothing found; images whose decision is wrong need no perturbation."""
        wrong = batch.wrong(batch.logits(batch.x))
        nothing = torch.full((len(batch),), torch.inf, dtype=wide(batch.x.device))
        return cls(torch.where(wrong, 0, nothing.to(batch.x.device)), batch.x.clone())

    def offer(self, batch: Batch, images: Tensor, turned: Tensor | None = None) -> Tensor:
        """Take what turns the decision and is nearer; return where anything turns it."""
        if turned is None:
            turned = batch.turned(batch.logits(images))
        self.merge(Best(torch.where(turned, batch.norms(images), torch.inf), images))
        return turned

    def merge(self, other: Best) -> None:
        """Take what is nearer of another."""
        better = other.norms < self.norms
        self.norms = torch.where(better, other.norms, self.norms)
        each = better.reshape(-1, *[1] * (self.images.ndim - 1))
        self.images = torch.where(each, other.images, self.images)

    def copy(self) -> Best:
        """Return the same, to be improved apart."""
        return Best(self.norms.clone(), self.images.clone())

    def open(self) -> Tensor:
        """Return the indices of images that were right and for which something was found."""
        return torch.nonzero(torch.isfinite(self.norms) & (self.norms > 0))[:, 0]


@dataclass(frozen=True, eq=False)
class Target:
    """A network and all images it is to be attacked on, checked."""

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
        positive: int | list[int] | tuple[int, ...] | None,
    ) -> Target:
        """Check what was handed in."""
        pixels = _pixels(images)
        own = checked_labels(labels, len(pixels))
        with evaluating(model), torch.no_grad():
            logits = _apply(model, _to_model(model, pixels[:1]))
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

    def objective(self, name: str) -> str:
        """Return the name of an objective."""
        return checks.choice("objective", name, objectives.OBJECTIVES)

    def batch(self, first: int, size: int) -> Batch:
        """Return the images from `first` on, at most `size` of them."""
        part = slice(first, first + size)
        x = _to_model(self.model, self.images[part])
        positive = torch.zeros(self.classes, dtype=torch.bool)
        positive[list(self.positive)] = True
        return Batch(self.model, x, self.labels[part].to(x.device), positive.to(x.device))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a network into evaluation mode for a while."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _apply(model: nn.Module, images: Tensor) -> Tensor:
    """Return the logits, with the memory layout that training uses."""
    layout = memory_format(model) if images.ndim == 4 else torch.contiguous_format
    logits: Tensor = model(images.contiguous(memory_format=layout))
    return logits


def _to_model(model: nn.Module, pixels: Tensor) -> Tensor:
    """Return images in [0, 1] on the device and in the type of a network."""
    parameter = next(model.parameters(), torch.zeros(1))
    moved = pixels.to(parameter.device)
    return moved.to(parameter.dtype) / (255 if pixels.dtype == torch.uint8 else 1)


def _pixels(images: ArrayLike | Tensor) -> Tensor:
    """Return uint8 images, or floating-point ones in [0, 1], as a tensor on the CPU."""
    if not isinstance(images, Tensor):
        array = np.asarray(images)
        if array.dtype == np.uint8:
            return checked(array)
        images = torch.from_numpy(np.array(checks.numbers("images", array)))
    if not images.is_floating_point():
        return checked(images)
    if images.ndim != 4 or 0 in images.shape:
        raise InputError(
            f"images must be of shape (images, channels, height, width); got {tuple(images.shape)}."
        )
    if not ((images >= 0) & (images <= 1)).all():
        raise InputError(
            "images must be within [0, 1], where floating point, because attacks stay there; "
            f"got values from {float(images.min()):g} to {float(images.max()):g}."
        )
    return images.detach().cpu()

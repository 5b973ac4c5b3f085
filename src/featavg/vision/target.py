"""The state of an attack: the network, its images, and the best perturbations so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.errors import InputError
from featavg.vision import evaluation, objectives
from featavg.vision.models import widest_float

Positive = int | list[int] | tuple[int, ...] | None
# The error of the logits of a deep network, in roundings of the largest one.
_ROUNDINGS = 32


@dataclass(frozen=True, eq=False)
class Target:
    """A network and images that it is attacked on.

    `x` are the images: a batch has pixels in [0, 1] and is on the network's device. `labels` are
    the network's own classes; `positive` says which classes are on the positive side of the
    decision. `aims` are the classes that the objective "targeted" leads to; None without one.
    """

    model: nn.Module
    x: Tensor
    labels: Tensor
    positive: Tensor
    aims: Tensor | None = None

    @classmethod
    def of(
        cls,
        model: nn.Module,
        images: ArrayLike | Tensor,
        labels: ArrayLike | Tensor,
        positive: Positive,
    ) -> Target:
        """Check the arguments of an attack."""
        pixels = evaluation.checked_pixels(images)
        own = evaluation.checked_labels(labels, len(pixels))
        logits = evaluation.outputs(model, pixels[:1])
        evaluation.refuse_single_outputs(logits)
        classes = logits.shape[1]
        if int(own.max()) >= classes:
            raise InputError(
                f"labels must be the network's own classes, from 0 to {classes - 1}; "
                f"got {int(own.max())}."
            )
        return cls(
            model, pixels, own, torch.tensor(checks.signs_of_partition(positive, classes)) > 0
        )

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, index: int, size: int) -> Target:
        """Return the batch with this index, of at most `size` images, on the network's device."""
        part = slice(index * size, (index + 1) * size)
        x = evaluation.to_model(self.model, self.x[part])
        return Target(self.model, x, self.labels[part].to(x.device), self.positive.to(x.device))

    def part(self, which: Tensor) -> Target:
        """Return some of the images of a batch."""
        aims = None if self.aims is None else self.aims[which]
        return replace(self, x=self.x[which], labels=self.labels[which], aims=aims)

    def aimed_at(self, rank: int) -> Target:
        """Return the same images, aimed at the class of the other side with this rank.

        Rank 0 is the class with the largest logit of the other side at the image itself. A side
        with fewer classes than the rank is gone through from the start again.
        """
        own = self.positive == self.positive[self.labels][:, None]
        order = self.logits(self.x).masked_fill(own, -torch.inf).argsort(1, descending=True)
        ranks = rank % (~own).sum(1, keepdim=True)
        return replace(self, aims=order.gather(1, ranks)[:, 0])

    @property
    def most_aims(self) -> int:
        """The number of classes on the larger side."""
        positive = int(self.positive.sum())
        return max(positive, len(self.positive) - positive)

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        with torch.no_grad():
            return evaluation.logits_of(self.model, images)

    def clearly_wrong(self, logits: Tensor) -> Tensor:
        """Return where the decision is wrong by more than the rounding error of the logits.

        An attack succeeds only where this holds, so that its result does not depend on the size of
        the batch or on the device.
        """
        exact = logits.to(widest_float(logits.device))
        doubt = _ROUNDINGS * torch.finfo(logits.dtype).eps * exact.abs().amax(1)
        y = objectives.sides(self.labels, self.positive)
        return y * objectives.readout(exact, self.positive) < -doubt

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
            logits = evaluation.logits_of(self.model, inputs.clone())  # it may change them
            gradient = evaluation.input_gradient(self._objective(objective, logits).sum(), inputs)
        flat = gradient.flatten(1)
        # divided by the largest entry first: the squares of tiny gradients would underflow
        largest = flat.abs().amax(1, keepdim=True)
        usable = torch.isfinite(largest) & (largest > 0)
        flat = torch.where(usable, flat / largest, 0)
        norm = flat.norm(dim=1, keepdim=True)
        unit = torch.where(usable, -flat / norm, 0).reshape(images.shape)
        return logits.detach(), unit, torch.where(usable, largest * norm, 0)[:, 0]

    def _objective(self, name: str, logits: Tensor) -> Tensor:
        if name != objectives.TARGETED:
            return objectives.objective(name, logits, self.labels, self.positive)
        assert self.aims is not None  # noqa: S101  attacks with targets choose them first
        return objectives.aimed(logits, self.labels, self.positive, self.aims)

    def moved(self, perturbations: Tensor) -> Tensor:
        """Return x plus perturbations, within [0, 1] also after rounding."""
        return (self.x + perturbations).clamp(0, 1)


@dataclass(eq=False)
class Best:
    """The nearest misclassified image found so far; the image itself where there is none."""

    norms: Tensor
    images: Tensor

    @classmethod
    def of(cls, batch: Target) -> Best:
        """Start from the images alone; those that are misclassified need no perturbation."""
        wrong = objectives.wrong(batch.logits(batch.x), batch.labels, batch.positive)
        return cls(torch.where(wrong, batch.norms(batch.x), torch.inf), batch.x.clone())

    @contextmanager
    def subset(self, batch: Target, which: Tensor) -> Iterator[tuple[Target, Best]]:
        """Work on some of the images; the results are written back at the end."""
        found = Best(self.norms[which], self.images[which])
        yield batch.part(which), found
        self.norms[which], self.images[which] = found.norms, found.images

    def offer(self, batch: Target, images: Tensor, wrong: Tensor | None = None) -> Tensor:
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

    def improvable(self) -> Tensor:
        """Return the indices of images for which a perturbation was needed and found."""
        return torch.nonzero(torch.isfinite(self.norms) & (self.norms > 0))[:, 0]

    def arrays(self) -> dict[str, Any]:
        """Return the norms and the images as arrays, named as in `PgdAttack`."""
        norms = self.norms.cpu().numpy().astype(np.float64)
        return {"norms": norms, "adversarial": self.images.cpu().numpy()}

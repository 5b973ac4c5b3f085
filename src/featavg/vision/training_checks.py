"""Checks of the arguments of a training."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg.errors import InputError
from featavg.vision.evaluation import checked_labels
from featavg.vision.models import ImageClassifier
from featavg.vision.recipes import Recipe
from featavg.vision.supplied_labels import SuppliedLabels


def targets(labels: ArrayLike | Tensor | SuppliedLabels, images: int) -> Tensor:
    """Return the labels as losses take them: a class for each image, or a row of targets."""
    if not isinstance(labels, SuppliedLabels):
        return checked_labels(labels, images)
    if len(labels) != images:
        raise InputError(f"labels must be those of the {images} images; got {len(labels)}.")
    return labels.targets


def classes(labels: Tensor, logits: int) -> None:
    """Refuse labels that do not fit the number of logits."""
    if labels.ndim == 2 and labels.shape[1] != logits:
        raise InputError(
            f"labels must have as many classes as the network has logits, {logits}; "
            f"got {labels.shape[1]}."
        )
    if labels.ndim == 1 and int(labels.max()) >= logits:
        raise InputError(
            f"labels must be from 0 to {logits - 1} for this network; got {int(labels.max())}."
        )


def shapes(net: ImageClassifier, images: Tensor, recipe: Recipe) -> None:
    """Refuse images that do not fit the network."""
    size = getattr(net, "size", None)
    if size and recipe.small_epochs:
        raise InputError(
            "small_epochs must be 0 because this network accepts images of one size only; "
            f"got {recipe.small_epochs}."
        )
    if images.shape[1] != net.channels or (size and images.shape[2:] != (size, size)):
        pixels = f" of {size}×{size} pixels" if size else ""
        raise InputError(
            f"images must have {net.channels} channels{pixels} for this network; "
            f"got the shape {tuple(images.shape)}."
        )


def finite(net: nn.Module, epoch: int, recipe: Recipe) -> None:
    """Refuse weights that are not finite; the loss of the last step does not show them."""
    for name, value in net.named_parameters():
        if not torch.isfinite(value).all():
            raise InputError(
                f"weights must stay finite; got NaN or infinity in {name} after epoch {epoch} with "
                f"the learning_rate {recipe.learning_rate!r}."
            )

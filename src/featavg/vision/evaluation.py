"""Applying networks to images: checks of images and labels, logits and accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.errors import InputError
from featavg.vision.models import in_layout, memory_format


def outputs(model: nn.Module, images: ArrayLike | Tensor, *, batch: int = 500) -> Tensor:
    """Return the logits of images, on the CPU, shape (images, classes).

    Paper: none. The network is used in evaluation mode, on its own device.

    Parameters
    ----------
    model : torch.nn.Module
        Takes images in [0, 1].
    images : array or tensor, shape (images, channels, height, width)
        uint8 from 0 to 255, or floating-point in [0, 1].
    batch : int
        The number of images in a batch.
    """
    pixels = checked_pixels(images)
    with evaluating(model), torch.inference_mode():
        parts = torch.split(pixels, checks.count("batch", batch))
        return torch.cat([logits_of(model, to_model(model, part)).cpu() for part in parts])


def accuracy(
    model: nn.Module,
    images: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    *,
    batch: int = 500,
) -> float:
    """Return the share of images whose largest logit is that of their label.

    Paper: none. See `outputs` for the parameters.
    """
    logits = outputs(model, images, batch=batch)
    refuse_single_outputs(logits)
    targets = checked_labels(labels, len(logits))
    if int(targets.max()) >= logits.shape[1]:
        raise InputError(
            f"labels must be the network's own classes, from 0 to {logits.shape[1] - 1}; "
            f"got {int(targets.max())}."
        )
    return float((logits.argmax(1) == targets).double().mean())


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch a network to evaluation mode, and each of its modules back to its own afterwards."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a torch.nn.Module; got {type(model).__name__}.")
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training


def logits_of(model: nn.Module, images: Tensor) -> Tensor:
    """Apply a network to images in the memory layout of `memory_format`.

    An output that is not finite is refused: as a number it would be a decision for one side.
    """
    layout = memory_format(model) if images.ndim == 4 else torch.contiguous_format
    logits = model(in_layout(images, layout))
    if not isinstance(logits, Tensor) or logits.ndim < 1 or len(logits) != len(images):
        got = (
            f"the shape {tuple(logits.shape)} for {len(images)} images"
            if isinstance(logits, Tensor)
            else type(logits).__name__
        )
        raise InputError(f"model must return a tensor with a row for each image; got {got}.")
    finite = torch.isfinite(logits).reshape(len(logits), -1).all(1)
    if not finite.all():
        raise InputError(
            "model must return finite logits; got NaN or infinity for "
            f"{int((~finite).sum())} of {len(finite)} images."
        )
    return logits


def input_gradient(value: Tensor, images: Tensor) -> Tensor:
    """Return the gradient of a number with respect to images; refuse what does not have one."""
    gradient = None
    if value.requires_grad:
        (gradient,) = torch.autograd.grad(value, images, allow_unused=True)
    if gradient is None:
        raise InputError(
            "model must have gradients with respect to its images, which attacks follow; its "
            "logits have none."
        )
    return gradient


def refuse_single_outputs(logits: Tensor) -> None:
    """Refuse the outputs of a network that has less than two logits for each image."""
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InputError(
            "model must return at least two logits for each image; "
            f"got the shape {tuple(logits.shape)} for {len(logits)} images."
        )


def to_model(model: nn.Module, pixels: Tensor) -> Tensor:
    """Return images in [0, 1] on the device and in the dtype of a network."""
    like = number_format(model)
    moved = pixels.to(like.device)
    return moved.to(like.dtype) / (255 if pixels.dtype == torch.uint8 else 1)


def number_format(model: nn.Module) -> Tensor:
    """Return a tensor with the device and the floating-point type of a network.

    They are those of its first matrix or kernel, since scalars may have another type.
    """
    floating = [value for value in model.parameters() if value.is_floating_point()]
    matrices = [value for value in floating if value.ndim > 1]
    return next(iter([*matrices, *floating]), torch.zeros(1)).detach()


def checked_images(images: ArrayLike | Tensor) -> Tensor:
    """Return uint8 images, shape (images, channels, height, width), as a tensor on the CPU."""
    pixels = images if isinstance(images, Tensor) else np.asarray(images)
    dtype = str(pixels.dtype).removeprefix("torch.")
    if dtype != "uint8" or pixels.ndim != 4 or 0 in pixels.shape:
        raise InputError(
            "images must be uint8, of shape (images, channels, height, width); "
            f"got {dtype} of shape {tuple(pixels.shape)}."
        )
    if isinstance(pixels, Tensor):
        return pixels.cpu()
    # a copy where the array is read-only, which tensors cannot be
    return torch.from_numpy(np.require(pixels, requirements=["C", "W"]))


def checked_pixels(images: ArrayLike | Tensor) -> Tensor:
    """Return uint8 images, or floating-point ones in [0, 1], as a tensor on the CPU."""
    if not isinstance(images, Tensor):
        array = np.asarray(images)
        if array.dtype == np.uint8:
            return checked_images(array)
        images = torch.from_numpy(np.array(checks.numbers("images", array)))
    if not images.is_floating_point():
        return checked_images(images)
    if images.ndim != 4 or 0 in images.shape:
        raise InputError(
            f"images must be of shape (images, channels, height, width); got {tuple(images.shape)}."
        )
    if not ((images >= 0) & (images <= 1)).all():
        raise InputError(
            "images must be within [0, 1] if they are floating-point; "
            f"got values from {float(images.min()):g} to {float(images.max()):g}."
        )
    return images.detach().cpu()


def checked_labels(labels: ArrayLike | Tensor, images: int) -> Tensor:
    """Return labels, whole numbers from 0, as a tensor on the CPU."""
    values = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    return torch.from_numpy(checks.indices("labels", values, length=images, below=2**31))

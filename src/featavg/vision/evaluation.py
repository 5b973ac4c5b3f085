"""What a network says about images, a batch at a time."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.vision.augmentation import checked, checked_labels
from featavg.vision.models import memory_format


def outputs(model: nn.Module, images: ArrayLike | Tensor, *, batch: int = 500) -> Tensor:
    """Return the logits of images, on the CPU, shape (images, classes).

    Paper: none. The network is used in evaluation mode, on the device it is on.

    Parameters
    ----------
    model : torch.nn.Module
        Takes images in [0, 1].
    images : array or tensor, shape (images, channels, height, width)
        uint8 from 0 to 255, or a floating-point tensor in [0, 1].
    batch : int
        Images at a time.
    """
    checks.count("batch", batch)
    if isinstance(images, Tensor) and images.is_floating_point():
        pixels = images
    else:
        pixels = checked(images)
    parameter = next(model.parameters())
    layout = memory_format(model)
    was_training = model.training
    model.eval()
    parts = []
    try:
        with torch.inference_mode():
            for part in torch.split(pixels, batch):
                x = part.to(parameter.device)
                x = x.to(parameter.dtype) / 255 if x.dtype == torch.uint8 else x
                parts.append(model(x.contiguous(memory_format=layout)).cpu())
    finally:
        model.train(was_training)
    return torch.cat(parts)


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
    targets = checked_labels(labels, len(logits))
    return float((logits.argmax(1) == targets).double().mean())

"""The cross-entropy of a network, exact also where it is smaller than any float."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def losses_over(logits: Tensor, labels: Tensor, size: float) -> Tensor:
    """Return the cross-entropy of each image, divided by exp(size)."""
    if size == 0:
        return nn.functional.softplus(excess(logits, labels))
    return (log_losses(logits, labels) - size).exp()


def log_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the logarithm of the cross-entropy log(1 + exp(z)) of each image; below z = -30, z."""
    z = excess(logits, labels)
    return torch.where(z < -30, z, nn.functional.softplus(z.clamp(min=-30)).log())


def excess(logits: Tensor, labels: Tensor) -> Tensor:
    """Return z, logsumexp over the other logits minus the logit of the label.

    The cross-entropy is log(1 + exp(z)), exact also where its usual form rounds to 0.
    """
    own = labels[:, None]
    return logits.scatter(1, own, -math.inf).logsumexp(1) - logits.gather(1, own)[:, 0]

"""Adversarial training of image classifiers: the worst images within a radius."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from featavg.vision.evaluation import evaluating, input_gradient
from featavg.vision.models import in_layout
from featavg.vision.objectives import excess
from featavg.vision.projection import project_to_ball


def perturbed(
    net: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    radius: float,
    steps: int,
    layout: torch.memory_format = torch.contiguous_format,
) -> Tensor:
    """Return images within a radius, in [0, 1], at which the loss of training is large.

    Paper: none, an extension (Madry et al., 2018). From a start that is uniform in the ball,
    `steps` steps of length 2.5·radius/steps along the normalised gradient of `excess`, of which
    the loss is an increasing function; after each, the nearest point of ball and box together. The
    network is in evaluation mode meanwhile. The start is drawn by PyTorch's global generator, which
    `train` seeds for each epoch.

    Parameters
    ----------
    net : torch.nn.Module
        The network in training.
    images : tensor, shape (images, channels, height, width)
        In [0, 1].
    labels : tensor
        Classes, or rows of targets, as the losses of `featavg.vision.objectives` take them.
    radius : float
        The largest L2 norm of a perturbation.
    steps : int
        The number of steps.
    layout : torch.memory_format
        The memory layout of images that the network is given.

    Examples
    --------
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    >>> net[1].weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> image = torch.tensor([0.6, 0.4]).reshape(1, 1, 1, 2)
    >>> worst = perturbed(net, image, torch.tensor([0]), radius=0.1414, steps=20)
    >>> [round(pixel, 1) for pixel in worst.flatten().tolist()]
    [0.5, 0.5]
    """
    noise = torch.randn_like(images).flatten(1)
    lengths = radius * torch.rand(len(images), device=images.device) ** (1 / noise.shape[1])
    found = (noise * (lengths / noise.norm(dim=1))[:, None]).reshape(images.shape)
    found = project_to_ball(found, images, radius)
    with evaluating(net):
        for _ in range(steps):
            at = in_layout((images + found).clamp(0, 1), layout).requires_grad_()
            gradient = input_gradient(excess(net(at), labels).sum(), at)
            norms = gradient.flatten(1).norm(dim=1).clamp(min=torch.finfo(at.dtype).tiny)
            step = 2.5 * radius / steps / norms
            moved = found + step.reshape(-1, 1, 1, 1) * gradient
            found = project_to_ball(moved, images, radius)
    return (images + found).clamp(0, 1)

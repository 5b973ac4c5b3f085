"""The steps of the minimal-norm attack on image classifiers; see `featavg.vision.attacks`."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from featavg.vision.objectives import readout
from featavg.vision.projection import nearest_in_half_space, stretch_to_norm
from featavg.vision.target import Batch, Best

_SHRINK = 0.05  # by how much DDN changes the norm in a step
_OVERSHOOT = 3e-3  # of the first steps along the boundary, so that they end beyond it
_LAST_OVERSHOOT = 3e-5
_LEAST_DAMPING = 0.03


def descend_norm(batch: Batch, best: Best, objective: str, steps: int, stride: float = 1.0) -> None:
    """Run DDN: the norm shrinks where the decision is turned and grows where it is not.

    Lengths are in units of `stride` times each image's first-order distance to the boundary of the
    decision, so that no scale of images is preferred. Another stride often ends elsewhere.
    """
    right = torch.nonzero(best.norms > 0)[:, 0]
    if not len(right):
        return
    own = batch.subset(right)
    found = Best(best.norms[right], best.images[right])
    unit = stride * _first_order_distance(own)
    norm = unit.clone()
    images = own.x
    for step in range(steps):
        logits, direction, _ = own.descent(images, objective)
        turned = own.turned(logits)
        if step:
            found.offer(own, images, turned)
            norm = norm * torch.where(turned, 1 - _SHRINK, 1 + _SHRINK)
        length = unit * _annealed(1.0, 0.01, step, steps)
        images = own.moved(
            stretch_to_norm(images - own.x + _each(length, own.x) * direction, own.x, norm)
        )
    found.offer(own, images)
    best.norms[right], best.images[right] = found.norms, found.images


def shrink(batch: Batch, best: Best, lowest: float = 0.0, bisections: int = 12) -> None:
    """Bisect along the straight line from each image to what was found; it stays in the box.

    Only the part from `lowest` times the perturbation on is searched.
    """
    which = best.open()
    if not len(which):
        return
    own = batch.subset(which)
    found = Best(best.norms[which], best.images[which])
    perturbation = found.images - own.x
    high = torch.ones(len(which), dtype=own.x.dtype, device=own.x.device)
    low = lowest * high
    for _ in range(bisections):
        middle = (low + high) / 2
        turned = found.offer(own, own.moved(_each(middle, own.x) * perturbation))
        high = torch.where(turned, middle, high)
        low = torch.where(turned, low, middle)
    best.norms[which], best.images[which] = found.norms, found.images


def follow_boundary(batch: Batch, best: Best, objective: str, steps: int) -> None:
    r"""Walk along the boundary towards the image.

    At what was found, u from the image, with n the unit vector along which the objective falls, the
    smallest d of the box with :math:`\langle n, d\rangle \ge \langle n, u\rangle` is where the step
    :math:`u \leftarrow u + \beta(d - u)` leads to; it is taken if it turns the decision at a
    smaller norm, and :math:`\beta` of each image grows with success and halves with failure.
    """
    which = best.open()
    if not len(which):
        return
    own = batch.subset(which)
    found = Best(best.norms[which], best.images[which])
    damping = torch.ones(len(which), dtype=own.x.dtype, device=own.x.device)
    for overshoot in np.geomspace(_OVERSHOOT, _LAST_OVERSHOOT, steps):
        u = found.images - own.x
        _, n, _ = own.descent(found.images, objective)
        level = (n * u).flatten(1).sum(1)
        d = nearest_in_half_space(n, own.x, level)
        step = _each(damping, own.x) * (d - u)
        before = found.norms
        found.offer(own, own.moved((1 + overshoot) * (u + step)))
        better = found.norms < before
        shrink(own, found, 1 - 4 * overshoot, 2)
        damping = torch.where(better, 1.5 * damping, damping / 2).clamp(_LEAST_DAMPING, 1)
    shrink(own, found, 0.98, 8)
    best.norms[which], best.images[which] = found.norms, found.images


def _first_order_distance(batch: Batch) -> Tensor:
    """Return margin over slope of the readout, at most the size of the box; for scale only."""
    logits, _, slope = batch.descent(batch.x, "readout")
    margin = readout(logits, batch.positive).abs()
    size = math.sqrt(batch.x[0].numel())
    distance = torch.where(slope > 0, margin / slope, torch.inf)
    return distance.clamp(min=1e-3, max=size / 4)


def _annealed(first: float, last: float, step: int, steps: int) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * step / max(steps - 1, 1))) / 2


def _each(values: Tensor, images: Tensor) -> Tensor:
    """Return one number for each image in a shape that multiplies images."""
    return values.to(images.dtype).reshape(-1, *[1] * (images.ndim - 1))

"""The minimal-norm attack on image classifiers, which gives the whole robust curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from featavg.vision.objectives import readout
from featavg.vision.projection import nearest_in_half_space, stretch_to_norm
from featavg.vision.target import Best, Target

_SHRINK = 0.05  # relative change of the norm in a step of DDN
_OVERSHOOT = 3e-3  # of the first steps along the boundary, so that they end behind it
_LAST_OVERSHOOT = 3e-5
_LEAST_DAMPING = 0.03


def minimal_norms(
    batch: Target, objective: str, steps: int, starts: Sequence[Tensor], strides: Sequence[float]
) -> Best:
    """Search for the smallest perturbation of each image.

    Paper: none, an extension. DDN (Rony et al., CVPR 2019) with its norms kept exactly within the
    box, bisection towards the image, and then `steps` // 2 steps along the boundary, each to the
    nearest point of the box beyond the objective's tangent, as in FAB (Croce and Hein, ICML 2020).
    Nothing is random.

    There is one run of DDN for each of `strides`, the relative lengths of its steps: runs often
    find different minima. The attack also follows the boundary from each of `starts`, the results
    of other attacks, and its result is never worse than any of them.
    """
    best = Best.of(batch)
    runs = [deepcopy(best) for _ in (*starts, *strides)]
    for own, start in zip(runs, starts, strict=False):
        own.offer(batch, start)
    for own, stride in zip(runs[len(starts) :], strides, strict=True):
        descend_norm(batch, own, objective, steps, stride)
    for own in runs:
        shrink(batch, own)
        follow_boundary(batch, own, objective, max(steps // 2, 1))
        best.merge(own)
    return best


def descend_norm(batch: Target, best: Best, objective: str, steps: int, stride: float) -> None:
    """Run DDN: the norm shrinks where the decision is wrong and grows where it is right.

    Lengths are in units of `stride` times each image's first-order distance to the decision
    boundary, so that the attack does not depend on the scale of the images. Another stride often
    leads to another local minimum.
    """
    right = torch.nonzero(best.norms > 0)[:, 0]
    if not len(right):
        return
    with best.subset(batch, right) as (own, found):
        unit = stride * _first_order_distance(own)
        norm = unit.clone()
        images = own.x
        for step in range(steps):
            logits, direction, _ = own.descent(images, objective)
            wrong = own.clearly_wrong(logits)
            if step:
                found.offer(own, images, wrong)
                norm = norm * torch.where(wrong, 1 - _SHRINK, 1 + _SHRINK)
            length = unit * _annealed(1.0, 0.01, step, steps)
            images = own.moved(
                stretch_to_norm(images - own.x + _each(length, own.x) * direction, own.x, norm)
            )
        found.offer(own, images)


def shrink(batch: Target, best: Best, lowest: float = 0.0, bisections: int = 12) -> None:
    """Bisect on the straight line from each image to the best one, which stays in the box.

    Only perturbations of at least `lowest` times the best one are tried.
    """
    which = best.improvable()
    if not len(which):
        return
    with best.subset(batch, which) as (own, found):
        perturbation = found.images - own.x
        high = torch.ones(len(which), dtype=own.x.dtype, device=own.x.device)
        low = lowest * high
        for _ in range(bisections):
            middle = (low + high) / 2
            wrong = found.offer(own, own.moved(_each(middle, own.x) * perturbation))
            high = torch.where(wrong, middle, high)
            low = torch.where(wrong, low, middle)


def follow_boundary(batch: Target, best: Best, objective: str, steps: int) -> None:
    r"""Walk along the decision boundary towards the image.

    Let u be the best perturbation so far and n the unit vector of steepest descent of the objective
    there. The smallest d of the box with :math:`\langle n, d\rangle \ge \langle n, u\rangle` gives
    the step :math:`u \leftarrow u + \beta(d - u)`, taken if the decision is wrong there and the
    norm smaller; the :math:`\beta` of each image grows with success and halves with failure.
    """
    which = best.improvable()
    if not len(which):
        return
    with best.subset(batch, which) as (own, found):
        damping = torch.ones(len(which), dtype=own.x.dtype, device=own.x.device)
        for overshoot in np.geomspace(_OVERSHOOT, _LAST_OVERSHOOT, steps):
            u = found.images - own.x
            _, n, _ = own.descent(found.images, objective)
            d = nearest_in_half_space(n, own.x, (n * u).flatten(1).sum(1))
            step = _each(damping, own.x) * (d - u)
            before = found.norms
            found.offer(own, own.moved((1 + overshoot) * (u + step)))
            better = found.norms < before
            shrink(own, found, 1 - 4 * overshoot, 2)
            damping = torch.where(better, 1.5 * damping, damping / 2).clamp(_LEAST_DAMPING, 1)
        shrink(own, found, 0.98, 8)


def _first_order_distance(batch: Target) -> Tensor:
    """Return margin over slope of the readout, at most a quarter of the diagonal of the box."""
    logits, _, slope = batch.descent(batch.x, "readout")
    margin = readout(logits, batch.positive).abs()
    size = math.sqrt(batch.x[0].numel())
    distance = torch.where(slope > 0, margin / slope, torch.inf)
    return distance.clamp(min=1e-3, max=size / 4)


def _annealed(first: float, last: float, step: int, steps: int) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * step / max(steps - 1, 1))) / 2


def _each(values: Tensor, images: Tensor) -> Tensor:
    """Return one number for each image in a shape that can be multiplied with images."""
    return values.to(images.dtype).reshape(-1, *[1] * (images.ndim - 1))

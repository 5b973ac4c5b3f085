r"""Projections onto a ball or a half-space within the box of images.

A perturbation v of an image x gives an image where :math:`-x \le v \le 1 - x`, the box. All three
functions here are :math:`\mathrm{clip}(s\,v)` onto the box with the right number s for each
image, which is the root of a concave, increasing, piecewise linear function. Newton's method from
the left finds it exactly after finitely many steps, usually fewer than ten.
"""

from __future__ import annotations

import torch
from torch import Tensor

from featavg.vision.models import widest_float

_MOST_STEPS = 200  # at worst one for each pixel, but a dozen on images


def project_to_ball(v: Tensor, x: Tensor, radius: Tensor | float) -> Tensor:
    r"""Return the perturbation nearest to v among those of norm at most `radius` within the box.

    Paper: none. The conditions of optimality are d = clip(s v) with :math:`0 < s \le 1`, and
    :math:`\|d\|` = radius where s < 1. (Shrinking v to the ball and clipping it after that, as is
    usual, gives a point of both that is not the nearest.)

    Parameters
    ----------
    v : tensor, shape (images, ...)
        Any perturbation.
    x : tensor of the same shape
        The images, in [0, 1].
    radius : float or tensor, shape (images,)

    Examples
    --------
    >>> x = torch.tensor([[0.5, 0.9]])
    >>> project_to_ball(torch.tensor([[1.0, 1.0]]), x, 0.3)     # the second may grow by 0.1 only
    tensor([[0.2828, 0.1000]])
    """
    return _clipped(v, x, _scale(v, x, radius).clamp(max=1))


def stretch_to_norm(v: Tensor, x: Tensor, radius: Tensor | float) -> Tensor:
    """Return clip(s v), s >= 0, of norm `radius`, or the last one before the box ends in a corner.

    Paper: none.

    Examples
    --------
    >>> x = torch.tensor([[0.5, 0.9]])
    >>> stretch_to_norm(torch.tensor([[0.1, 0.1]]), x, 0.3)
    tensor([[0.2828, 0.1000]])
    """
    return _clipped(v, x, _scale(v, x, radius))


def nearest_in_half_space(n: Tensor, x: Tensor, level: Tensor) -> Tensor:
    r"""Return the smallest perturbation d within the box that has :math:`\langle n, d\rangle \ge`
    `level`, or the corner of the box farthest along n if there is none.

    Paper: none; the step of FAB (Croce and Hein, 2020).

    Examples
    --------
    >>> x = torch.tensor([[0.5, 0.9]])
    >>> nearest_in_half_space(torch.tensor([[1.0, 1.0]]), x, torch.tensor([0.4]))
    tensor([[0.3000, 0.1000]])
    """  # noqa: D205
    flat, limits = _limits(n, x)
    return _clipped(n, x, _root(flat**2, _ends(flat.abs(), limits), level.to(flat.dtype)))


def _scale(v: Tensor, x: Tensor, radius: Tensor | float) -> Tensor:
    """Return the s for which clip(s v) has the norm `radius`; infinity where it is out of reach."""
    flat, limits = _limits(v, x)
    largest = flat.abs().amax(1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    size = flat.abs() / largest
    target = torch.as_tensor(radius, dtype=flat.dtype, device=flat.device).expand(len(flat))
    root = _root(size**2, _ends(size, limits) ** 2, target**2).sqrt()
    return root / largest[:, 0]


def _limits(v: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return v, flat and in the widest type, and how far each pixel may go in its direction."""
    kind = widest_float(v.device)
    flat, image = v.flatten(1).to(kind), x.flatten(1).to(kind)
    return flat, torch.where(flat > 0, 1 - image, image)


def _ends(size: Tensor, limits: Tensor) -> Tensor:
    """Return the s at which each pixel of s·size reaches its limit; infinity where size is 0."""
    positive = size.clamp(min=torch.finfo(size.dtype).tiny)
    return torch.where(size > 0, limits / positive, torch.inf)


def _root(weights: Tensor, ends: Tensor, target: Tensor) -> Tensor:
    """Return the t >= 0 with sum_i w_i min(t, e_i) = target, or infinity where there is none.

    Newton from t = 0: the function is concave, so each step ends left of the root, and the step
    from the root's own piece ends on it.
    """
    t = torch.zeros_like(target)
    for _ in range(_MOST_STEPS):
        free = ends > t[:, None]
        slope = torch.where(free, weights, 0).sum(1)
        reached = torch.where(free, 0, weights * ends).sum(1)
        step = torch.where(slope > 0, (target - reached) / slope, torch.inf)
        step = torch.where(target > 0, torch.maximum(step, t), 0)
        if torch.equal(step, t):
            break
        t = step
    return t


def _clipped(v: Tensor, x: Tensor, s: Tensor) -> Tensor:
    """Return the perturbation clip(s v) onto the box, in the type of x."""
    flat, limits = _limits(v, x)
    # a pixel that does not move stays where s is infinite
    moved = torch.where(flat == 0, 0, flat.abs() * s[:, None])
    return (torch.minimum(moved, limits) * flat.sign()).to(x.dtype).reshape(x.shape)

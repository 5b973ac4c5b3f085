"""Projected gradient descent on image classifiers under the L2 norm, with images in [0, 1].

Section 6.2 of the paper turns a network of 10 classes into a binary classifier by the summed
probabilities of each side, and measures its robust accuracy "by the standard PGD attacks" (Madry et
al.) at several radii; neither there nor in Appendix E does it give the objective of the attack, the
number of steps, or whether images stay in [0, 1]. Here success is always measured by the binary
decision, and the function that an attack minimises is its `objective`. `PgdAttack` also reports
the result of plain PGD: the last iterate, by the binary decision and by the network's own classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.arrays import BoolArray, FloatArray
from featavg.errors import InputError
from featavg.progress import counted
from featavg.vision.evaluation import evaluating
from featavg.vision.masking import warn_of_masked_gradients
from featavg.vision.objectives import OBJECTIVES, TARGETED, wrong
from featavg.vision.projection import project_to_ball
from featavg.vision.target import Best, Positive, Target


@dataclass(frozen=True, eq=False, repr=False)
class PgdAttack:
    """The result of projected gradient descent: the smallest perturbation found of each image.

    Attributes
    ----------
    norms : array, shape (images,)
        The L2 distance from the image to `adversarial`; 0 where the decision is wrong without an
        attack, infinity where nothing was found.
    adversarial : array, shape (images, channels, height, width)
        In [0, 1], exactly the input that the network misclassified; the original image where
        nothing was found or needed.
    objective : str
        The objective that was minimised.
    radii : array, shape (radii,)
        In rising order.
    last : bool array, shape (images, radii), or None
        Where the decision is wrong at the last iterate of the first run at each radius, as plain
        PGD counts it. Only known with ``full=True``.
    last_own : bool array, shape (images, radii), or None
        The same for the network's own classes: where the largest logit is not that of the label.
        A wrong class on the right side counts as wrong here.
    """

    norms: FloatArray
    adversarial: FloatArray
    objective: str
    radii: FloatArray
    last: BoolArray | None
    last_own: BoolArray | None

    def __repr__(self) -> str:
        found = int(np.isfinite(self.norms).sum())
        return (
            f"PgdAttack({self.objective}, {found} of {len(self.norms)} images broken, "
            f"median norm {float(np.median(self.norms)):.4g})"
        )

    @property
    def robust(self) -> BoolArray:
        """Where the decision is right and nothing within the radius was found, (images, radii)."""
        return self.norms[:, None] > self.radii


def pgd_l2(
    model: nn.Module,
    images: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    *,
    radii: ArrayLike,
    objective: str = "readout",
    positive: Positive = None,
    steps: int = 40,
    restarts: int = 1,
    seed: int = 0,
    full: bool = False,
    batch: int = 100,
    progress: bool = False,
) -> PgdAttack:
    """Attack images by projected gradient descent at fixed radii.

    Paper: Section 6.2. From a start that is uniform in the ball, `steps` steps of length
    2.5·radius/steps along the normalised gradient; after each, the nearest point of ball and box
    together (`project_to_ball`).

    Differs from the paper: an attack succeeds if any iterate is misclassified, and a success at
    one radius is also one at every larger radius.

    Parameters
    ----------
    model : torch.nn.Module
        Takes images in [0, 1] and returns at least two logits. It is used in evaluation mode, on
        its own device.
    images : array or tensor, shape (images, channels, height, width)
        uint8 from 0 to 255, or floating-point in [0, 1].
    labels : array or tensor of int, shape (images,)
        The network's own classes.
    radii : float or array-like
        The largest norms of a perturbation, where pixels range from 0 to 1.
    objective : {"cross-entropy", "readout", "probability", "targeted"}
        The function to minimise, see `featavg.vision.objectives.objective`. With "targeted" there
        is a run towards each class of the other side, one after the other from the largest logit
        to the smallest: see `featavg.vision.objectives.aimed`.
    positive : int or list of int, optional
        The classes on the positive side, or their number; the first half by default.
    steps, restarts : int
        The number of steps of a run, and of runs from new random starts (towards each class, if
        they are "targeted").
    seed : int
        The seed of the random starts, which also depend on `batch`.
    full : bool
        Finish the first run even on images for which the attack has succeeded, so that `last` is
        the result of plain PGD. If False, such images are skipped, which is faster.
    batch : int
        The number of images in a batch; limits the memory.
    progress : bool
        Show the remaining time.

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    >>> net[1].weight.data = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    >>> image = torch.tensor([0.6, 0.6, 0.4, 0.4]).reshape(1, 1, 2, 2)    # 0.2 from the boundary
    >>> pgd_l2(net, image, [0], radii=[0.18, 0.22]).robust
    array([[ True, False]])
    """
    target = Target.of(model, images, labels, positive)
    grid = checked_radii(radii)
    checks.choice("objective", objective, (*OBJECTIVES, TARGETED))
    checks.count("steps", steps)
    checks.count("restarts", restarts)
    checks.count("seed", seed, minimum=0)
    batches = math.ceil(len(target) / checks.count("batch", batch))
    parts = []
    with evaluating(model):
        for index in counted(batches, "PGD", enabled=progress):
            part = target.batch(index, batch)
            parts.append(pgd_batch(part, objective, grid, steps, restarts, full, (seed, index)))
    names = ("norms", "adversarial", *(("last", "last_own") if full else ()))
    whole: Any = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    warn_of_masked_gradients(target, whole["norms"], batch)
    return replace(parts[0], **whole)


def pgd_batch(
    batch: Target,
    objective: str,
    radii: FloatArray,
    steps: int,
    restarts: int,
    full: bool,
    seed: tuple[int, ...],
) -> PgdAttack:
    """Run `pgd_l2` on one batch, with random starts drawn from `seed`."""
    best = Best.of(batch)
    last, last_own = improve_by_pgd(batch, best, objective, radii, steps, restarts, full, seed)
    return PgdAttack(
        **best.arrays(),
        objective=objective,
        radii=radii,
        last=last.cpu().numpy() if full else None,
        last_own=last_own.cpu().numpy() if full else None,
    )


def improve_by_pgd(
    batch: Target,
    best: Best,
    objective: str,
    radii: FloatArray,
    steps: int,
    restarts: int,
    full: bool,
    seed: tuple[int, ...],
    most_aims: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Run PGD at each radius on the images for which nothing that near is known yet.

    What is found goes into `best`. Returns where the last iterates are wrong, see `PgdAttack`,
    which is only meant with `full`. With targets, `most_aims` limits the number of target classes.
    """
    shape = (len(batch), len(radii))
    last = torch.zeros(shape, dtype=torch.bool, device=batch.x.device)
    last_own = last.clone()
    aims = range(batch.most_aims)[:most_aims] if objective == TARGETED else ()
    runs = ([batch.aimed_at(rank) for rank in aims] or [batch]) * restarts
    for column, radius in enumerate(radii.tolist()):
        for run, aimed in enumerate(runs):
            rng = np.random.default_rng([*seed, column, run])
            start = _start(batch.x, radius, rng)
            whole = full and run == 0
            chosen = best.norms >= 0 if whole else best.norms > radius
            which = torch.nonzero(chosen)[:, 0]
            if not len(which):
                continue
            with best.subset(aimed, which) as (own, found):
                logits = _descend(own, found, start[which], radius, objective, steps, whole)
            if whole:
                last[:, column] = wrong(logits, batch.labels, batch.positive)
                last_own[:, column] = logits.argmax(1) != batch.labels
    return last, last_own


def _descend(
    batch: Target,
    best: Best,
    start: Tensor,
    radius: float,
    objective: str,
    steps: int,
    whole: bool,
) -> Tensor:
    """Run once and return the logits of the last iterates.

    Unless `whole`, images are dropped once the attack has succeeded.
    """
    # a little less than the radius, so that rounding to pixels does not leave the ball
    rounding = torch.finfo(batch.x.dtype).eps / 4 * math.sqrt(batch.x[0].numel())
    inner = max(radius - rounding, 0.0)
    length = 2.5 * radius / steps
    last = steps if radius > 0 else 0
    active = torch.arange(len(batch), device=batch.x.device)
    images = batch.moved(project_to_ball(start, batch.x, inner))
    for step in range(last + 1):
        with best.subset(batch, active) as (now, found):
            if step == last:
                logits = now.logits(images)
                found.offer(now, images, now.clearly_wrong(logits))
            else:
                logits, direction, _ = now.descent(images, objective)
                found.offer(now, images, now.clearly_wrong(logits))
                wanted = images - now.x + length * direction
                images = now.moved(project_to_ball(wanted, now.x, inner))
        if not whole:
            left = best.norms[active] > radius
            active, images = active[left], images[left]
            if not len(active):
                break
    return logits


def _start(x: Tensor, radius: float, rng: np.random.Generator) -> Tensor:
    """Draw uniformly from the ball, with NumPy so that it is the same on every device."""
    flat = rng.standard_normal((len(x), x[0].numel()))
    lengths = radius * rng.random(len(x)) ** (1 / flat.shape[1])
    flat *= (lengths / np.linalg.norm(flat, axis=1))[:, None]
    return torch.from_numpy(flat).to(x.dtype).reshape(x.shape).to(x.device)


def checked_radii(radii: ArrayLike) -> FloatArray:
    """Return radii in rising order."""
    grid = checks.vector("radii", np.atleast_1d(checks.numbers("radii", radii)))
    if not len(grid) or (grid < 0).any():
        raise InputError(f"radii must be at least 0, and not empty; got {grid.tolist()}.")
    return np.sort(grid).astype(np.float64)

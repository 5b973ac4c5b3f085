"""The smallest perturbations that all attacks together find, in the order of what they cost."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.array_files import Arrays, Expected
from featavg.array_store import ArrayStore
from featavg.arrays import FloatArray
from featavg.progress import counted
from featavg.vision.attack_store import attack_store
from featavg.vision.attacks import checked_radii, improve_by_pgd
from featavg.vision.evaluation import evaluating
from featavg.vision.masking import warn_of_masked_gradients
from featavg.vision.minimal import descend_norm, follow_boundary, shrink
from featavg.vision.objectives import TARGETED
from featavg.vision.target import Best, Positive, Target

_FORMAT = "featavg worst norms 1"
_STRIDES = (1.0, 2.0, 4.0)


@dataclass(frozen=True)
class _Settings:
    """The settings that the norms depend on, besides network and data."""

    radii: list[float]
    positive: tuple[int, ...]
    steps: int
    pgd_steps: int
    restarts: int
    aims: int
    seed: int
    batch: int


def worst_norms(
    model: nn.Module,
    images: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    *,
    radii: ArrayLike,
    positive: Positive = None,
    steps: int = 40,
    pgd_steps: int = 20,
    restarts: int = 2,
    aims: int = 2,
    seed: int = 0,
    batch: int = 100,
    folder: Path | str | None = None,
    progress: bool = False,
) -> FloatArray:
    """Return the norm of the smallest perturbation of each image that any attack finds.

    Paper: none, an extension. It is 0 where the decision is wrong without an attack, and infinity
    where nothing was found. Unlike `robust_curves`, which attacks each objective on its own to
    compare them, each attack here continues from the results of those before it:

    1. DDN on the readout with steps of three lengths, and towards the class with the largest logit
       of the other side;
    2. a walk along the decision boundary from the nearest result;
    3. PGD at each radius on the readout from random starts, and towards the classes with the
       largest logits of the other side, only on images that have survived so far;
    4. a walk along the boundary from what PGD has found.

    Parameters
    ----------
    model, images, labels, positive, restarts, seed, batch, progress
        As for `pgd_l2`.
    radii : array-like
        The radii of PGD: robust accuracy is to be judged at these.
    steps, pgd_steps : int
        The number of steps of DDN, and half of it along the boundary; that of PGD.
    aims : int
        How many classes of the other side PGD is aimed at.
    folder : path, optional
        The norms of each batch are saved there, as with `robust_curves`; with more images, those of
        the first batches are not computed again.

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    >>> net[1].weight.data = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    >>> image = torch.tensor([0.6, 0.6, 0.4, 0.4]).reshape(1, 1, 2, 2)    # 0.2 from the boundary
    >>> worst_norms(net, image, [0], radii=[0.1, 0.3]).round(3)
    array([0.2])
    """
    target = Target.of(model, images, labels, positive)
    settings = _Settings(
        radii=checked_radii(radii).tolist(),
        positive=tuple(torch.nonzero(target.positive)[:, 0].tolist()),
        steps=checks.count("steps", steps),
        pgd_steps=checks.count("pgd_steps", pgd_steps),
        restarts=checks.count("restarts", restarts),
        aims=checks.count("aims", aims),
        seed=checks.count("seed", seed, minimum=0),
        batch=checks.count("batch", batch),
    )
    parts = []
    with evaluating(model):
        for index in counted(math.ceil(len(target) / batch), "attack", enabled=progress):
            part = target.batch(index, batch)
            # a folder for each batch, so that more images do not repeat the first ones
            store = ArrayStore(None)
            if folder is not None:
                store = attack_store(Path(folder), part, _FORMAT, asdict(settings))
            expected = {"norms": Expected("f", (len(part),))}
            compute = partial(_attack, part, settings, index)
            parts.append(store.get(f"batch-{index:05d}", expected, compute)["norms"])
    norms: FloatArray = np.concatenate(parts)
    warn_of_masked_gradients(target, norms, batch)
    return norms


def _attack(batch: Target, settings: _Settings, index: int) -> Arrays:
    """Run all attacks on a batch."""
    best = Best.of(batch)
    aimed = len(batch.positive) > 2
    for stride in _STRIDES:
        _by_descent(batch, best, "readout", settings.steps, stride)
    if aimed:
        _by_descent(batch.aimed_at(0), best, TARGETED, settings.steps, 1.0)
    _by_walk(batch, best, settings.steps)
    before = best.norms.clone()
    radii = np.array(settings.radii)
    seed = (settings.seed, index)
    steps, restarts = settings.pgd_steps, settings.restarts
    improve_by_pgd(batch, best, "readout", radii, steps, restarts, False, (*seed, 0))
    if aimed:
        improve_by_pgd(batch, best, TARGETED, radii, steps, 1, False, (*seed, 1), settings.aims)
    nearer = torch.nonzero(best.norms < before)[:, 0]
    if len(nearer):
        with best.subset(batch, nearer) as (own, found):
            _by_walk(own, found, settings.steps)
    return {"norms": best.arrays()["norms"]}


def _by_descent(batch: Target, best: Best, objective: str, steps: int, stride: float) -> None:
    """Run DDN on its own, and take what is nearer."""
    own = Best.of(batch)
    descend_norm(batch, own, objective, steps, stride)
    best.merge(own)


def _by_walk(batch: Target, best: Best, steps: int) -> None:
    shrink(batch, best)
    follow_boundary(batch, best, "readout", max(steps // 2, 1))

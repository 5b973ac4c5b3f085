"""A training that is looked at after several numbers of epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg.files import write_atomically
from featavg.progress import counted
from featavg.vision.checkpoint import cached_checkpoint
from featavg.vision.recipes import Recipe
from featavg.vision.supplied_labels import SuppliedLabels
from featavg.vision.training import Trained, train


def train_by_milestones(
    model: nn.Module,
    images: ArrayLike | Tensor,
    labels: ArrayLike | SuppliedLabels,
    recipe: Recipe,
    milestones: Sequence[int],
    *,
    seed: int,
    name: str,
    progress: bool = False,
) -> list[Trained]:
    """Return the network after each of these numbers of epochs, in rising order.

    Paper: none. Each training continues the one before, so that the recipe's schedule must not
    depend on the number of epochs if there are several. Each has a checkpoint of its own in the
    cache, which starts as a copy of the previous one, so that a killed run can be resumed.

    Parameters
    ----------
    model, images, labels, recipe, seed, progress
        As for `train`; the recipe's own number of epochs is not used.
    milestones : sequence of int
        The numbers of epochs.
    name : str
        What the names of the checkpoints start with.
    """
    done: list[Trained] = []
    before: Path | None = None
    for i in counted(len(milestones), "networks", enabled=progress and len(milestones) > 1):
        path = cached_checkpoint(f"{name}-{milestones[i]}")
        if before is not None and not path.exists():
            write_atomically(path, before.read_bytes())
        step = replace(recipe, epochs=milestones[i])
        done.append(
            train(model, images, labels, step, seed=seed, checkpoint=path, progress=progress)
        )
        before = path
    return done

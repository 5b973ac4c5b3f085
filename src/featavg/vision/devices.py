"""Threads, devices and precision of a training."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning_fabric import Fabric

from featavg import checks
from featavg.errors import InputError
from featavg.vision.recipes import Recipe


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Set the number of threads of PyTorch, and restore it afterwards."""
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(checks.count("threads", threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def launched_fabric(recipe: Recipe, accelerator: str, devices: int | str, strategy: str) -> Fabric:
    """Return a launched Fabric for the training."""
    checks.choice("strategy", strategy, ("auto", "ddp"))
    options: dict[str, Any] = {"devices": devices, "precision": recipe.precision}
    try:
        with warnings.catch_warnings():
            # there is a better message below
            warnings.filterwarnings("ignore", message=".*AMP with fp16 is not supported on CPU")
            fabric = Fabric(accelerator=accelerator, strategy=strategy, **options)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(
            "accelerator and devices must be available; "
            f"got {accelerator!r} and {devices!r} ({reason})."
        ) from None
    if fabric.device.type == "cpu" and recipe.precision != "32-true":
        raise InputError(
            "precision must be '32-true' on a CPU because mixed precision is slower there; "
            f"got {recipe.precision!r}."
        )
    cores = os.cpu_count() or 1
    if fabric.device.type == "cpu" and fabric.world_size > cores:  # one process for each device
        raise InputError(
            f"devices must be at most {cores} because there is no GPU and there are {cores} cores; "
            f"got {fabric.world_size}."
        )
    fabric.launch()
    return fabric

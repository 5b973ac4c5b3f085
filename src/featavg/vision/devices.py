"""Where a training runs: threads, devices and precision."""

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
    """Let PyTorch use so many threads, and afterwards as many as before."""
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(checks.count("threads", threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def widest_float(device: torch.device) -> torch.dtype:
    """Return the widest type of a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def launched_fabric(recipe: Recipe, accelerator: str, devices: int | str, strategy: str) -> Fabric:
    """Return what runs the training, launched."""
    checks.choice("strategy", strategy, ("auto", "ddp"))
    options: dict[str, Any] = {"devices": devices, "precision": recipe.precision}
    try:
        with warnings.catch_warnings():
            # said better below
            warnings.filterwarnings("ignore", message=".*AMP with fp16 is not supported on CPU")
            fabric = Fabric(accelerator=accelerator, strategy=strategy, **options)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(
            "accelerator and devices must be there; "
            f"got {accelerator!r} and {devices!r} ({reason})."
        ) from None
    _check_precision(recipe.precision, fabric.device)
    cores = os.cpu_count() or 1
    if fabric.device.type == "cpu" and fabric.world_size > cores:  # each would be a process
        raise InputError(
            f"devices must be at most {cores} because there is no GPU and the processor has that "
            f"many cores; got {fabric.world_size}."
        )
    fabric.launch()
    return fabric


def _check_precision(precision: str, device: torch.device) -> None:
    if device.type == "cpu" and precision != "32-true":
        raise InputError(
            "precision must be '32-true' on a CPU because mixed precision is slower there; "
            f"got {precision!r}."
        )

"""The folder of saved results of attacks on a network."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featavg.array_store import ArrayStore
from featavg.errors import InputError
from featavg.files import clear_leftovers, write_atomically
from featavg.vision import checkpoint
from featavg.vision.evaluation import outputs
from featavg.vision.target import Target

_PROBES = 4
_PROBE_NOISE = 0.1


def attack_store(
    folder: Path, target: Target, version: str, settings: dict[str, Any]
) -> ArrayStore:
    """Return the store of results, named by a hash of everything they depend on.

    What that is, is written beside them as ``about.json``. `version` names the attack and the
    format of its results.
    """
    about = {
        "format": version,
        "torch": str(torch.__version__),
        "device": target.batch(0, 1).x.device.type,
        "model": checkpoint.model_fingerprint(target.model),
        "behaviour": checkpoint.behaviour(_probed(target)),
        "data": checkpoint.fingerprint(target.x, target.labels),
        "settings": settings,
    }
    text = json.dumps(about, indent=2, sort_keys=True) + "\n"
    path = folder / hashlib.sha256(text.encode()).hexdigest()[:16]
    try:  # before any work is done
        clear_leftovers(path)
        write_atomically(path / "about.json", text.encode())
    except OSError as error:
        raise InputError(
            f"folder must be one that can be written to; got {folder} ({error.strerror})."
        ) from None
    return ArrayStore(path)


def _probed(target: Target) -> Tensor:
    """Return the logits of a few images, and of the same images with noise."""
    images = target.x[:_PROBES].double().cpu()
    images = images / 255 if target.x.dtype == torch.uint8 else images
    noise = np.random.default_rng(0).standard_normal(tuple(images.shape))
    noisy = (images + _PROBE_NOISE * torch.from_numpy(noise)).clamp(0, 1)
    return outputs(target.model, torch.cat([images, noisy]))

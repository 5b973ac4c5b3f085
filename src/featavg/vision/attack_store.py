"""The folder of saved results of attacks on a network."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featavg.array_store import ArrayStore
from featavg.errors import InputError
from featavg.files import clear_leftovers, write_atomically
from featavg.vision.evaluation import logits_of, to_model
from featavg.vision.identity import behaviour, fingerprint, model_fingerprint
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
        "model": model_fingerprint(target.model),
        "behaviour": behaviour(partial(logits_of, target.model), _probes(target)),
        "data": fingerprint(target.x, target.labels),
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


def _probes(target: Target) -> Tensor:
    """Return a few of the images, without and with noise."""
    images = to_model(target.model, target.x[:_PROBES])
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal(tuple(images.shape)))
    return torch.cat([images, (images + _PROBE_NOISE * noise.to(images)).clamp(0, 1)])

"""The folder of saved results of attacks on a network."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import torch

from featavg.array_store import ArrayStore
from featavg.errors import InputError
from featavg.files import clear_leftovers, write_atomically
from featavg.vision.evaluation import evaluating, logits_of, to_model
from featavg.vision.identity import behaviour, fingerprint, model_fingerprint, probes, rounded
from featavg.vision.target import Target

_PROBES = 4  # images by which networks are told apart


def attack_store(
    folder: Path, target: Target, version: str, settings: dict[str, Any]
) -> ArrayStore:
    """Return the store of results, named by a hash of everything they depend on.

    What that is, is written beside them as ``about.json``. `version` names the attack and the
    format of its results.
    """
    with evaluating(target.model):
        images = to_model(target.model, target.x[:_PROBES])
        seen = behaviour(partial(logits_of, target.model), probes(images))
    about = {
        "format": version,
        "torch": str(torch.__version__),
        "device": target.batch(0, 1).x.device.type,
        "model": model_fingerprint(target.model),
        "behaviour": rounded(seen, images.dtype),
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

"""Checkpoints, from which a training can be resumed.

A checkpoint is written atomically by `torch.save`, sealed by a checksum, and read with
``weights_only=True``, so that a file from elsewhere cannot run code. A file that is damaged, or
belongs to other data, another recipe, seed or network, is refused and never overwritten, because
the user may want to keep it.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from featavg import checks
from featavg.errors import InputError
from featavg.files import DamagedError, can_hold_files, read_bytes, write_atomically
from featavg.seals import check_seal, seal

_FORMAT = "featavg training 2"
_MOST_BYTES = 1 << 34


def fingerprint(*tensors: Tensor) -> str:
    """Return a hash of dtypes, shapes and values."""
    digest = hashlib.sha256()
    for tensor in tensors:
        array = tensor.detach().cpu().contiguous()
        digest.update(f"{array.dtype} {tuple(array.shape)};".encode())
        digest.update(array.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_fingerprint(model: nn.Module) -> str:
    """Return a hash of the architecture, the weights, all buffers and plain attributes.

    What the code of a network does is not in it: see `behaviour`.
    """
    state = dict(model.named_parameters()) | dict(model.named_buffers()) | model.state_dict()
    plain = {
        f"{place}.{name}": value
        for place, module in model.named_modules()
        for name, value in sorted(vars(module).items())
        if name != "training" and isinstance(value, bool | int | float | str | tuple | Tensor)
    }
    tensors = {name: value for name, value in plain.items() if isinstance(value, Tensor)}
    numbers = {name: value for name, value in plain.items() if name not in tensors}
    held = fingerprint(*state.values(), *tensors.values())
    text = f"{model!r} {list(state)} {list(tensors)} {numbers} {held}"
    return hashlib.sha256(text.encode()).hexdigest()


def behaviour(outputs: Tensor) -> list[float]:
    """Return a few numbers that are others for another network, but not for another rounding.

    They are the largest output and four projections, to three digits. Saved results are named by
    them too, because networks with equal weights may do different things with them.
    """
    flat = outputs.detach().double().cpu().flatten().numpy()
    largest = float(abs(flat).max()) or 1.0
    directions = np.random.default_rng(0).standard_normal((4, flat.size)) / flat.size**0.5
    return [float(f"{value:.3g}") for value in (largest, *(directions @ (flat / largest)).round(3))]


@dataclass(frozen=True)
class Checkpoint:
    """The state after `epoch` epochs.

    It is saved with an identity: hashes of the recipe, the seed, the data and the network before
    training. There is no other state: the order of the images and the augmentation depend on seed
    and epoch only, and the learning rate on these and the losses.
    """

    epoch: int
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    precision: dict[str, Any]  # the gradient scaler of 16-mixed
    log_losses: list[float]
    accuracies: list[float]
    seconds: float
    versions: dict[str, str] = field(default_factory=lambda: {"torch": str(torch.__version__)})

    def save(self, path: Path, identity: dict[str, str]) -> None:
        """Write the checkpoint, replacing the previous one."""
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        buffer = io.BytesIO()
        torch.save({"format": _FORMAT, "identity": identity, **content}, buffer)
        seal(buffer)
        write_atomically(path, buffer.getbuffer())

    @classmethod
    def load(cls, path: Path, identity: dict[str, str]) -> Checkpoint | None:
        """Return the checkpoint at `path`, on the CPU, or None if there is no such file."""
        if not path.exists():
            return None
        content = _read(path)
        for name, value in identity.items():
            if content["identity"].get(name) != value:
                raise InputError(
                    f"checkpoint must belong to this training, and {path} was made with another "
                    f"{name}; delete it or name another file."
                )
        return cls(**{item.name: content[item.name] for item in fields(cls)})


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint, after checking that it is complete."""
    try:
        content = read_bytes(path.resolve(), most=_MOST_BYTES)
        if check_seal(io.BytesIO(content)) is None:
            raise DamagedError("it has no checksum")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:  # PyTorch stores without compression
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise DamagedError("it states a larger size than it has")
        found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        _check(found)
        return dict(found)
    except InputError as error:
        raise unusable(path, str(error)) from None
    except Exception as error:  # a damaged file can raise anything
        raise unusable(path, type(error).__name__) from None


def _check(content: Any) -> None:
    """Refuse content of another format, or whose parts have other types."""
    wanted = {"format", "identity", *(item.name for item in fields(Checkpoint))}
    if not isinstance(content, dict) or not wanted <= content.keys():
        raise DamagedError("it is something else")
    if content["format"] != _FORMAT or not isinstance(content["identity"], dict):
        raise DamagedError("it has another format")
    epoch = checks.count("epoch", content["epoch"], minimum=0)
    for name in ("log_losses", "accuracies"):
        values = content[name]
        if not isinstance(values, list) or not all(isinstance(value, float) for value in values):
            raise DamagedError(f"its {name} are not numbers")
    if not epoch == len(content["log_losses"]) == len(content["accuracies"]):
        raise DamagedError("its numbers of epochs differ")
    checks.scale("seconds", content["seconds"], zero=True)
    for name in ("model", "optimizer", "precision"):
        if not isinstance(content[name], dict):
            raise DamagedError(f"its {name} is not a state")


def unusable(path: Path, reason: str) -> InputError:
    """Return the error for a checkpoint that cannot be used."""
    return InputError(
        f"checkpoint must be a complete checkpoint of featavg, and {path} cannot be read "
        f"({reason.rstrip('.')}); delete it or name another file."
    )


def writable(path: Path) -> Path:
    """Return a path if a file can be written there, before any work is done."""
    if path.is_dir() or not can_hold_files(path.absolute().parent):
        raise InputError(f"checkpoint must be a file that can be written; got {path}.")
    return path

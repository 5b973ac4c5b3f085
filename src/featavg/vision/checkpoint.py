"""What training leaves behind after every epoch, to go on from.

A checkpoint is an ordinary file of `torch.save`, written whole or not at all. It is read with
``weights_only=True``, so a file from elsewhere cannot run code. A file that is damaged, or belongs
to other data, another recipe, seed or network, is refused and never overwritten: it may be
something the user wants to keep, and whoever does not deletes it.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from featavg.errors import InputError
from featavg.files import can_hold_files, write_atomically

_FORMAT = "featavg training 1"


def fingerprint(*tensors: Tensor) -> str:
    """Return a hash of types, shapes and values."""
    digest = hashlib.sha256()
    for tensor in tensors:
        array = tensor.detach().cpu().contiguous()
        digest.update(f"{array.dtype} {tuple(array.shape)};".encode())
        digest.update(array.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_fingerprint(model: nn.Module) -> str:
    """Return a hash of the architecture and the weights."""
    state = model.state_dict()
    text = f"{model!r} {list(state)} {fingerprint(*state.values())}"
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Identity:
    """What a checkpoint belongs to; the network is the one that training began with."""

    recipe: str
    seed: str
    data: str
    network: str


@dataclass(frozen=True)
class Checkpoint:
    """The state after `epoch` epochs.

    The order of the images and all that is random follow from seed and epoch, and the learning
    rate from these and the losses: there is no other state.
    """

    epoch: int
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    precision: dict[str, Any]  # the gradient scaler of 16-mixed
    log_losses: list[float]
    accuracies: list[float]
    seconds: float
    versions: dict[str, str] = field(default_factory=lambda: {"torch": str(torch.__version__)})

    def save(self, path: Path, identity: Identity) -> None:
        """Write the checkpoint in place of the one before."""
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        buffer = io.BytesIO()
        torch.save({"format": _FORMAT, "identity": vars(identity), **content}, buffer)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: Path, identity: Identity) -> Checkpoint | None:
        """Return the checkpoint at `path`, on the CPU, or None if there is no such file."""
        if not path.exists():
            return None
        content = _read(path)
        for name, value in vars(identity).items():
            if content["identity"].get(name) != value:
                raise InputError(
                    f"checkpoint must belong to this training, and {path} was made with another "
                    f"{name}; delete it or name another file."
                )
        return cls(**{item.name: content[item.name] for item in fields(cls)})


def _read(path: Path) -> dict[str, Any]:
    """Return what a checkpoint holds, after checking that it is one and that it is whole."""
    try:
        with zipfile.ZipFile(path) as archive:  # PyTorch does not look at the checksums
            broken = archive.testzip()
        if broken is None:
            content = torch.load(path, map_location="cpu", weights_only=True)
            wanted = {"format", "identity", *(item.name for item in fields(Checkpoint))}
            if content["format"] == _FORMAT and wanted <= content.keys():
                return dict(content)
    except Exception as error:  # whatever a damaged file provokes
        raise InputError(
            f"checkpoint must be a whole file of this program, and {path} cannot be read "
            f"({type(error).__name__}); delete it or name another file."
        ) from None
    raise InputError(
        f"checkpoint must be a whole file of this program, and {path} is not; "
        "delete it or name another file."
    )


def writable(path: Path) -> Path:
    """Return a path if a file can be written there, before any work is done."""
    if path.is_dir() or not can_hold_files(path.absolute().parent):
        raise InputError(f"checkpoint must be a file that can be written; got {path}.")
    return path


def remove_leftovers(path: Path) -> None:
    """Remove what was being written beside a checkpoint when a training was killed."""
    prefix = f".{path.name}."
    if path.parent.is_dir():
        for entry in path.parent.iterdir():
            if entry.name.startswith(prefix) and len(entry.name) == len(prefix) + 8:
                entry.unlink(missing_ok=True)

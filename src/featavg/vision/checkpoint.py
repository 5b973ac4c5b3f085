"""Saved work that can be resumed: checkpoints of a training, and stores of arrays.

A checkpoint is written atomically by `torch.save` and read with ``weights_only=True``, so that a
file from elsewhere cannot run code. A file that is damaged, or belongs to other data, another
recipe, seed or network, is refused and never overwritten, because the user may want to keep it.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from featavg.array_files import Arrays, read_arrays, write_arrays
from featavg.errors import InputError
from featavg.files import DamagedError, can_hold_files, write_atomically

_FORMAT = "featavg training 1"
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
    """Return a hash of the architecture and the weights."""
    state = model.state_dict()
    text = f"{model!r} {list(state)} {fingerprint(*state.values())}"
    return hashlib.sha256(text.encode()).hexdigest()


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
        write_atomically(path, buffer.getvalue())

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
    reason = ""
    try:
        with zipfile.ZipFile(path) as archive:  # PyTorch does not check the checksums
            broken = archive.testzip()
        if broken is None:
            content = torch.load(path, map_location="cpu", weights_only=True)
            wanted = {"format", "identity", *(item.name for item in fields(Checkpoint))}
            if content["format"] == _FORMAT and wanted <= content.keys():
                return dict(content)
    except Exception as error:  # a damaged file can raise anything
        reason = f" ({type(error).__name__})"
    raise InputError(
        f"checkpoint must be a complete checkpoint of featavg, and {path} cannot be read{reason}; "
        "delete it or name another file."
    )


def writable(path: Path) -> Path:
    """Return a path if a file can be written there, before any work is done."""
    if path.is_dir() or not can_hold_files(path.absolute().parent):
        raise InputError(f"checkpoint must be a file that can be written; got {path}.")
    return path


def remove_leftovers(path: Path) -> None:
    """Remove temporary files that a killed process left beside a file."""
    prefix = f".{path.name}."
    if path.parent.is_dir():
        for entry in path.parent.iterdir():
            if entry.name.startswith(prefix) and len(entry.name) == len(prefix) + 8:
                entry.unlink(missing_ok=True)


@dataclass(frozen=True)
class ArrayStore:
    """Named files of arrays, written atomically and without pickle.

    Without a path nothing is saved.
    """

    path: Path | None

    def get(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return saved arrays, or compute and save them if there are none that can be read."""
        if self.path is None:
            return compute()
        file = self.path / f"{name}.npz"
        with suppress(DamagedError):
            return read_arrays(file, most=_MOST_BYTES)[0]
        arrays = compute()
        remove_leftovers(file)
        write_arrays(file, arrays)
        return arrays

    def remove(self, names: Sequence[str]) -> None:
        """Remove files that are no longer needed."""
        if self.path is not None:
            for name in names:
                file = self.path / f"{name}.npz"
                remove_leftovers(file)
                file.unlink(missing_ok=True)

"""Checkpoints, from which a training can be resumed.

A checkpoint is written atomically by `torch.save`, sealed by a checksum, and read with
``weights_only=True``, so that a file from elsewhere cannot run code. A file that is damaged, or
belongs to other data, another recipe, seed or network, is refused and never overwritten, because
the user may want to keep it.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from featavg import checks
from featavg.datasets.cache import cache_folder
from featavg.errors import InputError
from featavg.files import DamagedError, can_hold_files, read_bytes, write_atomically
from featavg.seals import check_seal, seal

_VERSION = 3
_FORMAT = f"featavg training {_VERSION}"
_MOST_BYTES = 1 << 34


def cached_checkpoint(name: str) -> Path:
    """Return the file of a training in the cache, one for each version of the format."""
    return cache_folder("models") / f"{name}-v{_VERSION}.pt"


@dataclass(frozen=True)
class Identity:
    """What a training depends on.

    Attributes
    ----------
    hashes : dict
        Those of the recipe, the seed, the data and the network before training.
    behaviour : list of float
        What that network makes of some images, see `featavg.vision.identity.behaviour`.
    tolerance : float
        By how much these numbers may differ for one network.
    """

    hashes: dict[str, str]
    behaviour: list[float]
    tolerance: float

    def differs_in(self, saved: dict[str, Any]) -> str | None:
        """Return the name of the first thing that is another in a checkpoint, or None."""
        for name, value in self.hashes.items():
            if saved.get(name) != value:
                return name
        seen = saved.get("behaviour")
        if not isinstance(seen, list) or len(seen) != len(self.behaviour):
            return "network"
        pairs = zip(seen, self.behaviour, strict=True)
        same = all(isinstance(a, float) and abs(a - b) <= self.tolerance for a, b in pairs)
        return None if same else "network"


@dataclass(frozen=True)
class Checkpoint:
    """The state after `epoch` epochs.

    It is saved with its `Identity`. There is no other state: the order of the images and the
    augmentation depend on seed and epoch only, and the learning rate on these and the losses.
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
        """Write the checkpoint, replacing the previous one."""
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        buffer = io.BytesIO()
        held = identity.hashes | {"behaviour": identity.behaviour}
        torch.save({"format": _FORMAT, "identity": held, **content}, buffer)
        seal(buffer)
        write_atomically(path, buffer.getbuffer())

    @classmethod
    def load(cls, path: Path, identity: Identity) -> Checkpoint | None:
        """Return the checkpoint at `path`, on the CPU, or None if there is no such file."""
        if not path.exists():
            return None
        content = _read(path)
        if other := identity.differs_in(content["identity"]):
            raise InputError(
                f"checkpoint must belong to this training, and {path} was made with another "
                f"{other}; delete it or name another file."
            )
        return cls(**{item.name: content[item.name] for item in fields(cls)})


def load_tensors(path: Path, *, sealed: bool) -> tuple[Any, int]:
    """Return what a file of `torch.save` holds, tensors and plain values only, and its size.

    A seal is checked where there is one; `sealed` refuses files without.
    """
    content = read_bytes(path.resolve(), most=_MOST_BYTES)
    if check_seal(io.BytesIO(content)) is None and sealed:
        raise DamagedError("it has no checksum")
    if zipfile.is_zipfile(io.BytesIO(content)):  # or of before PyTorch 1.6
        with zipfile.ZipFile(io.BytesIO(content)) as archive:  # which stores without compression
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise DamagedError("it states a larger size than it has")
    held = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return held, len(content)


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint, after checking that it is complete."""
    try:
        found, _ = load_tensors(path, sealed=True)
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
    if content["format"] != _FORMAT:
        raise DamagedError("it has another format, perhaps that of another version of featavg")
    if not isinstance(content["identity"], dict):
        raise DamagedError("its identity is something else")
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

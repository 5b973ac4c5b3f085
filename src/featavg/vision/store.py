"""A folder of saved arrays, so that interrupted work can be resumed."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from featavg.files import write_atomically
from featavg.vision.checkpoint import remove_leftovers

Arrays = dict[str, np.ndarray]
_UNREADABLE = (OSError, ValueError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error)


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
        with suppress(*_UNREADABLE):
            saved = np.load(io.BytesIO(file.read_bytes()), allow_pickle=False)
            return {key: saved[key] for key in saved.files}
        arrays = compute()
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        remove_leftovers(file)
        write_atomically(file, buffer.getvalue())
        return arrays

    def remove(self, names: Sequence[str]) -> None:
        """Remove files that are no longer needed."""
        if self.path is not None:
            for name in names:
                file = self.path / f"{name}.npz"
                remove_leftovers(file)
                file.unlink(missing_ok=True)

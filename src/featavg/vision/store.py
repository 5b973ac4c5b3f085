"""A folder of saved arrays, so that interrupted work can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from featavg.array_files import Arrays, read_arrays, write_arrays
from featavg.files import DamagedError
from featavg.vision.checkpoint import remove_leftovers

_MOST_BYTES = 1 << 34


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

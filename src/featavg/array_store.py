"""A folder of named files of arrays, from which work that was stopped can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from featavg.array_files import Arrays, Expected, read_arrays, write_arrays
from featavg.files import DamagedError, clear_leftovers, discard

_MOST_BYTES = 1 << 34


@dataclass(frozen=True)
class ArrayStore:
    """Named files of arrays, written atomically, sealed and without pickle.

    Without a path nothing is saved.
    """

    path: Path | None

    def get(
        self, name: str, expected: Mapping[str, Expected], compute: Callable[[], Arrays]
    ) -> Arrays:
        """Return saved arrays, or compute and save them."""
        arrays = self.find(name, expected)
        if arrays is None:
            arrays = compute()
            self.save(name, arrays)
        return arrays

    def find(self, name: str, expected: Mapping[str, Expected]) -> Arrays | None:
        """Return saved arrays, or None if there are none.

        A file that is damaged, or has other arrays than the `expected` ones, is named and set
        aside.
        """
        if self.path is None:
            return None
        file = self.path / f"{name}.npz"
        if file.exists():
            try:
                return read_arrays(file, most=_MOST_BYTES, sealed=True, expected=expected)[0]
            except DamagedError as error:
                discard(file, error, "what it held is computed again")
        return None

    def save(self, name: str, arrays: Arrays) -> None:
        """Save arrays."""
        if self.path is not None:
            write_arrays(self.path / f"{name}.npz", arrays)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files that are no longer needed, and what killed processes left of them."""
        if self.path is not None:
            for name in names:
                file = self.path / f"{name}.npz"
                clear_leftovers(self.path, file.name)
                file.unlink(missing_ok=True)

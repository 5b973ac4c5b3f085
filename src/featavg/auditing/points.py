"""Single points of an audit: where they are in the input, their classes and subclasses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from featavg.arrays import IntArray


@dataclass(frozen=True, eq=False)
class Points:
    """Some points of the input.

    Attributes
    ----------
    index : array of shape (points,)
        The index of each point in X.
    classes, subclasses : sequence
        The class and the subclass of each. Subclasses that were not given are numbers within their
        class, and that of a point is the most likely one.
    """

    index: IntArray
    classes: Sequence[Any]
    subclasses: Sequence[Any]

    def __len__(self) -> int:
        return len(self.index)

    def rows(self, ids: Sequence[Any] | None = None) -> list[tuple[Any, Any, Any]]:
        """Return id, class and subclass of each point; without ids its index."""
        names = [int(i) if ids is None else ids[i] for i in self.index]
        return list(zip(names, self.classes, self.subclasses, strict=True))

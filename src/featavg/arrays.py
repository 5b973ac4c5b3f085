"""Types of arrays, and functions of arrays that all modules use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def frozen(array: Any) -> Any:
    """Return a read-only array: the array itself if it is one already, else a copy."""
    if not array.flags.writeable:
        return array
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def unit_rows(rows: FloatArray) -> FloatArray:
    """Return rows scaled to norm 1; rows of zeros stay zero."""
    # Dividing by the largest entry first keeps the norm of tiny and huge rows in range.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(norms > 0, norms, 1)

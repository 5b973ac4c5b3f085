"""Types of arrays, and what is done with arrays everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def frozen(array: Any) -> Any:
    """Return an array that nobody can change: itself if it is read-only already, else a copy."""
    if not array.flags.writeable:
        return array
    copy = array.copy()
    copy.flags.writeable = False
    return copy

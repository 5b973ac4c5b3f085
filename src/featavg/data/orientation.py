"""Orthonormal frames of a chosen orientation, for rules that depend on the coordinate axes."""

from __future__ import annotations

import numpy as np
from scipy.linalg import hadamard

from featavg import checks
from featavg.arrays import FloatArray
from featavg.errors import InputError

ORIENTATIONS = ("random", "axes", "signs")


def check_orientation(orientation: str, *, rank: int, dim: int) -> str:
    """Return an orientation in which `rank` orthogonal vectors exist, or refuse it."""
    chosen = checks.choice("orientation", orientation, ORIENTATIONS)
    if chosen == "signs" and dim % _block(rank):
        raise InputError(
            f"dim must be a multiple of {_block(rank)} with orientation='signs', because {rank} "
            f"orthogonal vectors of coordinates ±1 are made of Hadamard matrices; got dim={dim}."
        )
    return chosen


def orthonormal_rows(orientation: str, rank: int, dim: int, rng: np.random.Generator) -> FloatArray:
    r"""Draw orthonormal vectors of an orientation, as rows.

    Paper: none, an extension; the paper leaves the orientation of its centres open.

    "random" is uniform over all frames. "axes" are the first coordinate axes, nothing random.
    "signs" have coordinates :math:`\pm 1/\sqrt d`: in each block of coordinates, as many as the
    smallest power of two that is at least `rank`, they are different rows of the Hadamard matrix,
    which ones and with which signs is random. So the signs of any one coordinate are independent
    and fair, and the rows are exactly orthogonal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> orthonormal_rows("axes", 2, 3, rng)
    array([[1., 0., 0.],
           [0., 1., 0.]])
    >>> np.abs(orthonormal_rows("signs", 2, 4, rng))
    array([[0.5, 0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5, 0.5]])
    """
    if orientation == "random":
        return np.linalg.qr(rng.standard_normal((dim, rank)))[0].T
    if orientation == "axes":
        return np.eye(rank, dim)
    rows = hadamard(_block(rank)).astype(np.float64)
    blocks = []
    for _ in range(dim // len(rows)):
        chosen = rng.permutation(len(rows))[:rank]
        blocks.append(rows[chosen] * rng.choice([-1.0, 1.0], size=(rank, 1)))
    return np.hstack(blocks) / np.sqrt(dim)


def _block(rank: int) -> int:
    """Return the smallest power of two that is at least `rank`."""
    return 1 << (rank - 1).bit_length()

"""Coordinates of the span of everything that training and evaluation see.

The law is rotation invariant, and nothing ever leaves the span of the centres, the noise of the
training points and the initial weights. In an orthonormal basis of that span, made from these
vectors in turn (Gram-Schmidt), their coordinates have a known law and can be drawn directly: the
cost does not depend on the dimension, and nothing is approximated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.errors import InputError

RESERVE = 64
"""How many vectors can be drawn after the training points, unless asked for more."""

_ROWS_AT_ONCE = 1024


@dataclass(eq=False)
class SpanFrame:
    r"""The meaning of each coordinate: the centres, the training noise, and vectors drawn later.

    Paper: none, an extension.

    The i-th vector of the noise has N(0,1) coordinates along the centres and along the i - 1
    directions before it, and a positive one along its own, the norm of what is left of it in
    :math:`d - k - i + 1` dimensions: chi distributed with as many degrees of freedom (Bartlett).
    Vectors drawn later, such as initial weights, continue in the same way. A fresh point needs
    only N(0,1) coordinates, because what it has outside of the span is orthogonal to every weight.

    Parameters
    ----------
    dim : int
        d, the dimension of the space.
    rank : int
        How many dimensions the centres span.
    points : int
        How many training points there are.
    reserve : int
        How many vectors can be drawn later.
    """

    dim: int
    rank: int
    points: int
    reserve: int = RESERVE
    _drawn: int = field(default=0, init=False)

    @property
    def coordinates(self) -> int:
        """The number of coordinates."""
        return self.rank + self.points + self.reserve

    def training_noise(self, rng: np.random.Generator, dtype: np.dtype[Any]) -> FloatArray:
        """Draw the noise of the training points, shape (points, coordinates)."""
        noise = np.zeros((self.points, self.coordinates), dtype)
        for start in range(0, self.points, _ROWS_AT_ONCE):
            own = np.arange(start, min(start + _ROWS_AT_ONCE, self.points))
            width = self.rank + own[-1] + 1
            block = np.tril(normal((len(own), width), rng, dtype), k=self.rank + start)
            block[own - start, self.rank + own] = _chi(self.dim - self.rank - own, rng)
            noise[own, :width] = block
        return noise

    def gaussian(self, count: int, rng: np.random.Generator, dtype: np.dtype[Any]) -> FloatArray:
        """Draw further vectors of N(0, I), shape (count, coordinates)."""
        if self._drawn + count > self.reserve:
            raise InputError(
                f"a sample in span coordinates has room for {self.reserve} vectors such as "
                f"initial weights, of which {self._drawn} are taken; got {count} more; "
                "draw the sample with a larger reserve."
            )
        first = self.rank + self.points + self._drawn
        vectors = np.zeros((count, self.coordinates), dtype)
        own = np.arange(first, first + count)
        vectors[:, : first + count] = np.tril(normal((count, first + count), rng, dtype), k=first)
        vectors[np.arange(count), own] = _chi(self.dim - own, rng)
        self._drawn += count
        return vectors

    def fresh_noise(
        self, size: int, rng: np.random.Generator, dtype: np.dtype[Any]
    ) -> tuple[FloatArray, FloatArray]:
        """Draw the noise of fresh points, and its norms in all dimensions."""
        noise = normal((size, self.coordinates), rng, dtype)
        outside = rng.chisquare(self.dim - self.coordinates, size)
        return noise, np.sqrt(np.square(noise, dtype=np.float64).sum(axis=1) + outside)

    def is_training(self, x: FloatArray) -> bool:
        """Return whether these are the training points: triangular, nothing in the reserve."""
        last = self.rank + self.points
        return len(x) == self.points and not x[0, self.rank + 1 :].any() and not x[:, last:].any()

    def gram(self, x: FloatArray) -> FloatArray:
        """Return X Xᵀ of the training points, a third of the work because X is triangular."""
        gram = np.empty((self.points, self.points), x.dtype)
        for start in range(0, self.points, _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, self.points))
            reach = self.rank + rows.stop  # what these points have lies in the first coordinates
            block = x[start:, :reach] @ x[rows, :reach].T
            gram[start:, rows] = block
            gram[rows, start:] = block.T
        return gram


def normal(shape: tuple[int, int], rng: np.random.Generator, dtype: np.dtype[Any]) -> FloatArray:
    """Draw N(0, 1) in single or double precision."""
    return rng.standard_normal(shape, dtype=np.float32 if dtype == np.float32 else np.float64)


def _chi(degrees: Any, rng: np.random.Generator) -> FloatArray:
    return np.sqrt(rng.chisquare(degrees))

"""What a law draws: clusters on two sides, their centres, the noise, and points as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.data.orientation import orthonormal_rows
from featavg.data.span import SpanFrame, normal
from featavg.errors import InputError

_AMBIENT_ENTRIES = 2**27
_ROWS_AT_ONCE = 256


class ClusteredLaw(ABC):
    """The draws of a `Law`, which makes samples of them and describes the attributes."""

    clusters: int
    dim: int
    signal: float
    noise: float
    positive: int | Sequence[int] | None = None
    orientation: str = "random"

    @property
    def signs(self) -> IntArray:
        """The side of each cluster, +1 or -1, shape (clusters,)."""
        return checks.signs_of_partition(self.positive, self.clusters)

    @property
    def positive_clusters(self) -> tuple[int, ...]:
        """The set :math:`J_+`, sorted."""
        return tuple(np.flatnonzero(self.signs == 1).tolist())

    @property
    def negative_clusters(self) -> tuple[int, ...]:
        """The set :math:`J_-`, sorted."""
        return tuple(np.flatnonzero(self.signs == -1).tolist())

    @property
    def follows_definition(self) -> bool:
        """Whether this is the law of Definition 3.1, which the paper's statements are about."""
        return False

    @property
    def rotation_invariant(self) -> bool:
        """Whether every rotated frame is as likely, so that span coordinates are exact in law.

        True unless the orientation of the centres is a chosen one, or a subclass draws its own
        noise, centres or points, which may then have a preferred orientation.
        """
        drawn = ("draw_noise", "draw_centers", "points_around")
        usual = all(getattr(type(self), name) is getattr(ClusteredLaw, name) for name in drawn)
        return usual and self.orientation == "random"

    # --- what a law draws

    @abstractmethod
    def center_directions(self) -> FloatArray:
        r"""Return the centres divided by :math:`\sqrt d`, in as few coordinates as they span."""

    def checked_directions(self) -> FloatArray:
        """Return `center_directions`; refuse what is not one row of numbers for each cluster."""
        directions = np.asarray(self.center_directions())
        if directions.ndim != 2 or len(directions) != self.clusters:
            raise InputError(
                f"center_directions of {type(self).__name__} must return a matrix with a row for "
                f"each of the {self.clusters} clusters; got the shape {directions.shape}."
            )
        return directions

    def checked_clusters(self, size: int, rng: np.random.Generator) -> IntArray:
        """Return `draw_clusters`; refuse what is not the number of a cluster for each point."""
        drawn = np.asarray(self.draw_clusters(size, rng))
        is_whole = drawn.shape == (size,) and np.issubdtype(drawn.dtype, np.integer)
        if not is_whole or drawn.min() < 0 or drawn.max() >= self.clusters:
            raise InputError(
                f"draw_clusters of {type(self).__name__} must return {size} whole numbers from 0 "
                f"to {self.clusters - 1}; got {drawn.dtype} of the shape {drawn.shape}."
            )
        return drawn

    def draw_centers(self, rng: np.random.Generator) -> FloatArray:
        """Draw the centres in a frame of the law's orientation, shape (clusters, dim)."""
        directions = self.checked_directions()
        checks.memory(f"{self.clusters} centres of dim={self.dim}", self.clusters * self.dim * 8)
        frame = orthonormal_rows(self.orientation, directions.shape[1], self.dim, rng)
        return np.sqrt(self.dim) * (directions @ frame)

    def draw_clusters(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw the cluster of each of `size` points: uniformly."""
        return rng.integers(self.clusters, size=size)

    def draw_noise(
        self, shape: tuple[int, int], rng: np.random.Generator, dtype: np.dtype[Any]
    ) -> FloatArray:
        r"""Draw the noise :math:`\xi` of some points, of shape (points, dim): N(0, I)."""
        return normal(shape, rng, dtype)

    def _checked_noise(
        self, shape: tuple[int, int], rng: np.random.Generator, dtype: np.dtype[Any]
    ) -> FloatArray:
        drawn = np.asarray(self.draw_noise(shape, rng, dtype))
        if drawn.shape != shape:
            raise InputError(
                f"draw_noise of {type(self).__name__} must return the shape that it is asked for, "
                f"{shape}; got {drawn.shape}."
            )
        return drawn

    def span_frame(self, size: int, coordinates: str, reserve: int) -> SpanFrame | None:
        """Return the frame of span coordinates for `size` points, or None for ambient ones."""
        coordinates = checks.choice("coordinates", coordinates, ("auto", "ambient", "span"))
        reserve = checks.count("reserve", reserve, minimum=0)
        if coordinates == "ambient" or (coordinates == "auto" and not self.rotation_invariant):
            return None
        if not self.rotation_invariant:
            chosen = f" with orientation={self.orientation!r}" * (self.orientation != "random")
            raise InputError(
                "span coordinates need a law that is rotation invariant, because they leave the "
                f"orientation open; got {type(self).__name__}{chosen}, so use "
                "coordinates='ambient'."
            )
        frame = SpanFrame(self.dim, self.checked_directions().shape[1], size, reserve)
        fits = frame.coordinates < self.dim
        if coordinates == "span" and not fits:
            raise InputError(
                f"span coordinates must be fewer than dim; got {frame.coordinates} (centres, "
                f"points and a reserve of {reserve}) and dim={self.dim}."
            )
        large = size * self.dim > _AMBIENT_ENTRIES
        return frame if coordinates == "span" or (fits and large) else None

    def points_around(
        self,
        centers: FloatArray,
        cluster: IntArray,
        rng: np.random.Generator,
        frame: SpanFrame | None,
        *,
        training: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Draw a point of each given cluster; return the points and the norms of their noise."""
        size = len(cluster)
        if frame is None:
            noise = np.empty((size, centers.shape[1]), centers.dtype)
            norms = np.empty(size, centers.dtype)
        elif training:
            noise = frame.training_noise(rng, centers.dtype)
            norms = np.linalg.norm(noise, axis=1)
        else:
            noise, norms = frame.fresh_noise(size, rng, centers.dtype)
        # some rows at a time, and no further than centres reach: nothing else of the size of x
        reach = centers.shape[1] if frame is None else frame.rank
        shifts = self.signal * centers[:, :reach]
        for start in range(0, size, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            with np.errstate(over="ignore", invalid="ignore"):  # Sample refuses what overflows
                if frame is None:
                    noise[rows] = self._checked_noise(noise[rows].shape, rng, centers.dtype)
                    norms[rows] = np.linalg.norm(noise[rows], axis=1)
                noise[rows] *= self.noise
                noise[rows, :reach] += shifts[cluster[rows]]
        noise.flags.writeable = False  # handed over, not copied
        return noise, norms.astype(centers.dtype, copy=False)

"""Scaling of points: a shift, and one factor or one for each coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.errors import InputError

SCALES = ("norm", "standard")
"""The scalings that estimators offer, besides None."""

# Columns whose spread is below this, relative to their values, are constant up to rounding.
_ROUNDING = 1e-12
# The variance that a tenth of the features must have for the scales to be very different.
_FEW_FEATURES_HAVE = 0.9


@dataclass(frozen=True, eq=False)
class Scaling:
    r"""The map :math:`x \mapsto s (x - m)` to the scale of the paper, where points have norm √d.

    Paper: none, an extension; embeddings have to be centred for Assumption 3.2, and the scale is
    that of Definition 3.1.

    The classifier of scaled points, with this map folded into its first layer, is a classifier of
    the points as they were given; its radii are in their units, also with a factor for each
    coordinate.

    Attributes
    ----------
    shift : array of shape (coordinates,)
        m, the mean of the points; 0 without scaling.
    factor : float, or array of shape (coordinates,)
        s; the mean squared norm of scaled points is the number of coordinates. 1 without scaling.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[1.0, 0.0], [3.0, 0.0]]))
    >>> scaling.apply(np.array([[3.0, 1.0]])).round(4)
    array([[1.4142, 1.4142]])
    >>> Scaling.of(np.array([[1.0, 0.0], [3.0, 1000.0]]), "standard").factor
    array([1.   , 0.002])
    """

    shift: FloatArray
    factor: float | FloatArray

    @classmethod
    def of(
        cls, x: FloatArray, scale: str | None = "norm", weights: FloatArray | None = None
    ) -> Scaling:
        """Return the scaling of these points.

        Parameters
        ----------
        x : array of shape (points, coordinates)
            The points.
        scale : {"norm", "standard"} or None
            "norm" has one factor. "standard" has one for each coordinate, which divides by its
            standard deviation; that of a constant coordinate is the same as if it were 1. If all
            points are equal, all factors are 1. None is no scaling.
        weights : array of shape (points,), optional
            A positive weight for each point, of which means are taken.
        """
        if scale is None:
            return cls(np.zeros(x.shape[1]), 1.0)
        if not (isinstance(scale, str) and scale in SCALES):
            raise InputError(f"scale must be 'norm', 'standard' or None; got {scale!r}.")
        shares = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
        shift: FloatArray = shares @ x
        spread = x - shift
        largest = np.maximum(spread.max(axis=0), -spread.min(axis=0))
        # the spread of equal values is rounding error
        varies = largest > _ROUNDING * np.abs(shift)
        if scale == "norm":
            largest = largest.max()
            varies = largest > _ROUNDING * np.abs(shift).max()
        if not varies.any():
            return cls(shift, 1.0)
        unit = np.where(varies, largest, 1.0)
        spread /= unit  # so that squares stay in range
        mean_squares = shares @ np.square(spread, out=spread)
        if scale == "norm":
            return cls(shift, float(1 / (unit * np.sqrt(mean_squares.mean()))))
        factor = np.where(varies, 1 / (unit * np.sqrt(np.where(varies, mean_squares, 1))), 1.0)
        return cls(shift, factor / np.sqrt(varies.mean()))

    def __post_init__(self) -> None:
        factor = np.asarray(self.factor)
        if factor.dtype.kind not in "fiu" or not (np.isfinite(factor) & (factor > 0)).all():
            raise InputError(f"factor must be positive and finite; got {self.factor!r}.")
        if factor.shape not in ((), self.shift.shape):
            raise InputError(
                f"factor must be a number or one for each of the {len(self.shift)} coordinates; "
                f"got the shape {factor.shape}."
            )

    @property
    def affine(self) -> tuple[FloatArray, FloatArray]:
        """The factor of each coordinate and the offset t of the map s x + t."""
        factors = np.broadcast_to(self.factor, self.shift.shape).astype(np.float64)
        return factors, -factors * self.shift

    def apply(self, x: FloatArray, dtype: Any = np.float64) -> FloatArray:
        """Return scaled points."""
        moved: FloatArray = (x - self.shift) * self.factor
        return moved.astype(dtype, copy=False)

    def undo(self, x: FloatArray) -> FloatArray:
        """Return the points whose scaled ones these are."""
        return x / self.factor + self.shift


def leading_features(x: FloatArray) -> tuple[int, int, float]:
    """Return a tenth of the number of features, this number, and the variance of the largest ones.

    Features that do not vary are not counted. The variance is a share of that of all features.

    Examples
    --------
    >>> leading_features(np.array([[1.0, 0.0], [3.0, 1000.0]]))
    (1, 2, 0.999996...)
    """
    mean = x.mean(axis=0, dtype=np.float64)
    largest = np.maximum(x.max(axis=0) - mean, mean - x.min(axis=0))
    varies = largest > _ROUNDING * np.abs(mean)
    features = int(varies.sum())
    few = max(1, features // 10)
    if not features:
        return few, features, 0.0
    spread = x - mean if features == x.shape[1] else x[:, varies] - mean[varies]
    spread /= largest.max()  # so that squares stay in range
    variances = np.sort(np.einsum("nd,nd->d", spread, spread))
    return few, features, float(variances[-few:].sum() / variances.sum())


def different_scales(few: int, features: int, share: float) -> str | None:
    """Return a clause saying that features have very different scales; None if they do not.

    That is where a tenth of them have nine tenths of the variance.

    Parameters
    ----------
    few, features, share
        What `leading_features` returned.

    Examples
    --------
    >>> different_scales(1, 13, 0.9958)
    '1 of 13 features has 99.6 % of the variance: features have very different scales'
    """
    if features < 2 or share < _FEW_FEATURES_HAVE:
        return None
    have = "has" if few == 1 else "have"
    return (
        f"{few} of {features} features {have} {100 * share:.3g} % of the variance: "
        "features have very different scales"
    )

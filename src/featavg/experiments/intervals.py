"""Intervals of robust accuracy over trainings and images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from featavg.arrays import FloatArray

_LEVEL = 0.975
_BISECTIONS = 60


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the sign can be told."""
        return self.low > 0 or self.high < 0

    def percent(self, form: str = ".1f") -> str:
        """Return the interval in percent, for a sentence."""
        value, low, high = (format(100 * x, form) for x in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def mean_interval(values: FloatArray) -> Interval:
    r"""Return the mean of values, shape (trainings, images), with an interval over both.

    The same images are attacked in all trainings, so trainings and images are crossed random
    effects. With the mean squares of the analysis of variance, the half width for T trainings and N
    images is

    .. math:: \sqrt{\frac{t_{T-1}^2 MS_T + t_{N-1}^2 \max(MS_I - MS_E, 0)}{TN}},

    with Student's t of each source of scatter (Howe, Journal of the American Statistical
    Association, 1974). Few trainings give wide intervals; those of resampling would be too narrow.
    With one training the interval is over images alone, with one image over trainings.

    Examples
    --------
    >>> survived = np.tile([1.0, 1, 1, 0], (3, 50))
    >>> mean_interval(survived).percent()
    '75.0 [68.9, 81.1]'
    """
    mean = float(values.mean())
    half = _half_width(values)
    return Interval(mean, mean - half, mean + half)


def ratio_interval(above: FloatArray, below: FloatArray) -> Interval:
    r"""Return the ratio of two means, of values of the same trainings and images, with an interval.

    It has every :math:`\rho` for which the interval of the mean of above - :math:`\rho` below
    has 0 in it (Fieller's method); where the sign of the mean below cannot be told, it has no end.

    Examples
    --------
    >>> gains = np.full((2, 5), 0.2)
    >>> ratio_interval(0.5 * gains, gains).percent(".0f")
    '50 [50, 50]'
    """
    if not mean_interval(below).excludes_zero:
        whole = float(below.mean())
        return Interval(float(above.mean()) / whole if whole else np.nan, -np.inf, np.inf)
    ratio = float(above.mean() / below.mean())
    ends = (_fieller_end(above, below, ratio, direction) for direction in (-1, 1))
    return Interval(ratio, *ends)


def _half_width(values: FloatArray) -> float:
    trainings, images = values.shape
    if values.size == 1:
        return np.inf
    if min(trainings, images) == 1:
        return float(_quantile(values.size) * values.std(ddof=1) / np.sqrt(values.size))
    mean = values.mean()
    of_trainings = values.mean(axis=1, keepdims=True) - mean
    of_images = values.mean(axis=0, keepdims=True) - mean
    rest = values - mean - of_trainings - of_images
    between_trainings = images * np.square(of_trainings).sum() / (trainings - 1)
    between_images = trainings * np.square(of_images).sum() / (images - 1)
    error = np.square(rest).sum() / ((trainings - 1) * (images - 1))
    squares = _quantile(trainings) ** 2 * between_trainings + _quantile(images) ** 2 * max(
        between_images - error, 0.0
    )
    return float(np.sqrt(squares / values.size))


def _quantile(count: int) -> float:
    return float(student.ppf(_LEVEL, count - 1))


def _fieller_end(above: FloatArray, below: FloatArray, ratio: float, direction: int) -> float:
    """Return where the interval of above - ratio·below loses 0, by bisection."""

    def outside(other: float) -> bool:
        values = above - other * below
        return bool(abs(values.mean()) > _half_width(values))

    step = max(abs(ratio), 1.0) * 1e-3
    while not outside(ratio + direction * step):
        step *= 2
    inner, outer = 0.0, step
    for _ in range(_BISECTIONS):
        middle = (inner + outer) / 2
        inner, outer = (inner, middle) if outside(ratio + direction * middle) else (middle, outer)
    return ratio + direction * inner

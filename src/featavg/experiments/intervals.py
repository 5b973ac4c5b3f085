"""Intervals of robust accuracy over trainings and images."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from featavg.arrays import FloatArray

_LEVEL = 0.975


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

    def within(self, low: float, high: float) -> Interval:
        """Return the part of the interval that is possible, for example [0, 1] for a share."""
        return replace(self, low=max(self.low, low), high=min(self.high, high))

    def percent(self, form: str = ".1f") -> str:
        """Return the interval in percent, for a sentence."""
        plain = form.replace(".", "z.")  # no -0
        value, low, high = (format(100 * x, plain) for x in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def mean_interval(values: FloatArray) -> Interval:
    r"""Return the mean of values, shape (trainings, images), with an interval over both.

    The same images are attacked in all trainings, so trainings and images are crossed random
    effects. With the mean squares of the analysis of variance, the half width for T trainings and N
    images is

    .. math:: \sqrt{\frac{t_{T-1}^2 MS_T + t_{N-1}^2 \max(MS_I - MS_E, 0)}{TN}},

    with Student's t of each source of scatter (Howe, Journal of the American Statistical
    Association, 1974), and at least that of independent errors, :math:`t_{(T-1)(N-1)}^2 MS_E`.
    Few trainings give wide intervals; those of resampling would be too narrow. With one training
    the interval is over images alone, with one image over trainings.

    Examples
    --------
    >>> survived = np.tile([1.0, 1, 1, 0], (3, 50))
    >>> mean_interval(survived).percent()
    '75.0 [68.9, 81.1]'
    """
    mean = float(values.mean())
    half = float(np.sqrt(_squared_half_widths(values).max()))
    return Interval(mean, mean - half, mean + half)


def ratio_interval(above: FloatArray, below: FloatArray) -> Interval:
    r"""Return the ratio of two means, of values of the same trainings and images, with an interval.

    It spans every :math:`\rho` for which the interval of the mean of above - :math:`\rho` below
    has 0 in it (Fieller's method); where the sign of the mean below cannot be told, it has no end.

    Examples
    --------
    >>> gains = np.array([[0.30, 0.31], [0.32, 0.30], [0.29, 0.31]])
    >>> ratio_interval(0.5 * gains, gains).percent(".0f")
    '50 [50, 50]'
    """
    a, b = float(above.mean()), float(below.mean())
    if not mean_interval(below).excludes_zero:
        return Interval(a / b if b else np.nan, -np.inf, np.inf)
    # the half width squared of above - rho·below is the largest of these quadratics in rho
    constant, square = _squared_half_widths(above), _squared_half_widths(below)
    mixed = (_squared_half_widths(above + below) - _squared_half_widths(above - below)) / 4
    # where (a - rho·b)² is at most one of them: square' rho² - 2 mixed' rho + constant' <= 0
    constant, mixed, square = a**2 - constant, a * b - mixed, b**2 - square
    roots = np.sqrt(np.maximum(mixed**2 - constant * square, 0.0))
    ratio, found = a / b, mixed**2 >= constant * square
    low = np.min((mixed - roots) / square, where=found, initial=ratio)
    high = np.max((mixed + roots) / square, where=found, initial=ratio)
    return Interval(ratio, float(low), float(high))


def _squared_half_widths(values: FloatArray) -> FloatArray:
    """Return candidates for the squared half width, which is the largest of them.

    Each is a quadratic form of the values.
    """
    trainings, images = values.shape
    if values.size == 1:
        return np.array([np.inf])
    if min(trainings, images) == 1:
        return np.array([_quantile(values.size - 1) ** 2 * values.var(ddof=1) / values.size])
    mean = values.mean()
    of_trainings = values.mean(axis=1, keepdims=True) - mean
    of_images = values.mean(axis=0, keepdims=True) - mean
    rest = values - mean - of_trainings - of_images
    freedom = (trainings - 1) * (images - 1)
    between_trainings = images * np.square(of_trainings).sum() / (trainings - 1)
    between_images = trainings * np.square(of_images).sum() / (images - 1)
    error = np.square(rest).sum() / freedom
    by_trainings = _quantile(trainings - 1) ** 2 * between_trainings
    by_images = _quantile(images - 1) ** 2 * (between_images - error)
    by_error = _quantile(freedom) ** 2 * error
    return np.array([by_trainings, by_trainings + by_images, by_error]) / values.size


def _quantile(freedom: int) -> float:
    return float(stdtrit(freedom, _LEVEL))  # of Student's t

"""Intervals of robust accuracy over trainings and images, by the bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import FloatArray

_DRAWS = 4000
_LEVELS = (2.5, 97.5)


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
    """Return the mean of values, shape (trainings, images), with an interval over both.

    Trainings and images are drawn with replacement, independently of each other, because the same
    images are attacked in all trainings. With one training the interval is over images alone.
    """
    return _interval(float(values.mean()), _drawn_means(values))


def ratio_interval(above: FloatArray, below: FloatArray) -> Interval:
    """Return the ratio of two means, of values of the same trainings and images, with an interval.

    Where the mean below is near 0, the interval is wide or has no end.

    Examples
    --------
    >>> gains = np.full((2, 5), 0.2)
    >>> ratio_interval(0.5 * gains, gains).percent(".0f")
    '50 [50, 50]'
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = _drawn_means(above) / _drawn_means(below)
        value = float(np.divide(above.mean(), below.mean()))
    return _interval(value, ratios[~np.isnan(ratios)])


def _interval(value: float, drawn: FloatArray) -> Interval:
    if not len(drawn):
        return Interval(value, -np.inf, np.inf)
    low, high = np.percentile(drawn, _LEVELS, method="nearest")  # some may be infinite
    return Interval(value, float(low), float(high))


def _drawn_means(values: FloatArray) -> FloatArray:
    """Return means of resampled trainings and images, from the same random numbers each time."""
    rng = np.random.default_rng(0)
    trainings, images = values.shape
    of_trainings = rng.multinomial(trainings, np.full(trainings, 1 / trainings), size=_DRAWS)
    of_images = rng.multinomial(images, np.full(images, 1 / images), size=_DRAWS)
    weighted: FloatArray = ((of_trainings @ values) * of_images).sum(axis=1)
    return weighted / (trainings * images)

"""Principal axes of points: how many of them a classifier needs."""

from __future__ import annotations

import numpy as np

from featavg.arrays import FloatArray, IntArray

# With at most this many coordinates all of them are kept, and never fewer axes than this.
_FEWEST = 128
# With fewer points than this all axes are kept, since too few would tell how many are needed; and
# axes need no more points than the other number.
_FEW_POINTS, _POINTS = 2000, 10_000
# The share of points on which numbers of axes are compared, and how many standard errors of
# accuracy fewer axes may cost.
_CHECKED, _TOLERANCE = 0.25, 0.5
# The penalty of the regression, relative to the mean sum of squares along an axis.
_PENALTY = 0.1


def principal_axes(x: FloatArray, classes: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return as many principal axes as a linear classifier needs, shape (axes, dim).

    Numbers of axes that double from 128 on are compared by ridge regression on the classes, which
    along principal axes is one division for each axis. The smallest number counts whose accuracy on
    the other points is within half a standard error of the best, so directions of little variance
    are kept where the classes differ along them. With at most 128 coordinates these are the axes,
    and with less than 2,000 points all principal axes are kept.

    Parameters
    ----------
    x : array of shape (points, dim)
        Points, shifted so that their mean is about 0.
    classes : array of shape (points,)
        Their classes, from 0.
    rng : Generator
        Chooses which points are looked at.
    """
    dim = x.shape[1]
    if dim <= _FEWEST:
        return np.eye(dim)
    chosen = rng.permutation(len(x))[:_POINTS]
    some = x[chosen].astype(np.float64)
    axes = _all_axes(some)
    if len(axes) > _FEWEST and len(x) >= _FEW_POINTS:
        axes = axes[: _needed(some @ axes.T, classes[chosen])]
    # once more orthonormal, which the axes of small variance are not to the last digit
    return np.linalg.qr(axes.T)[0].T


def _all_axes(x: FloatArray) -> FloatArray:
    """Return the axes along which there is variance, the largest first."""
    if len(x) >= x.shape[1]:
        variances, columns = np.linalg.eigh(x.T @ x)
    else:  # the same from the products of points, of which there are fewer
        variances, left = np.linalg.eigh(x @ x.T)
        columns = x.T @ left / np.sqrt(np.maximum(variances, 1e-12 * variances[-1]))
    count = max(1, int((variances > 1e-10 * variances[-1]).sum()))
    axes: FloatArray = columns[:, ::-1][:, :count].T
    return axes


def _needed(coordinates: FloatArray, classes: IntArray) -> int:
    """Return how many of the axes a linear classifier needs, given coordinates along them."""
    points, count = coordinates.shape
    checked = max(1, int(_CHECKED * points))
    check, train = slice(checked), slice(checked, points)
    sizes = np.bincount(classes[train], minlength=int(classes.max()) + 1)
    targets = np.eye(len(sizes))[classes[train]] - sizes / sizes.sum()
    squares = np.square(coordinates[train]).sum(axis=0)
    slopes = coordinates[train].T @ targets / (squares + _PENALTY * squares.mean())[:, None]
    slopes /= np.sqrt(np.maximum(sizes, 1))  # so that rare classes have a say
    numbers = [*(n for n in _FEWEST * 2 ** np.arange(20) if n < count), count]
    right = np.array(
        [(coordinates[check, :n] @ slopes[:n]).argmax(axis=1) == classes[check] for n in numbers]
    ).mean(axis=1)
    best = float(right.max())
    error = np.sqrt(best * (1 - best) / checked)
    return int(numbers[int(np.flatnonzero(right >= best - _TOLERANCE * error)[0])])

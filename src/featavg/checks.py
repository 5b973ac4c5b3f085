"""Checks of input.

Each check returns the value in the form the caller needs, or raises an `InputError` of one
sentence: the rule, the reason where there is one, and the value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.errors import InputError, did_you_mean, shortened

# what stands for a value that is missing
_MISSING_TYPES = ("NoneType", "NAType", "NaTType")
_MISSING_TEXTS = ("", "nan")


_LARGEST_SEED = 2**32 - 1  # that scikit-learn takes


def count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
        raise InputError(f"{name} must be a whole number of at least {minimum}; got {value!r}.")
    return int(value)


def seed(name: str, value: Any) -> int:
    """Return `value` as a seed that NumPy and scikit-learn take."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not 0 <= int(value) <= _LARGEST_SEED:
        rule = f"a whole number from 0 to {_LARGEST_SEED}"
        raise InputError(f"{name} must be {rule}; got {shortened(value)}.")
    return int(value)


def scale(name: str, value: Any, *, zero: bool = False) -> float:
    """Return `value` as a finite float above zero (or from zero on, with `zero`)."""
    number = _real(name, value)
    if number < 0 or (number == 0 and not zero):
        rule = "at least 0" if zero else "above 0"
        raise InputError(f"{name} must be {rule}; got {value!r}.")
    return number


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InputError(f"{name} must be a finite number; got {value!r}.")
    return float(value)


def cosine(name: str, value: Any, *, clusters: int) -> float:
    """Return `value` if `clusters` unit vectors with this pairwise cosine exist."""
    number = _real(name, value)
    lowest = -1.0 / (clusters - 1)
    if not lowest - 1e-12 <= number <= 1:
        raise InputError(
            f"{name} must be from {lowest:.6g} to 1 because no {clusters} vectors have "
            f"another common pairwise cosine; got {value!r}."
        )
    return number


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`."""
    allowed = tuple(options)
    if not isinstance(value, str) or value not in allowed:
        listed, hint = ", ".join(map(repr, allowed)), did_you_mean(value, allowed)
        raise InputError(f"{name} must be one of {listed}; got {value!r}{hint}.")
    return value


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def partition(positive: Any, clusters: int) -> tuple[int, ...]:
    """Return the positive clusters as a sorted tuple; a count means the first ones."""
    if positive is None:
        chosen = tuple(range((clusters + 1) // 2))
    elif isinstance(positive, Integral) and not isinstance(positive, bool):
        chosen = tuple(range(min(int(positive), clusters)))
    else:
        try:
            listed = [count("each positive cluster", j, minimum=0) for j in positive]
        except TypeError:
            raise InputError(
                "positive must be the number of positive clusters or a list of them; "
                f"got {positive!r}."
            ) from None
        chosen = tuple(sorted(set(listed)))
        if len(chosen) < len(listed):
            raise InputError(f"positive must not name a cluster twice; got {positive!r}.")
    if not chosen or len(chosen) >= clusters or chosen[-1] >= clusters:
        raise InputError(
            f"positive must leave at least one of the {clusters} clusters on each side, "
            f"numbered from 0 to {clusters - 1}; got {positive!r}."
        )
    return chosen


def signs_of_partition(positive: Any, clusters: int) -> IntArray:
    """Return +1 for each positive cluster and -1 for the others, shape (clusters,)."""
    signs = np.full(clusters, -1, dtype=np.int64)
    signs[list(partition(positive, clusters))] = 1
    return signs


def numbers(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as an array of float32, where it is that already, or else float64."""
    try:
        array = np.asarray(unmasked(name, value))
        if array.dtype == np.float32:
            return array
        if not np.can_cast(array.dtype, np.float64, casting="same_kind"):
            raise TypeError
        converted = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} must hold real numbers; got {shortened(value)}.") from None
    if array.dtype.kind in "iu" and array.dtype.itemsize == converted.dtype.itemsize:
        _not_rounded(name, array, converted)
    return converted


def _not_rounded(name: str, whole: IntArray, converted: FloatArray) -> None:
    """Refuse whole numbers of 64 bits that are others in double precision."""
    with np.errstate(invalid="ignore"):  # the largest ones are above their type when rounded up
        rounded = converted.astype(whole.dtype) != whole
    if rounded.any():
        raise InputError(
            f"{name} must hold numbers that double precision has exactly; "
            f"got {int(whole[rounded][0])}."
        )


def parsed(value: Any) -> float:
    """Return the number that a value is or a text has; 1_0 is one in Python alone."""
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)
    return float(value)


def unmasked(name: str, value: Any) -> Any:
    """Return `value`; refuse a masked array in which values are masked, which NumPy would use."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        raise InputError(
            f"{name} must not have masked values; got {int(np.ma.getmaskarray(value).sum())}: "
            "fill them in, or leave them out."
        )
    return value


def contained(values: NDArray[Any], options: NDArray[Any]) -> BoolArray:
    """Return which values are equal to one of the options.

    Unlike `numpy.isin`, which takes numbers for their texts where some values are text.

    Examples
    --------
    >>> contained(np.array([1, 2]), np.array(["1", "2"]))
    array([False, False])
    """
    known = set(options.tolist())
    return np.array([value in known for value in values.tolist()], dtype=bool)


def matrix(name: str, value: ArrayLike, *, columns: int | None = None) -> FloatArray:
    """Return `value` as a finite floating-point matrix, with `columns` columns if given."""
    array = numbers(name, value)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"{name} must be a matrix with at least one row; got the shape {array.shape}."
        )
    if columns is not None and array.shape[1] != columns:
        raise InputError(f"{name} must have {columns} columns; got the shape {array.shape}.")
    finite(name, array)
    return array


def vector(name: str, value: ArrayLike, *, length: int | None = None) -> FloatArray:
    """Return `value` as a finite floating-point vector, of `length` if given."""
    array = numbers(name, value)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "" if length is None else f" of length {length}"
        raise InputError(f"{name} must be a vector{wanted}; got the shape {array.shape}.")
    finite(name, array)
    return array


def finite(name: str, array: FloatArray) -> None:
    """Refuse NaN and infinity, and say where the first one is."""
    # The sum is finite unless an entry is not (or the sum overflows): one cheap pass first.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = ", ".join(str(int(i)) for i in bad[0])
        value = array[tuple(bad[0])]
        raise InputError(f"{name} must be finite; got {value} at index ({where}).")


def signs(name: str, value: ArrayLike, *, length: int) -> IntArray:
    """Return `value` as labels in {-1, +1}, one for each of `length` points."""
    array = numbers(name, value)
    _one_for_each(name, "label", array, length)
    if not np.isin(array, (-1, 1)).all():
        odd = array[~np.isin(array, (-1, 1))][0]
        raise InputError(f"{name} must hold labels in {{-1, +1}}; got {odd:g}.")
    return array.astype(np.int64)


def _one_for_each(name: str, entry: str, array: NDArray[Any], points: int) -> None:
    if array.shape != (points,):
        rule = f"must hold one {entry} for each of the {points} points"
        raise InputError(f"{name} {rule}; got the shape {array.shape}.")


def indices(name: str, value: ArrayLike, *, length: int, below: int) -> IntArray:
    """Return `value` as whole numbers from 0 to `below` - 1, one for each point."""
    array = np.asarray(value)
    _one_for_each(name, "number", array, length)
    if not np.issubdtype(array.dtype, np.integer) or array.min() < 0 or array.max() >= below:
        raise InputError(f"{name} must hold whole numbers from 0 to {below - 1}.")
    return array.astype(np.int64)


def generator(rng: Any) -> np.random.Generator:
    """Return `rng` if it is a `numpy.random.Generator`: randomness is always handed in."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(
            f"rng must be a numpy Generator, such as numpy.random.default_rng(0); got {rng!r}."
        )
    return rng


def memory(what: str, size: float) -> None:
    """Refuse what would need more bytes than the machine has, before anything is allocated."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):  # not every system tells
        return
    if size > machine:
        raise InputError(
            f"{what} would need {size / 1e9:,.1f} GB of memory, and this machine has "
            f"{machine / 1e9:,.1f} GB."
        )


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or a text that stands for a missing one."""
    if isinstance(value, str):
        return value.strip().lower() in _MISSING_TEXTS
    is_nan = isinstance(value, float | np.floating) and value != value
    return is_nan or type(value).__name__ in _MISSING_TYPES

"""Checks of labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from featavg.checks import is_missing
from featavg.errors import InputError, shortened


def check_labels(
    name: str, values: Any, place: Callable[[int], str] = "at index {}".format
) -> None:
    """Refuse labels that are missing, of several types, or continuous.

    Parameters
    ----------
    name : str
        The name of the labels in messages.
    values : array of shape (points,)
        The labels.
    place : callable
        Describes the place of a label, given its index.

    Examples
    --------
    >>> check_labels("y", np.array(["cat", "", "dog"]))
    Traceback (most recent call last):
    featavg.errors.InputError: y must have a value for every point; got 1 missing, at index 1: fill
    in what is missing, or leave such points out.
    """
    missing = np.flatnonzero([is_missing(value) for value in values.tolist()])
    if len(missing):
        first = "" if len(missing) == 1 else "the first "
        raise InputError(
            f"{name} must have a value for every point; got {len(missing)} missing, "
            f"{first}{place(int(missing[0]))}: fill in what is missing, or leave such points out."
        )
    try:
        np.unique(values)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise InputError(
            f"{name} must have labels of one kind, numbers or text; got {' and '.join(kinds)}."
        ) from None
    if not _are_classes(values):
        kind = "continuous numbers" if values.dtype.kind == "f" else "others"
        raise InputError(
            f"{name} must have classes, named by whole numbers or text; got {kind}, such as "
            f"{shortened(values.tolist()[0])}."
        )


def _are_classes(values: Any) -> bool:
    try:
        return type_of_target(values) in ("binary", "multiclass")
    except ValueError:  # infinity
        return False

"""The values that a sweep gives to parameters, each as the type that its parameter has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from featavg import checks
from featavg.errors import InputError
from featavg.lab.parameters import plain_types

Value = float | int | str | bool


def plain(value: Any) -> Value:
    """Return a value as Python's own type."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | bool | int | float):
        raise InputError(f"a value must be a number, a word, or true or false; got {value!r}.")
    return value


def is_finite(value: Any) -> bool:
    """Return whether a value is a number that a float can hold."""
    try:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    except OverflowError:  # a whole number with hundreds of digits
        return False


class Kinds:
    """The types of the parameters of an experiment."""

    def __init__(self, parameters: Any) -> None:
        self._kinds = plain_types(type(parameters))

    def check_name(self, name: str) -> None:
        """Refuse what is not a parameter."""
        checks.choice("a parameter", name, sorted(self._kinds))

    def is_whole(self, name: str) -> bool:
        """Return whether a parameter takes whole numbers only."""
        return self._kinds[name][0] is int

    def fit(self, name: str, value: Value) -> Value:
        """Return a value as the type of a parameter, or refuse it."""
        kind, choices = self._kinds[name]
        if choices is not None:
            return checks.choice(name, value, choices)
        if kind is float and is_finite(value):
            return float(value)
        if kind is int and is_finite(value) and float(value).is_integer():
            return int(value)
        if kind is str and (is_finite(value) or isinstance(value, str)):
            return str(value)
        if kind is bool and isinstance(value, bool):
            return value
        rule = {float: "a finite number", int: "a whole number", str: "a word"}
        raise InputError(f"{name} must be {rule.get(kind, 'true or false')}; got {value!r}.")

    def fit_all(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of several parameters, each as its type."""
        for name in values:
            self.check_name(name)
        return {name: self.fit(name, plain(value)) for name, value in values.items()}

"""Read plain data from JSON into dataclasses, every field checked against its annotation.

`one_of` and `at_most` declare fields with limits.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from featavg import checks
from featavg.errors import InputError

LONGEST_TEXT = 2000
Scalar = str | int | float | bool | None
T = TypeVar("T")

_MOST_ENTRIES, _LARGEST_COUNT, _LARGEST = 2000, 10**9, 1e308


def one_of(options: Sequence[str], default: str) -> Any:
    """Declare a field that is one of some texts."""
    return field(default=default, metadata={"options": tuple(options)})


def at_most(most: int, default: Any = MISSING) -> Any:
    """Declare a list with at most so many entries, or a count of at most so many."""
    return field(default=default, metadata={"most": most})


def read_as(kind: type[T], name: str, data: Any) -> T:
    """Return plain data as an object of a dataclass, or refuse data that do not fit.

    Fields with a default may be missing, and other entries are ignored.

    Raises
    ------
    InputError
        If a field is missing, has another type, or is too large.
    """
    given, hints = mapping(name, data), get_type_hints(kind)
    values = {}
    for one in fields(kind):  # type: ignore[arg-type]
        if not one.init or (one.name not in given and one.default is not MISSING):
            continue
        value, limits = given.get(one.name), one.metadata
        if "options" in limits:
            values[one.name] = checks.choice(one.name, str(value)[:40], limits["options"])
        else:
            values[one.name] = _read(hints[one.name], one.name, value, limits.get("most"))
    return kind(**values)


def mapping(name: str, data: Any, most: int = _MOST_ENTRIES) -> dict[str, Any]:
    """Return data that are an object of JSON."""
    return _sized(dict, f"{name} must hold an object", data, most)


def entries(name: str, data: Any, most: int = _MOST_ENTRIES) -> list[Any]:
    """Return data that are a list."""
    return _sized(list, f"{name} must be a list", data, most)


def _sized(kind: type[Any], rule: str, data: Any, most: int) -> Any:
    if not isinstance(data, kind) or len(data) > most:
        size = f" of {len(data)}" if isinstance(data, kind) else ""
        raise InputError(f"{rule} of at most {most} entries; got {type(data).__name__}{size}.")
    return data


def _read(hint: Any, name: str, value: Any, most: int | None = None) -> Any:
    """Return a value of the annotated type, or refuse it."""
    if hint in _READERS:
        return _READERS[hint](name, value)
    if hint is int:
        return _count(name, value, most or _LARGEST_COUNT)
    if is_dataclass(hint):
        return read_as(hint, f"a {hint.__name__}", value)  # type: ignore[arg-type,union-attr]
    kinds = [option for option in get_args(hint) if option is not types.NoneType]
    if get_origin(hint) is types.UnionType:  # of None and one other
        return None if value is None else _read(kinds[0], name, value, most)
    if get_origin(hint) is Mapping:
        found = mapping(name, value, most or _MOST_ENTRIES)
        return {_text(name, key): _read(kinds[1], key[:40], item) for key, item in found.items()}
    return [_read(kinds[0], name, item) for item in entries(name, value, most or _MOST_ENTRIES)]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise InputError(f"{name} must be a text of at most {LONGEST_TEXT} characters.")
    return value


def _number(name: str, value: Any) -> float:
    # true is an int to Python, and 10**400 no float
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return float(value)
    raise InputError(f"{name} must be a number below {_LARGEST}; got {type(value).__name__}.")


def _count(name: str, value: Any, most: int) -> int:
    if checks.count(name, value, minimum=0) > most:
        raise InputError(f"{name} must be at most {most}.")
    return int(value)


def _scalar(name: str, value: Any) -> Scalar:
    """Return a text, a number, True, False or None as it is."""
    if isinstance(value, str):
        return _text(name, value)
    if value is not None and not isinstance(value, bool):
        _number(name, value)
    return value


_READERS: dict[Any, Callable[[str, Any], Any]] = {
    str: _text,
    float: _number,
    bool: checks.flag,
    Scalar: _scalar,
}

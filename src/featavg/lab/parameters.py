"""The parameters of experiments: dataclasses whose fields say which values they take."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from typing import Any

from featavg import checks
from featavg.errors import InputError


def parameter(
    default: Any,
    description: str,
    *,
    least: int | None = None,
    most: int | None = None,
    checked: bool = True,
) -> Any:
    """Declare a parameter of an experiment; `--help` shows the description.

    `CheckedParameters` have whole numbers of at least `least`, by default 1, and other numbers
    above 0, or from 0 on if that is `least`, and at most `most`; they leave those that are not
    `checked` as they are.
    """
    rule = {"least": least, "most": most} if checked else {}
    return field(default=default, metadata={"help": description, **rule})


def _plain_type(kind: Any) -> tuple[type, tuple[str, ...] | None]:
    if typing.get_origin(kind) is typing.Literal:
        return str, typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        (kind,) = (option for option in kind.__args__ if option is not types.NoneType)
    return kind, None


def plain_types(kind: Any) -> dict[str, tuple[type, tuple[str, ...] | None]]:
    """Return the type of every parameter, int for `int | None`, and the options of a `Literal`."""
    hints = typing.get_type_hints(kind)
    return {item.name: _plain_type(hints[item.name]) for item in fields(kind)}


@dataclass(frozen=True, kw_only=True)
class CheckedParameters:
    """Parameters that are checked by their types, and converted to them: 1 and 1.0 are one run."""

    def __post_init__(self) -> None:
        types_of = plain_types(type(self))
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and "least" in item.metadata:
                value = _checked(item.name, value, *types_of[item.name], item.metadata["least"])
                most = item.metadata["most"]
                if most is not None and value > most:
                    raise InputError(f"{item.name} must be at most {most}; got {value!r}.")
                object.__setattr__(self, item.name, value)

    def refuse_varied(self, names: Collection[str], instead: str) -> None:
        """Refuse values for parameters that the experiment varies itself."""
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in names and value != item.default:
                raise InputError(f"{item.name} is what {instead}; got {item.name}={value!r}.")


def _checked(
    name: str, value: Any, kind: type, options: tuple[str, ...] | None, least: int | None
) -> Any:
    if options is not None:
        return checks.choice(name, value, options)
    if kind is int:
        return checks.count(name, value, minimum=1 if least is None else least)
    return checks.scale(name, value, zero=least == 0) if kind is float else value

"""Names of a package that are imported when they are first used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def imported(package: str, name: str, homes: Mapping[str, str]) -> Any:
    """Return a public name of a package, or a module of it; for its ``__getattr__``.

    Parameters
    ----------
    package : str
        The name of the package.
    name : str
        What is asked for.
    homes : mapping
        The module that defines each public name.
    """
    if name in homes:
        return getattr(import_module(homes[name]), name)
    full = f"{package}.{name}"
    try:
        if not name.startswith("_"):
            return import_module(full)
    except ModuleNotFoundError as error:
        if error.name != full:
            raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")

"""Lists of names in parameters of experiments."""

from __future__ import annotations

from collections.abc import Collection

from featavg import checks


def chosen_names(parameter: str, text: str, options: Collection[str]) -> str:
    """Return the names in a text, with commas between them, in the order of the options.

    Examples
    --------
    >>> chosen_names("splits", "parity,first-five", ["first-five", "parity", "random"])
    'first-five, parity'
    """
    named = {checks.choice(parameter, part.strip(), options) for part in text.split(",")}
    return ", ".join(option for option in options if option in named)

"""Document attributes that end in an underscore, as scikit-learn's do, and several in one line.

Napoleon writes ``:ivar classes_, head_: text``, which reStructuredText reads as references and as
one name with a type.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_IVAR = re.compile(r"^:(?P<field>ivar|vartype) (?P<names>[\w, ]+):(?P<text>.*)$")


def separate(lines: list[str]) -> list[str]:
    r"""Return the lines with one field for each name, and underscores escaped.

    Examples
    --------
    >>> separate([":ivar classes_, head_: As elsewhere.", "Other text."])
    [':ivar classes\\_: As elsewhere.', ':ivar head\\_: As elsewhere.', 'Other text.']
    """
    found = []
    for line in lines:
        field = _IVAR.match(line)
        if field is None:
            found.append(line)
            continue
        for name in field["names"].split(","):
            shown = re.sub(r"_$", r"\\_", name.strip())
            found.append(f":{field['field']} {shown}:{field['text']}")
    return found


def _process(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    del app, what, name, item, options
    lines[:] = separate(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect after Napoleon."""
    app.connect("autodoc-process-docstring", _process, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

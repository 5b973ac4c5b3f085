"""Warnings of damaged files as the command line prints them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from featavg.apps.cli.terminal import complain
from featavg.errors import DamagedFileWarning


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print each warning of a damaged file as a sentence, and all others as Python does."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, DamagedFileWarning):
                complain(str(message))
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", DamagedFileWarning)
        yield

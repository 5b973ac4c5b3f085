"""Progress that a person can follow: a bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_SECONDS_BETWEEN_LINES = 30.0
_innermost: ContextVar[ProgressReporter | None] = ContextVar("innermost reporter", default=None)


class ProgressReporter(AbstractContextManager["ProgressReporter"]):
    """Report how far a piece of work is, on standard error.

    One that is opened inside another is a part of it: a second bar below the first on a
    terminal, and in a pipe lines that name both.

    Parameters
    ----------
    label : str
        What is being done.
    total : int
        How many steps it has.
    enabled : bool
        If False, nothing is ever printed.
    """

    def __init__(self, label: str, total: int, *, enabled: bool = True) -> None:
        self._label, self._total, self._done = label, total, 0
        self._enabled = enabled

    def __enter__(self) -> ProgressReporter:
        if not self._enabled:
            return self
        self._outer = _innermost.get()
        self._token = _innermost.set(self)
        self._start = self._last_line = time.monotonic()
        self._bar: Progress | None = self._outer._bar if self._outer is not None else None
        if self._outer is None and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        if self._bar is not None:
            self._task = self._bar.add_task(self._label, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._enabled:
            return
        _innermost.reset(self._token)
        if self._bar is not None:
            self._bar.remove_task(self._task)
            if self._outer is None:
                self._bar.stop()

    def advance(self, steps: int = 1) -> None:
        """Report that `steps` more are done."""
        self._done += steps
        if not self._enabled:
            return
        if self._bar is not None:
            self._bar.advance(self._task, steps)
        elif time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            with suppress(OSError):  # work goes on if nobody can read this
                print(self._line(), file=sys.stderr, flush=True)

    def show(self, done: int, label: str) -> None:
        """Report how many steps are done in all, under another label."""
        self._label = label
        if self._enabled and self._bar is not None:
            self._bar.update(self._task, description=label)
        self.advance(done - self._done)

    def _line(self) -> str:
        """Return where the work is, in words."""
        text = f"{self._label}: {self._done}/{self._total}"
        if self._outer is not None:
            text = f"{self._outer._label} {self._outer._done}/{self._outer._total}, {text}"
        if 0 < self._done < self._total:
            elapsed = time.monotonic() - self._start
            text += f", about {elapsed * (self._total / self._done - 1):.0f} s left"
        return text


def wanted() -> bool:
    """Return whether this is part of a larger piece of work whose progress is being reported."""
    return _innermost.get() is not None


def counted(total: int, label: str, *, enabled: bool) -> Iterator[int]:
    """Yield 0, 1, ..., total - 1 and report each as done when the next is asked for."""
    with ProgressReporter(label, total, enabled=enabled) as reporter:
        for step in range(total):
            yield step
            reporter.advance()

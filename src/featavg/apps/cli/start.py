"""The entry point of the command line, which imports nothing slow before Ctrl-C is handled."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import traceback
from types import FrameType

_INTERRUPTED, _INTERNAL_ERROR = 130, 70
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        code = _run()
        _end_at_interrupts(True)  # nothing is left that takes time
    except KeyboardInterrupt:  # where the command line itself does not catch it
        _end_at_interrupts(True)
        _say_interrupted()
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        _leave()
    _drop_what_cannot_be_written()
    return code


def _run() -> int:
    """Run the command line; Ctrl-C ends the process at once until there is something to end."""
    _prepare_streams()
    _end_at_interrupts(True)
    try:
        from featavg.apps.cli.main import main as run  # takes a second or two

        _end_at_interrupts(False)
        return run()
    except SystemExit as ended:  # of argparse
        return int(ended.code or 0)
    except Exception:  # 1 is the exit code of a violated expectation
        with contextlib.suppress(OSError):
            traceback.print_exc()
        return _INTERNAL_ERROR


def _drop_what_cannot_be_written() -> None:
    """Empty the buffers of output, or else Python ends with 120 where a disk is full."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # ValueError: it has no file
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _leave() -> None:
    """End the process and its workers without the seconds that an orderly end may take."""
    _end_at_interrupts(True)
    if multiprocessing := sys.modules.get("multiprocessing"):
        for child in multiprocessing.active_children():
            with contextlib.suppress(OSError):  # it has ended
                os.kill(child.pid, _KILL)  # because processes of joblib have no kill()
        sys.modules["multiprocessing.util"]._run_finalizers(0)  # removes semaphores
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(_INTERRUPTED)


def _prepare_streams() -> None:
    """Open the null device for streams that are closed; replace characters that output lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _end_at_interrupts(at_once: bool) -> None:
    """Set whether Ctrl-C ends the process at once; it stays ignored if it was at the start."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end if at_once else signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    _say_interrupted()
    os._exit(_INTERRUPTED)


def _say_interrupted() -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"featavg: interrupted.\n")

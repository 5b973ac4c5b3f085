"""The worker processes of the playground.

Python threads would share one core, and a long computation for one visitor would block the pages of
the others. Each process keeps many trainings and answers short requests in the order of arrival, so
that all of them make progress.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import multiprocessing
import os
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from threadpoolctl import threadpool_limits

from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.settings import Settings
from featavg.errors import InputError

_LARGEST_POOL = 8
_SLICE = 0.06  # seconds of training for one request
_RADII_SLICE = 0.3


class WorkerLostError(RuntimeError):
    """A worker process ended unexpectedly, and its trainings are lost."""


class Worker:
    """A process, and the thread that exchanges messages with it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)  # its queue keeps the order of requests
        self._start()

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    async def call(self, command: str, key: int, *arguments: Any) -> Any:
        """Send a command to the process and return its answer."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._exchange, command, key, *arguments)

    def _exchange(self, *request: Any) -> Any:
        try:
            self._pipe.send(request)
            is_answer, answer = self._pipe.recv()
        except (EOFError, OSError):
            self._start()  # for the next request
            raise WorkerLostError(
                "the computation was lost because a process of the playground ended; train again."
            ) from None
        if is_answer:
            return answer
        raise InputError(answer)

    def stop(self) -> None:
        """Terminate the process."""
        self._process.terminate()
        self._process.join()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._pipe.close()


class RemoteRun:
    """A `NetworkRun` in another process."""

    _keys = itertools.count()

    def __init__(self, worker: Worker, settings: Settings, network: str) -> None:
        self.network = network
        self._worker, self._settings, self._key = worker, settings, next(self._keys)
        self.is_open = False

    async def open(self) -> None:
        """Draw the points and the network."""
        self.is_open = True  # also while it is being opened
        await self.ask("open", self._settings, self.network)

    async def ask(self, command: str, *arguments: Any) -> Any:
        """Return the answer to one of the commands of `_answer`."""
        return await self._worker.call(command, self._key, *arguments)

    async def close(self) -> None:
        """Drop it."""
        if self.is_open:
            self.is_open = False
            await self.ask("close")


class Pool:
    """All worker processes; the two networks of a visitor run in different ones."""

    def __init__(self, size: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._workers = [Worker() for _ in range(size or min(max(cores or 1, 2), _LARGEST_POOL))]
        self._visitors = itertools.count()

    @property
    def size(self) -> int:
        """The number of processes."""
        return len(self._workers)

    def runs(self, settings: Settings) -> list[RemoteRun]:
        """Return a run for each network, not opened yet."""
        # start at another process each time, because fine labels are more work than coarse ones
        first = next(self._visitors)
        return [
            RemoteRun(self._workers[(first + i) % self.size], settings, name)
            for i, name in enumerate(settings.networks)
        ]

    def stop(self) -> None:
        """Terminate all processes."""
        for worker in self._workers:
            worker.stop()


def _work(pipe: Connection) -> None:
    """Answer requests until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C and ends this process
    if hasattr(os, "nice"):
        os.nice(10)  # a browser on the same machine has to draw meanwhile
    threadpool_limits(limits=1)  # one core for each process
    runs: dict[int, NetworkRun] = {}
    while True:
        try:
            request = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer = True, _answer(runs, *request)
        except InputError as error:
            answer = False, str(error)
        except MemoryError:
            answer = False, "this needs more memory than the machine has left; take fewer samples."
        except Exception:  # a bug must not end the trainings of other visitors
            traceback.print_exc()
            answer = False, "an internal error occurred; the terminal shows its traceback."
        pipe.send(answer)


def _return_memory() -> None:
    """Return freed memory to the operating system, which glibc would keep for later."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def _answer(runs: dict[int, NetworkRun], command: str, key: int, *arguments: Any) -> Any:
    if command == "open":
        runs[key] = NetworkRun(*arguments)
        return None
    if command == "close":
        runs.pop(key, None)
        _return_memory()
        return None
    if key not in runs:
        raise InputError("this training is no longer kept; train again.")
    run = runs[key]
    if command == "where":  # the next position if it is between two
        return run.position + run.is_between
    if command == "advance":
        run.advance(*arguments, seconds=_SLICE)
        return run.position, run.snapshot()
    if command == "measure":
        return run.measure(seconds=_RADII_SLICE)
    if command == "radius":
        return run.radius(*arguments)
    if command == "slice":
        return run.slice(*arguments)
    raise ValueError(f"no such command: {command}")

"""The worker processes of the playground.

Python threads would share one core, and a long computation for one visitor would block the pages of
the others. Each process keeps many trainings and answers short requests in the order of arrival, so
that all of them make progress. A process without trainings ends after a while, because nothing else
returns all of its memory, and is started again when it is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import math
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from threadpoolctl import threadpool_limits

from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.settings import Settings
from featavg.errors import InputError

_LARGEST_POOL = 8
_SLICE = 0.06  # seconds of training for one request
_RADII_SLICE = 0.3
_REST = 4.0  # seconds without trainings after which a process ends


class WorkerLostError(RuntimeError):
    """A worker process ended unexpectedly, and its trainings are lost."""


class Worker:
    """A process while there is one, and the thread that starts and ends it and talks to it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)  # its queue keeps the order of requests
        self._process: SpawnProcess | None = None
        self._open: set[int] = set()
        self._last_used = time.monotonic()

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def wake(self) -> None:
        """Start the process, without waiting for it."""
        self._thread.submit(self._start)

    async def end_if_unused(self) -> None:
        """End the process if it has had no training for a while."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._end_if_unused)

    def _start(self) -> None:
        if self._process is None:
            spawn = multiprocessing.get_context("spawn")
            self._pipe, theirs = spawn.Pipe()
            self._process = spawn.Process(target=_work, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        self._last_used = time.monotonic()

    def _end_if_unused(self) -> None:
        if not self._open and time.monotonic() - self._last_used >= _REST:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._pipe.close()
            self._process.terminate()
            self._process.join()
            self._process.close()
            self._process = None

    async def call(self, command: str, key: int, *arguments: Any) -> Any:
        """Send a command to the process and return its answer."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._exchange, command, key, *arguments)

    def _exchange(self, command: str, key: int, *arguments: Any) -> Any:
        if command == "open":
            self._open.add(key)
        elif command == "close":
            if key not in self._open:  # its process has ended
                return None
            self._open.discard(key)
        self._start()
        try:
            self._pipe.send((command, key, *arguments))
            is_answer, answer = self._pipe.recv()
        except (EOFError, OSError):
            self._end()  # the next request starts another one
            self._open.clear()
            raise WorkerLostError(
                "the computation was lost because a process of the playground ended; train again."
            ) from None
        finally:
            self._last_used = time.monotonic()
        if is_answer:
            return answer
        raise InputError(answer)

    def stop(self) -> None:
        """Terminate the process."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if (process := self._process) is not None:
            with contextlib.suppress(ValueError):  # the thread has just closed it
                process.terminate()  # the thread may be waiting for an answer
        self._thread.shutdown(wait=True)
        self._end()


class RemoteRun:
    """A `NetworkRun` in another process."""

    _keys = itertools.count()

    def __init__(
        self, worker: Worker, settings: Settings, network: str, seconds_in_all: float | None = None
    ) -> None:
        self.network = network
        self._limit = seconds_in_all
        self._worker, self._settings, self._key = worker, settings, next(self._keys)
        self.is_open = False

    async def open(self) -> None:
        """Draw the points and the network."""
        self.is_open = True  # also while it is being opened
        await self.ask("open", self._settings, self.network, self._limit)

    async def ask(self, command: str, *arguments: Any) -> Any:
        """Return the answer to one of the commands of `_answer`."""
        return await self._worker.call(command, self._key, *arguments)

    async def close(self) -> None:
        """Drop it."""
        if self.is_open:
            self.is_open = False
            await self.ask("close")


class Pool:
    """All worker processes; the two networks of a visitor run in different ones.

    Each training may compute for `seconds_in_all`, by default as long as the playground allows.
    """

    def __init__(self, size: int | None = None, seconds_in_all: float | None = None) -> None:
        self._limit = seconds_in_all
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._workers = [Worker() for _ in range(size or min(max(cores or 1, 2), _LARGEST_POOL))]
        self._visitors = itertools.count()

    @property
    def size(self) -> int:
        """The number of processes."""
        return len(self._workers)

    @property
    def running(self) -> int:
        """The number of processes that are running now."""
        return sum(worker.is_running for worker in self._workers)

    def wake(self) -> None:
        """Start the processes that are not running, without waiting for them."""
        for worker in self._workers:
            worker.wake()

    async def end_unused(self) -> None:
        """End the processes that have had no training for a while."""
        before = self.running
        await asyncio.gather(*(worker.end_if_unused() for worker in self._workers))
        if self.running < before:
            _return_memory()

    def runs(self, settings: Settings) -> list[RemoteRun]:
        """Return a run for each network, not opened yet."""
        # start at another process each time, because fine labels are more work than coarse ones
        first = next(self._visitors)
        return [
            RemoteRun(self._workers[(first + i) % self.size], settings, name, self._limit)
            for i, name in enumerate(settings.networks)
        ]

    def stop(self) -> None:
        """Terminate all processes."""
        for worker in self._workers:
            worker.stop()


async def ask_all(runs: Sequence[RemoteRun], command: str, *arguments: Any) -> dict[str, Any]:
    """Return the answer of each network; wait for all of them even if one is refused."""
    questions = (run.ask(command, *arguments) for run in runs)
    answers = await asyncio.gather(*questions, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return {run.network: answer for run, answer in zip(runs, answers, strict=True)}


async def ask_for_planes(runs: Sequence[RemoteRun], point: int) -> dict[str, Any]:
    """Return the plane of a fresh point for each network.

    All have one scale, because their circles are to be compared.
    """
    radius = await ask_all(runs, "radius", point)
    reach = max((r for r in radius.values() if math.isfinite(r)), default=0.0)
    return await ask_all(runs, "slice", point, reach)


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
        settings, network, limit = arguments
        runs[key] = NetworkRun(settings, network, seconds_in_all=limit)
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
    if command == "data":
        return run.data()
    if command == "measure":
        return run.measure(seconds=_RADII_SLICE, points=arguments[0])
    if command == "radius":
        return run.radius(*arguments)
    if command == "slice":
        return run.slice(*arguments)
    raise ValueError(f"no such command: {command}")

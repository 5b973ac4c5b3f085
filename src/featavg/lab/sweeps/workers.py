"""What computes the runs of a sweep: processes of this machine, or the workers of a cluster."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg.errors import InputError
from featavg.lab.sweeps.store import FAILED, Row, row_of

if TYPE_CHECKING:
    from featavg.lab.experiment import Experiment
    from featavg.lab.sweeps.design import Design, Job

_CONNECT_SECONDS = 20
_GONE = (
    "the scheduler of the cluster is gone; finished runs are kept, and the same command continues "
    "once it is back."
)


class WorkerDied(Exception):  # noqa: N818 - it is what happened
    """A worker is gone, and with it what it was computing."""


def run_batch(design: Design, batch: Sequence[Job], source: str) -> list[Row]:
    """Run jobs one after the other with one thread each: what a worker does."""
    from threadpoolctl import threadpool_limits

    os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # joblib inside a worker is not to start more
    with threadpool_limits(limits=1):
        return [_run_one(design, job, source) for job in batch]


def _run_one(design: Design, job: Job, source: str) -> Row:
    """Return the row of one run, or of its failure."""
    start = time.perf_counter()
    try:
        parameters = replace(design.start, **job.parameters)
        numbers = _scalars(design.experiment, parameters, job)
    except Exception as error:  # recorded, and the others go on
        text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        return row_of(job, source, time.perf_counter() - start, status=FAILED, error=text[:1000])
    undefined = [name for name, value in numbers.items() if np.isnan(value)]
    outcome: dict[str, Any] = dict(numbers)
    if undefined:
        outcome |= {"status": FAILED, "error": f"{', '.join(undefined)} is not a number"}
    return row_of(job, source, time.perf_counter() - start, **outcome)


def _scalars(experiment: Experiment, parameters: Any, job: Job) -> dict[str, float]:
    """Return the measurements that are single numbers, under names that are free."""
    measured = experiment.measure(parameters, job.seed)
    taken = {*job.varied, "id", "seed", "status", "error", "source", "seconds"}
    return {
        f"measured_{name}" if name in taken else name: float(value)
        for name, value in measured.items()
        if np.ndim(value) == 0
    }


@contextlib.contextmanager
def local_workers(count: int) -> Iterator[Executor]:
    """Give processes of this machine, each started anew, that end when nobody needs them."""
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin)
    try:
        yield executor
    finally:
        # what is under way is not waited for: it would be lost anyway
        processes = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end with it, also if it was killed."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def on_cluster(address: str) -> Iterator[tuple[Executor, int, Callable[[], None]]]:
    """Give the workers of a Dask cluster, their number, and what complains if it is gone."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host
    except ModuleNotFoundError:
        raise InputError("a cluster needs Dask: pip install 'featavg[cluster]'.") from None
    make: Any = Client  # has no types
    try:
        # a Client that is given what is no address is never closed, and complains 40 s later
        get_address_host(address)
        client = make(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"cluster must be the address of a Dask scheduler; got {address!r} "
            f"({' '.join(str(error).split())[:200]})."
        ) from None
    try:
        _check_cluster(client)
        threads = sum(client.nthreads().values())
        # failures are not retried here: what was measured is deterministic
        executor = client.get_executor(pure=False, retries=0)
        yield executor, max(1, threads), lambda: _check_alive(client)
    finally:
        with contextlib.suppress(Exception):  # a scheduler that died cannot be said goodbye to
            client.close(timeout=5)


def _check_alive(client: Any) -> None:
    if client.status != "running":
        raise InputError(_GONE)


def _check_cluster(client: Any) -> None:
    """Refuse a cluster without workers, or whose workers have other source code."""
    answers = client.run(_source_there, on_error="return")
    # the scheduler may not have noticed yet that a worker is gone: nobody answers there
    found = {worker: got for worker, got in answers.items() if not isinstance(got, OSError)}
    if not found:
        raise InputError("cluster must have a worker, and this one has none.")
    for worker, source in found.items():
        if isinstance(source, Exception):
            raise source
        if source != source_here():
            raise InputError(
                f"cluster must run the same source code of featavg, and {worker} has another."
            )


def source_here() -> str:
    """Return the hash of the source code of this process."""
    from featavg.lab.run_folder import versions

    return versions()["source"]


def _source_there() -> str:
    """Return the same in a worker, where nothing can have replaced `source_here`."""
    return source_here()


def died(error: BaseException) -> bool:
    """Return whether an error means that a worker is gone; complain if all of them are."""
    if isinstance(error, WorkerDied | BrokenProcessPool):
        return True
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    # with its scheduler a client loses its futures, whatever else it says
    lost = (CancelledError, distributed.CancelledError, distributed.comm.CommClosedError)
    if isinstance(error, lost):
        raise InputError(_GONE) from None
    return isinstance(error, distributed.KilledWorker)

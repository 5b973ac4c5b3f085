"""The workers of a sweep: processes of this machine, or those of a Dask cluster."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import cpu_count

from featavg import checks
from featavg.errors import InputError, optional_imports
from featavg.lab.experiment import Experiment, as_arrays
from featavg.lab.processes import local_workers, one_thread
from featavg.lab.source import module_hash, module_of, package_hash
from featavg.lab.sweeps.design import Design, Job
from featavg.lab.sweeps.store import FAILED, Row, row_of

_CONNECT_SECONDS = 20
_GONE = (
    "the scheduler of the cluster cannot be reached; finished runs are saved, and the same command "
    "continues once it can."
)


class WorkerDied(Exception):  # noqa: N818 - an event, not a fault of this program
    """A worker ended before it returned its results."""


@dataclass(frozen=True)
class WorkerPool:
    """Workers for a sweep.

    Attributes
    ----------
    start : callable
        Returns a context manager that gives an executor, again after a worker has died.
    count : int
        The number of workers.
    check_alive : callable
        Raises an `InputError` if the workers can no longer be reached.
    """

    start: Callable[[], contextlib.AbstractContextManager[Executor]]
    count: int
    check_alive: Callable[[], None]


@contextlib.contextmanager
def worker_pool(
    workers: int | None, cluster: str | None, experiment: Experiment
) -> Iterator[WorkerPool]:
    """Give processes of this machine, or the workers of a cluster that can run an experiment."""
    if cluster is None:
        count = cpu_count() if workers is None else checks.count("workers", workers)
        yield WorkerPool(lambda: local_workers(count), count, lambda: None)
        return
    if workers is not None:
        raise InputError("workers must not be given with a cluster, which has its own.")
    with _cluster_client(cluster) as client:
        _check_cluster(client, experiment)
        threads = sum(client.nthreads().values())
        # failures are not retried here: measurements are deterministic
        executor = client.get_executor(pure=False, retries=0)
        yield WorkerPool(
            lambda: contextlib.nullcontext(executor), max(1, threads), lambda: _check_alive(client)
        )


def run_batch(design: Design, batch: Sequence[Job], source: str) -> list[Row]:
    """Run jobs in a worker, one after the other with one thread each."""
    with one_thread():
        return [_run_one(design, job, source) for job in batch]


def _run_one(design: Design, job: Job, source: str) -> Row:
    """Return the row of one run, or of its failure."""
    start = time.perf_counter()
    try:
        parameters = replace(design.start, **job.parameters)
        numbers = _scalars(design.experiment, parameters, job)
    except Exception as error:  # recorded, and the other jobs are run
        text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        return row_of(job, source, time.perf_counter() - start, status=FAILED, error=text[:1000])
    undefined = [name for name, value in numbers.items() if np.isnan(value)]
    outcome: dict[str, Any] = dict(numbers)
    if undefined:
        outcome |= {"status": FAILED, "error": f"{', '.join(undefined)} is not a number"}
    return row_of(job, source, time.perf_counter() - start, **outcome)


def _scalars(experiment: Experiment, parameters: Any, job: Job) -> dict[str, float]:
    """Return the measurements that are single numbers, under names that no other column has."""
    measured = as_arrays(experiment.measure(parameters, job.seed))
    taken = {*job.varied, "id", "seed", "status", "error", "source", "seconds"}
    return {
        f"measured_{name}" if name in taken else name: float(value)
        for name, value in measured.items()
        if np.ndim(value) == 0
    }


@contextlib.contextmanager
def _cluster_client(address: str) -> Iterator[Any]:
    """Connect to the scheduler of a Dask cluster."""
    with optional_imports("a cluster"):
        from distributed import Client
        from distributed.comm import get_address_host
    make: Any = Client  # has no types
    try:
        # a Client with an invalid address is never closed, and logs an error 40 s later
        get_address_host(address)
        client = make(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"cluster must be the address of a Dask scheduler; got {address!r} "
            f"({' '.join(str(error).split())[:200]})."
        ) from None
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):  # without its scheduler it cannot be closed cleanly
            client.close(timeout=5)


def _check_alive(client: Any) -> None:
    if client.status != "running":
        raise InputError(_GONE)


def _check_cluster(client: Any, experiment: Experiment) -> None:
    """Refuse a cluster without workers, or with workers that have other source code."""
    module = module_of(experiment.measure)
    answers = client.run(_worker_source, module, on_error="return")
    # the scheduler may not have noticed yet that a worker ended: that one cannot be reached
    found = {worker: got for worker, got in answers.items() if not isinstance(got, OSError)}
    if not found:
        raise InputError("cluster must have a worker, and this one has none.")
    for worker, source in found.items():
        if isinstance(source, ModuleNotFoundError):
            raise InputError(
                f"cluster must have the package of this experiment, and {worker} has no {module}."
            )
        if isinstance(source, Exception):
            raise source
        if source != source_here(module):
            raise InputError(
                f"cluster must run the same source code of featavg, and {worker} has another."
            )


def source_here(module: str) -> str:
    """Return a hash of the package and of the code of a module in this process."""
    # Dask sends the code of __main__ along
    return package_hash() if module == "__main__" else f"{package_hash()} {module_hash(module)}"


def _worker_source(module: str) -> str:
    """Return the same in a worker, where tests cannot replace `source_here`."""
    importlib.import_module(module)
    return source_here(module)


def died(error: BaseException) -> bool:
    """Return whether an error means that a worker died; raise if the whole cluster is gone."""
    if isinstance(error, WorkerDied | BrokenProcessPool):
        return True
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    # a client that loses its scheduler cancels its futures, under one of several errors
    lost = (CancelledError, distributed.CancelledError, distributed.comm.CommClosedError)
    if isinstance(error, lost):
        raise InputError(_GONE) from None
    return isinstance(error, distributed.KilledWorker)

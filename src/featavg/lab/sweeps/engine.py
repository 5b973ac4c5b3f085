"""Run a sweep: batches of runs on the cores of this machine, or on a Dask cluster."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from featavg.errors import optional_imports
from featavg.lab.sweeps.design import Design, Job
from featavg.lab.sweeps.store import DONE, FAILED, Row, Store, row_of
from featavg.lab.sweeps.workers import WorkerDied, WorkerPool, died, run_batch, worker_pool
from featavg.progress import ProgressReporter

if TYPE_CHECKING:
    import pyarrow as pa

_SECONDS_OF_A_BATCH = 2.0  # much longer than handing one out, and cheap to compute again
_LARGEST_BATCH = 256
_SECONDS_BETWEEN_CHECKS = 5.0  # whether the scheduler is still there
_WAITING = 2  # batches for each worker, so that none has to wait for the next


def sweep(
    design: Design,
    out: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    retry_failed: bool = False,
    progress: bool = False,
    watch: Callable[[list[Row]], None] | None = None,
) -> pa.Table:
    """Run the missing runs of a sweep and return the table of all its runs.

    Paper: none, an extension. Every finished batch is on the disk before it counts as finished.
    A sweep that was stopped in any way continues with the missing runs; a run that fails is
    recorded with its error and does not stop the others; a damaged file is named in a
    `DamagedFileWarning` and made again. Each worker computes with one thread, so
    the numbers do not depend on the number of workers.

    Parameters
    ----------
    design : Design
        The runs.
    out : path
        The folder of the sweep: ``parts/*.parquet`` as they come, ``results.parquet`` at the end.
    workers : int, optional
        Processes on this machine; as many as there are cores by default.
    cluster : str, optional
        The address of a Dask scheduler, such as ``tcp://10.0.0.1:8786``, to run there instead.
    retry_failed : bool
        Whether to repeat runs that failed before.
    progress : bool
        Whether to report progress on standard error.
    watch : callable, optional
        Called after every finished batch, with the rows of all finished runs.

    Returns
    -------
    pyarrow.Table
        One row for each run: the varied parameters, the seed, the measurements that are single
        numbers, and ``status`` and ``error``. ``.to_pandas()`` returns a frame.

    Examples
    --------
    >>> import tempfile
    >>> from featavg.lab import registry
    >>> design = Design.of(registry.find("averaging"), axes={"learning_rate": [1e-4, 1e-3]},
    ...                    fixed={"dim": 200, "samples": 50, "test_samples": 5})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = sweep(design, folder, workers=1)
    >>> table.column("status").to_pylist()
    ['done', 'done']
    """
    require()
    store = Store(Path(out), design.experiment.source)
    jobs = design.jobs()
    with (
        worker_pool(workers, cluster, design.experiment) as pool,  # may refuse, writing nothing
        store.opened(design) as alone,
    ):
        done = (DONE,) if retry_failed else (DONE, FAILED)
        left = [job for job in jobs if store.status(job) not in done]
        # a second process begins at the other end
        queue = deque(left if alone else reversed(left))
        run = _Sweep(design, store, queue, pool)
        with ProgressReporter(design.experiment.id, len(left), enabled=progress) as reporter:
            for finished in run.batches():
                reporter.advance(finished)
                if watch is not None:
                    watch(store.finished(jobs))
    store.refresh()
    return store.write_table(jobs)


@dataclass
class _Sweep:
    """A sweep under way."""

    design: Design
    store: Store
    left: deque[Job]
    pool: WorkerPool
    _seconds: float = 0.0
    _runs: int = 0

    def batches(self) -> Iterator[int]:
        """Run everything; yield how many runs each batch finished."""
        suspects: list[Job] = []
        while self.left or suspects:
            if suspects:  # each alone, so that only the one that kills its worker fails
                yield from self._one_by_one(suspects)
            suspects = yield from self._until_a_worker_dies()

    def _until_a_worker_dies(self) -> Generator[int, None, list[Job]]:
        """Run batches; return the runs that were under way if a worker dies, else nothing."""
        running: dict[Future[list[Row]], list[Job]] = {}
        with self.pool.start() as executor:
            while self.left or running:
                while self.left and len(running) < _WAITING * self.pool.count:
                    if batch := self._next():
                        running[self._submit(executor, batch)] = batch
                if not running:
                    break
                finished, _ = wait(running, _SECONDS_BETWEEN_CHECKS, FIRST_COMPLETED)
                if not finished:
                    self.pool.check_alive()
                for future in finished:
                    if (rows := _rows(future)) is None:
                        return list(itertools.chain.from_iterable(running.values()))
                    del running[future]
                    yield self._save(rows)
        return []

    def _one_by_one(self, suspects: Sequence[Job]) -> Iterator[int]:
        for job in suspects:
            with self.pool.start() as executor:
                rows = _rows(self._submit(executor, [job]))
            if rows is None:
                text = "the worker died, most likely because it ran out of memory"
                rows = [row_of(job, self.store.source, 0.0, status=FAILED, error=text)]
            yield self._save(rows)

    def _submit(self, executor: Executor, batch: Sequence[Job]) -> Future[list[Row]]:
        try:
            return executor.submit(run_batch, self.design, batch, self.store.source)
        except BaseException as error:
            if not died(error):
                raise
            broken: Future[list[Row]] = Future()
            broken.set_exception(WorkerDied())
            return broken

    def _next(self) -> list[Job]:
        """Take the next batch: about two seconds of work that no other process has finished."""
        mean = self._seconds / self._runs if self._runs else _SECONDS_OF_A_BATCH
        size = int(_SECONDS_OF_A_BATCH / max(mean, 1e-9))
        fair = len(self.left) // (_WAITING * self.pool.count)  # the last ones go to all workers
        self.store.refresh()
        batch: list[Job] = []
        while self.left and len(batch) < max(1, min(size, fair, _LARGEST_BATCH)):
            job = self.left.popleft()
            if self.store.status(job) != DONE:
                batch.append(job)
        return batch

    def _save(self, rows: list[Row]) -> int:
        self.store.add(rows)
        self._runs += len(rows)
        self._seconds += sum(row["seconds"] for row in rows)
        return len(rows)


def _rows(future: Future[list[Row]]) -> list[Row] | None:
    """Return the rows of a batch, or None if its worker died."""
    try:
        return future.result()
    except BaseException as error:
        if not died(error):
            raise
        return None


def require() -> None:
    """Refuse to go on without PyArrow."""
    with optional_imports("a sweep"):
        import pyarrow.parquet  # noqa: F401

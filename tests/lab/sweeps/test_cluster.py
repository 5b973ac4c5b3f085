"""Sweeps on a real Dask cluster on loopback, started as the documentation says, and its faults."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from featavg import InputError
from featavg.experiments import EXPERIMENTS
from featavg.lab.sweeps import Design, sweep, workers
from support import sweep_faults as faults

pytestmark = pytest.mark.filterwarnings("default")  # Dask's own are not ours


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, *options, port=0, **environment):
        self.options, self.processes = options, []
        self.environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
            **environment,
        }
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"
        )
        self.address = self._line(self.scheduler, r"Scheduler at:\s+(tcp://\S+)")
        for _ in range(2):
            self.add_worker()

    def add_worker(self):
        worker = self._start(
            "worker", self.address, "--nthreads", "1", "--no-dashboard", *self.options
        )
        self._line(worker, "Starting established connection")
        return worker

    def _start(self, kind, *arguments):
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind, *arguments]
        pipe = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=self.environment, start_new_session=True, **pipe)
        self.processes.append(process)
        return process

    @staticmethod
    def _line(process, pattern):
        for line in process.stderr:
            if found := re.search(pattern, line):
                return found.group(found.lastindex or 0)
        raise AssertionError(f"{pattern} was never said")

    def kill(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()
        self.processes.remove(process)

    def close(self):
        for process in list(self.processes):
            self.kill(process)


@pytest.fixture
def cluster():
    running = []

    def start(*options, **environment):
        running.append(Cluster(*options, **environment))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("local")
    sweep(Design.from_file(faults.toml(folder / "design.toml")), folder / "out", workers=1)
    return (folder / "out" / "results.parquet").read_bytes()


def until_done(process, out, parts):
    """Wait until so many parts are there, or the sweep has ended."""
    while len(list((out / "parts").glob("*.parquet"))) < parts:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)
            return


def test_a_cluster_gives_the_same_bytes_as_this_machine(cluster, tmp_path, undisturbed):
    design = Design.from_file(faults.toml(tmp_path / "design.toml"))
    sweep(design, tmp_path / "out", cluster=cluster().address)
    assert (tmp_path / "out" / "results.parquet").read_bytes() == undisturbed


@pytest.mark.faults
@pytest.mark.parametrize("number", range(faults.ROUNDS))
def test_a_worker_or_scheduler_killed_at_any_time_loses_nothing(
    number, cluster, tmp_path, undisturbed
):
    rng = random.Random(number)  # noqa: S311
    running = cluster()
    design, out = faults.toml(tmp_path / "d.toml"), tmp_path / "out"
    process = faults.start(design, out, "--cluster", running.address)
    until_done(process, out, rng.randint(1, 6))
    before = set((out / "parts").glob("*.parquet"))
    if number % 2 == 0:
        running.kill(running.processes[rng.choice([1, 2])])
        assert process.wait() == 0
    else:
        running.kill(running.scheduler)
        assert process.wait() in (0, 2)  # 2: says so, and that the same command continues
        assert faults.start(design, out, "--cluster", cluster().address).wait() == 0
    assert before <= set((out / "parts").glob("*.parquet"))
    assert (out / "results.parquet").read_bytes() == undisturbed


@pytest.mark.long
@pytest.mark.faults
def test_a_run_that_needs_more_memory_than_its_worker_fails_alone(cluster, tmp_path):
    running = cluster("--memory-limit", "400MB", "--nworkers", "1")
    design = Design.of(EXPERIMENTS["averaging"], axes={"learning_rate": [1e-3, 1e-2]})
    design = replace(design, experiment=replace(design.experiment, measure=faults.large_in_memory))
    rows = sweep(design, tmp_path, cluster=running.address).to_pylist()
    assert [row["status"] for row in rows] == ["done", "failed"]
    assert "memory" in rows[1]["error"].lower()


def test_a_cluster_with_other_source_code_or_no_workers_is_refused(cluster, tmp_path, monkeypatch):
    running = cluster()
    design = Design.from_file(faults.toml(tmp_path / "design.toml"))
    monkeypatch.setattr(workers, "source_here", lambda _: "another")
    with pytest.raises(InputError, match="the same source code"):
        sweep(design, tmp_path / "out", cluster=running.address)
    for worker in running.processes[1:]:
        running.kill(worker)
    with pytest.raises(InputError, match="must have a worker"):
        sweep(design, tmp_path / "out", cluster=running.address)

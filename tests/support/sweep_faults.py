"""A small sweep, and how to disturb it again and again until it is finished."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from featavg.experiments import EXPERIMENTS, averaging
from featavg.lab.sweeps import Design

EXPERIMENT = "averaging"
AXES = {"learning_rate": [1e-4, 1e-3, 1e-2, 1e-1], "width": [1, 2, 3, 4], "noise": [0.5, 1.0]}
FIXED = {"dim": 60, "samples": 30, "steps": 10, "test_samples": 2, "clusters": 4}
RUNS = 64  # 4 · 4 · 2 and two seeds
_MOST_STARTS = 40
ROUNDS = int(os.environ.get("FEATAVG_FAULT_ROUNDS", "1"))


def small(**changes: object) -> Design:
    """Return the design, or one that differs from it."""
    settings = {"axes": AXES, "fixed": FIXED, "seeds": 2} | changes
    return Design.of(EXPERIMENTS[EXPERIMENT], **settings)


def tiny(**changes: object) -> Design:
    """Return it with one axis of two values."""
    return small(axes={"learning_rate": [1e-3, 1e-2]}, **changes)


def stored_rows(out: Path) -> list[dict[str, object]]:
    """Return the table of a finished sweep, row by row."""
    import pyarrow.parquet as pq

    return pq.read_table(out / "results.parquet").to_pylist()


def large_in_memory(parameters, seed):
    """Take 2 GB at one of two learning rates."""
    size = 2_000_000_000 if parameters.learning_rate > 5e-3 else 1000
    return {"index": float(np.ones(size // 8).sum())}


def kills_its_worker(parameters, seed):
    """End the process at one of two learning rates, as the kernel does where memory is short."""
    if parameters.learning_rate > 5e-3:
        os._exit(137)
    return averaging.measure(parameters, seed)


def toml(path: Path) -> Path:
    """Write the design as a file."""
    lines = [f'experiment = "{EXPERIMENT}"', "seeds = 2", "[fixed]"]
    lines += [f"{name} = {value}" for name, value in FIXED.items()]
    lines += ["[axes]", *(f"{name} = {values}" for name, values in AXES.items())]
    path.write_text("\n".join(lines) + "\n")
    return path


def start(design: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start `featavg sweep` in a process group of its own."""
    command = [
        sys.executable,
        "-m",
        "featavg",
        "sweep",
        str(design),
        "--out",
        str(out),
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, *options], start_new_session=True, **quiet)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in path.read_text().split()]
    except OSError:
        return []


def until_finished(design: Path, out: Path, rng: random.Random, *options: str) -> int:
    """Kill the sweep or one of its workers at random times until it ends; return the kills."""
    for attempt in range(_MOST_STARTS):
        process = start(design, out, *options)
        # later and later, so that it ends
        if _ends_within(process, rng.uniform(0.2, 2.0 + attempt)):
            return attempt
        workers = children(process.pid)
        if workers and rng.random() < 0.5:
            _kill(rng.choice(workers))
            if _ends_within(process, rng.uniform(0.5, 3.0 + attempt)):
                return attempt + 1
        _kill(process.pid)
        process.wait()
    raise AssertionError("the sweep did not end")


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

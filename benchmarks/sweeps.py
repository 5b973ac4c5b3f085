"""Throughput of sweeps: two cores against one, overhead, and against a loop of PyTorch runs.

Everything is a ratio within this run. The setting is the paper's (k=10, d=3072, n=1000, T=100) in
single precision, as PyTorch's default is;
learning rate and initial weights are varied, as in the phase diagrams, so that runs of one seed
share their data. A run trains the 2-class network and measures its averaging index and the exact
radius of a few fresh points; the loop of PyTorch only trains, which favours it.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
import torch

import featavg as fa
from descent import autograd
from featavg.experiments import EXPERIMENTS
from featavg.experiments.averaging import Parameters
from featavg.lab.sweeps import Design, sweep


def design(runs: int, points: int) -> Design:
    side = max(2, round(np.sqrt(runs)))
    axes = {
        "learning_rate": {"from": 1e-4, "to": 1e-2, "count": side, "scale": "log"},
        "weight_scale+bias_scale": {"from": 1e-6, "to": 1e-4, "count": side, "scale": "log"},
    }
    return Design.of(
        EXPERIMENTS["averaging"], axes=axes, fixed={"test_samples": points, "precision": "float32"}
    )


def timed(runs: int, workers: int, points: int) -> tuple[float, float, int]:
    """Return runs a second, the share of the workers' time that was no run, and the runs."""
    whole = design(runs, points)
    with tempfile.TemporaryDirectory() as folder:
        sweep(design(4, points), f"{folder}/warm", workers=workers)  # starts interpreters
        start = time.perf_counter()
        sweep(whole, f"{folder}/out", workers=workers, progress=True)
        seconds = time.perf_counter() - start
        import pyarrow.parquet as pq

        inside = sum(pq.read_table(f"{folder}/out/parts").column("seconds").to_pylist())
    return whole.size / seconds, 1 - inside / (seconds * workers), whole.size


def torch_loop(runs: int) -> float:
    """Return runs a second of full-batch gradient descent by autograd, one after the other."""
    torch.set_num_threads(1)
    parameters = Parameters()
    start = time.perf_counter()
    for run in range(runs):
        train, _ = parameters.draw(run, dtype="float32")
        rng = np.random.default_rng(run)
        net = fa.BinaryNet.init(train, width=5, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
        autograd(net, train, parameters.steps)
    return runs / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1600, help="runs with all workers")
    parser.add_argument("--sample", type=int, default=100, help="runs with one worker")
    parser.add_argument("--torch", type=int, default=10, help="runs of the PyTorch loop")
    parser.add_argument("--points", type=int, default=2, help="fresh points with exact radii")
    options = parser.parse_args()
    one, alone, _ = timed(options.sample, 1, options.points)
    two, overhead, runs = timed(options.runs, 2, options.points)
    loop = torch_loop(options.torch)
    print(f"one worker:   {one:.2f} runs a second, {alone:.1%} of its time no run")
    print(
        f"two workers:  {two:.2f} runs a second ({runs} runs), {overhead:.1%} of their time no run"
    )
    print(f"PyTorch loop: {loop:.2f} runs a second")
    print(f"two workers against one:    {two / one:.2f}")
    print(f"two workers against PyTorch: {two / loop:.1f}")


if __name__ == "__main__":
    main()

"""Time the gradient-descent engine against a PyTorch autograd loop, in one run.

The two do the same training at the paper's size and precision, and the weights they end with are
compared. What counts is the ratio: seconds depend on the machine.

    python benchmarks/descent.py [--steps 1000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch

import featavg as fa
from featavg.arrays import FloatArray

LEARNING_RATE = 1e-3


def engine(net: fa.BinaryNet, train: fa.Sample, steps: int) -> FloatArray:
    vars(train).pop("gram", None)  # the Gram matrix is part of the cost
    return fa.descend(net, train, learning_rate=LEARNING_RATE, steps=steps, record=2).net.weights


def autograd(net: fa.BinaryNet, train: fa.Sample, steps: int) -> FloatArray:
    x, y = torch.tensor(train.x), torch.tensor(train.y).to(torch.tensor(train.x).dtype)
    weights = torch.tensor(net.weights, requires_grad=True)
    biases = torch.tensor(net.biases, requires_grad=True)
    second_layer = torch.tensor(net.second_layer[0])
    optimizer = torch.optim.SGD([weights, biases], lr=LEARNING_RATE)
    for _ in range(steps):
        optimizer.zero_grad()
        score = torch.relu(x @ weights.T + biases) @ second_layer
        torch.nn.functional.softplus(-y * score).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    trained: FloatArray = weights.detach().numpy()
    return trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=3072)
    parser.add_argument("--width", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(
        f"n={options.points} d={options.dim} m={options.width} T={options.steps}, "
        f"median of {options.repeats}, {torch.get_num_threads()} threads"
    )
    for dtype in ("float32", "float64"):
        rng = np.random.default_rng(0)
        law = fa.MultiCluster(clusters=10, dim=options.dim)
        train = law.sample(options.points, rng=rng, dtype=dtype)
        net = fa.BinaryNet.init(
            train, width=options.width, weight_scale=1e-5, bias_scale=1e-5, rng=rng
        )
        times: dict[str, list[float]] = {"engine": [], "autograd": []}
        weights = {}
        for _ in range(options.repeats):  # taking turns, so that both see the same machine
            for name, work in (("engine", engine), ("autograd", autograd)):
                start = time.perf_counter()
                weights[name] = work(net, train, options.steps)
                times[name].append(time.perf_counter() - start)
        ours, theirs = (statistics.median(times[name]) for name in ("engine", "autograd"))
        difference = np.linalg.norm(weights["engine"] - weights["autograd"]) / np.linalg.norm(
            weights["autograd"]
        )
        print(
            f"{dtype}: engine {ours:.3f} s, autograd {theirs:.3f} s, ratio {theirs / ours:.1f}, "
            f"weights differ by {difference:.1e}"
        )


if __name__ == "__main__":
    main()

"""Time adversarial training: its seconds for each step over those of plain gradient descent.

The k-output network on coarse labels, in coordinates of the span. Plain gradient descent and each
number of PGD steps turn by turn, so that all see the same machine, and the best of several rounds.
The attack "exact" searches for the exact radius of every point in each step.

    python benchmarks/adversarial_training.py [--rounds 5] [--steps 100]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import featavg as fa

SIZES = ((6, 120), (10, 200), (16, 320))  # clusters and points, as in the experiment


def seconds_a_step(
    net: fa.MultiClassNet, train: fa.Sample, rule: fa.Rule | None, steps: int
) -> float:
    start = time.perf_counter()
    loss = fa.CoarseCrossEntropy()
    fa.descend(net, train, learning_rate=0.005, steps=steps, rule=rule, loss=loss, record=2)
    return (time.perf_counter() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description="Time adversarial training.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    radius = 0.6 * np.sqrt(3072 / 2)
    rules: dict[str, fa.Rule | None] = {"plain": None}
    rules |= {f"PGD {s}": fa.AdversarialTraining(radius, steps=s) for s in (1, 5, 10, 20)}
    exact = fa.AdversarialTraining(radius, attack="exact")
    print(
        "   k    n  plain, ms a step" + "".join(f"{name:>9}" for name in [*rules][1:]) + "    exact"
    )
    for k, points in SIZES:
        rng = np.random.default_rng(0)
        train = fa.MultiCluster(clusters=k, dim=3072).sample(points, rng=rng, coordinates="span")
        net = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng, readout="argmax")
        best = dict.fromkeys(rules, np.inf)
        for _ in range(options.rounds):
            for name, rule in rules.items():
                best[name] = min(best[name], seconds_a_step(net, train, rule, options.steps))
        ratios = [best[name] / best["plain"] for name in [*rules][1:]]
        slow = seconds_a_step(net, train, exact, 2) / best["plain"]
        told = "".join(f"{ratio:8.1f}×" for ratio in ratios)
        print(f"{k:4} {points:4} {1000 * best['plain']:17.2f} {told} {slow:7.0f}×")


if __name__ == "__main__":
    main()

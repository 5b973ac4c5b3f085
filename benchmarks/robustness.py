"""Time exact radii against what people use today, in one run.

That is Foolbox's L2 PGD with 40 steps at each of the paper's 30 radii, on the exported module in
single precision. Exact radii hold for every radius at once. What counts is the ratio.

    python benchmarks/robustness.py [--points 1000]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch

import featavg as fa

with warnings.catch_warnings():  # Foolbox imports from a namespace that SciPy is giving up
    warnings.simplefilter("ignore", DeprecationWarning)
    import foolbox

RADII = 2.0 * np.arange(30)


def trained(width: int, seed: int = 0) -> tuple[fa.Sample, fa.BinaryNet, np.random.Generator]:
    rng = np.random.default_rng(seed)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    net = fa.BinaryNet.init(train, width=width, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    run = fa.descend(net, train, learning_rate=1e-3, steps=100, record=2)
    return train, fa.BinaryNet(run.net.weights, run.net.biases), rng


def foolbox_curve(net: fa.BinaryNet, test: fa.Sample) -> np.ndarray:
    module = net.to_torch().float().eval()
    model = foolbox.PyTorchModel(module, bounds=(-1000, 1000), device="cpu")
    attack = foolbox.attacks.L2ProjectedGradientDescentAttack(
        rel_stepsize=2.5 / 40, steps=40, random_start=True
    )
    images = torch.tensor(test.x).float()
    labels = torch.tensor((test.y == 1).astype(np.int64))
    _, _, success = attack(model, images, labels, epsilons=list(RADII[1:]))
    return np.concatenate([[1.0], 1 - success.float().mean(dim=1).numpy()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=1000)
    options = parser.parse_args()

    train, net, rng = trained(width=5)
    test = train.fresh(options.points, rng=rng)
    start = time.perf_counter()
    exact = fa.robust_curve(net, test.x, test.y, radii=RADII, method="exact")
    ours = time.perf_counter() - start
    start = time.perf_counter()
    own_pgd = fa.robust_curve(net, test.x, test.y, radii=RADII, method="pgd", rng=rng)
    own_pgd_time = time.perf_counter() - start
    start = time.perf_counter()
    theirs = foolbox_curve(net, test)
    foolbox_time = time.perf_counter() - start
    print(f"n={options.points} d=3072 m=5, {len(RADII)} radii, {torch.get_num_threads()} threads")
    print(
        f"exact {ours:.2f} s, Foolbox's PGD {foolbox_time:.2f} s: {foolbox_time / ours:.1f} times"
    )
    print(f"our PGD {own_pgd_time:.2f} s: {foolbox_time / own_pgd_time:.1f} times")
    print(
        f"Foolbox's PGD overstates robust accuracy by up to {(theirs - exact.accuracy).max():.3f}"
    )
    print(f"our PGD by up to {(own_pgd.accuracy - exact.accuracy).max():.3f}")

    train, net, rng = trained(width=15)
    test = train.fresh(100, rng=rng)
    seconds = []
    for i in range(len(test)):
        start = time.perf_counter()
        fa.exact_radii(net, test.x[i : i + 1], test.y[i : i + 1], jobs=1)
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    fa.exact_radii(net, test.x, test.y, jobs=1)
    together = (time.perf_counter() - start) / len(test)
    print(
        f"m=15, one core: median {np.median(seconds):.3f} s for a point by itself, "
        f"largest {max(seconds):.3f} s; {together:.4f} s a point in a batch of {len(test)}"
    )


if __name__ == "__main__":
    main()

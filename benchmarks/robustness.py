"""Time exact radii against what people use today, in one run.

On the paper's network that is Foolbox's L2 PGD with 40 steps at each of the paper's 30 radii, on
the exported module in single precision; exact radii hold for every radius at once. On networks of
scikit-learn it is a mixed-integer program in SCIP, which is exact too, and Foolbox's DDN, which is
an attack. What counts is the ratio.

    python benchmarks/robustness.py [--points 1000] [--solver-seconds 60]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from torch import nn

import featavg as fa
from miqp import miqp_radius

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


def mlps() -> Iterator[tuple[str, fa.ShallowNet, np.ndarray]]:
    """Yield networks of scikit-learn, and points that they were not trained on."""
    X, y = load_digits(return_X_y=True)
    cancer, benign = load_breast_cancer(return_X_y=True)
    sets = {
        "digits, 2 classes": (X / 16, y >= 5),
        "digits, 10 classes": (X / 16, y),
        "breast cancer": (StandardScaler().fit_transform(cancer), benign),
    }
    for name, (points, labels) in sets.items():
        for hidden in (10, 30, 100):
            model = MLPClassifier(hidden, max_iter=400, random_state=0, early_stopping=True)
            model.fit(points[:400], labels[:400])
            first, second = model.coefs_
            net = fa.ShallowNet(first.T, model.intercepts_[0], second.T, model.intercepts_[1])
            yield f"{name}, {hidden} neurons", net, points[400:]


def ddn_norms(net: fa.ShallowNet, X: np.ndarray) -> np.ndarray:
    """Return the norms that Foolbox's DDN finds with its default number of steps."""
    hidden, output = nn.Linear(net.dim, len(net.weights)), nn.Linear(len(net.weights), 1)
    module = nn.Sequential(hidden, nn.ReLU(), output).double()
    for layer, weight, bias in (
        (module[0], net.weights, net.biases),
        (module[2], net.second_layer, net.output_biases),
    ):
        layer.weight.data, layer.bias.data = torch.tensor(weight), torch.tensor(bias)
    bounds = (float(X.min()) - 3, float(X.max()) + 3)  # its steps are in units of these
    model = foolbox.PyTorchModel(module.eval(), bounds=bounds, device="cpu")
    images, labels = torch.tensor(X), torch.tensor(net.winners(X))
    found, _, success = foolbox.attacks.DDNAttack()(model, images, labels, epsilons=None)
    distance = (found - images).norm(dim=1).numpy()
    return np.where(success.numpy(), distance, np.inf)


def compare_with_solvers(seconds: float, solved: int = 4, attacked: int = 20) -> None:
    """Print the time a point of exact radii, of a mixed-integer program and of DDN, on one core."""
    print("CPU seconds a point: ours, SCIP (of those it solves in time), Foolbox's DDN")
    for name, net, points in mlps():
        X = points[:attacked]
        start = time.process_time()
        radii = fa.exact_radii(net, X, jobs=1)
        ours = (time.process_time() - start) / len(X)
        start, unsolved = time.process_time(), 0
        for i in range(solved):
            own = net.labels == net.labels[net.winners(X[i : i + 1])[0]]
            reach = 1.2 * float(radii.upper[i])
            answer = miqp_radius(net, X[i], own, ~own, within=reach, seconds=seconds)
            unsolved += answer is None
            if answer is not None:
                np.testing.assert_allclose(answer, radii.upper[i], rtol=1e-6)
        scip = (time.process_time() - start) / solved
        start = time.process_time()
        gap = np.median(ddn_norms(net, X) / radii.upper) - 1
        ddn = (time.process_time() - start) / len(X)
        more = "more than " if unsolved else ""
        print(
            f"{name}: {ours:.4f}, {more}{scip:.2f} ({unsolved} of {solved} not solved), {ddn:.4f}; "
            f"{more}{scip / ours:.0f} times SCIP, {ddn / ours:.1f} times DDN, whose norms are "
            f"{gap:.1%} above (median)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--solver-seconds", type=float, default=60.0)
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
    with threadpool_limits(1):
        torch.set_num_threads(1)
        compare_with_solvers(options.solver_seconds)


if __name__ == "__main__":
    main()

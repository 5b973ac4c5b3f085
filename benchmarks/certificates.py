"""Attack the certificates of `RadiusClassifier`: no perturbation below a radius may turn a point.

    python benchmarks/certificates.py [--points 400] [--data digits-10 wine]

Five data sets, two of them with more than two classes. Every test point with a certified radius is
attacked by PGD inside the certified ball (random restarts), by PGD towards each opposing piece, and
by DDN of Foolbox, which looks for the smallest perturbation. Printed is the smallest perturbation
that turned a point, over its certified radius: a number below 1 would refute the certificate.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import featavg as fa
from estimator_data import load

with warnings.catch_warnings():  # imports from places that other libraries are giving up
    warnings.simplefilter("ignore")
    import foolbox

Array = np.ndarray[Any, Any]
RESTARTS, STEPS, TARGETED_STEPS, DDN_STEPS = 10, 40, 30, 200
INSIDE = 1 - 1e-6  # PGD looks this far into the certified ball


class Pieces(torch.nn.Module):
    """The values of all pieces, and of classes as the largest of theirs, in float64."""

    def __init__(self, net: fa.ShallowNet) -> None:
        super().__init__()
        arrays = (net.weights, net.biases, net.second_layer, net.output_biases)
        self.w, self.b, self.a, self.c = (torch.tensor(np.array(array)) for array in arrays)
        self.linear = torch.tensor(np.array(net.linear))
        self.sides = [
            torch.tensor(np.flatnonzero(net.labels == label)) for label in np.unique(net.labels)
        ]

    def pieces(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values of all pieces."""
        x = x.double()
        return torch.relu(x @ self.w.T + self.b) @ self.a.T + x @ self.linear.T + self.c

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values of all classes."""
        values = self.pieces(x)
        return torch.stack([values[:, side].amax(dim=1) for side in self.sides], dim=1)


def margins(values: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Return how far the own class is ahead of the next one."""
    own = values.gather(1, classes[:, None])[:, 0]
    return own - values.scatter(1, classes[:, None], -torch.inf).amax(dim=1)


def ahead_of(net: Pieces, classes: torch.Tensor, piece: int, x: torch.Tensor) -> torch.Tensor:
    """Return how far the own class is ahead of a piece."""
    return net(x).gather(1, classes[:, None])[:, 0] - net.pieces(x)[:, piece]


def pgd(
    x: torch.Tensor,
    radius: torch.Tensor,
    loss: Callable[[torch.Tensor], torch.Tensor],
    start: torch.Tensor,
    steps: int,
) -> torch.Tensor:
    """Return the points in the balls with the smallest loss that steepest descent ends with."""
    moved = start
    for step in range(steps):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(loss(x + moved).sum(), moved)
        length = slope.norm(dim=1, keepdim=True).clamp(min=1e-30)
        with torch.no_grad():
            moved = moved - 2.5 * (1 - step / steps) / 4 * radius[:, None] * slope / length
            size = moved.norm(dim=1).clamp(min=1e-30)
            moved = moved * torch.minimum(torch.ones_like(size), radius / size)[:, None]
    return x + moved.detach()


def smallest_turn(net: Pieces, x: Array, classes: Array, lower: Array) -> Array:
    """Return the norm of the smallest perturbation found for each point, over its radius."""
    points, labels = torch.tensor(x), torch.tensor(classes)
    radius = torch.tensor(lower) * INSIDE
    found = np.full(len(x), np.inf)

    def keep(moved: torch.Tensor) -> None:
        turned = (margins(net(moved), labels) < 0).numpy()
        norms = (moved - points).norm(dim=1).numpy() / lower
        found[turned] = np.minimum(found[turned], norms[turned])

    noise = torch.Generator().manual_seed(0)
    for _ in range(RESTARTS):
        start = torch.randn(points.shape, generator=noise, dtype=torch.float64)
        start *= (radius / start.norm(dim=1))[:, None]
        keep(pgd(points, radius, lambda at: margins(net(at), labels), start, STEPS))
    for piece in range(len(net.c)):
        ahead = partial(ahead_of, net, labels, piece)
        keep(pgd(points, radius, ahead, torch.zeros_like(points), TARGETED_STEPS))
    low, high = float(x.min() - 3 * np.ptp(x)), float(x.max() + 3 * np.ptp(x))
    model = foolbox.PyTorchModel(net.eval(), bounds=(low, high), device="cpu")
    attack = foolbox.attacks.DDNAttack(steps=DDN_STEPS, init_epsilon=float(np.median(lower)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keep(attack.run(model, points, labels))
    return found


def data_sets() -> dict[str, Callable[[], tuple[Array, Array, Array, Array]]]:
    """Return functions that give training points, test points and the classes of both."""

    def split(x: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        x, x_test, y, y_test = train_test_split(x, y, test_size=0.4, random_state=0, stratify=y)
        return x, x_test, y, y_test

    def benchmark(name: str) -> tuple[Array, Array, Array, Array]:
        found = load(name, 0)
        return found.x, found.x_test, found.y, found.y_test

    digits = load_digits(return_X_y=True)
    wine = load_wine(return_X_y=True)
    return {
        "digits-10": lambda: split(*digits),
        "digits-3": lambda: split(digits[0], digits[1] % 3),
        "wine": lambda: split(StandardScaler().fit_transform(wine[0]), wine[1]),
        "cifar-first5": lambda: benchmark("cifar-first5"),
        "fashion": lambda: benchmark("fashion"),
    }


def main() -> int:
    """Attack, print a line for each data set, and return 1 if a certificate is refuted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=400)
    parser.add_argument("--data", nargs="*", help=f"of {', '.join(data_sets())}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    refuted = False
    for name, draw in data_sets().items():
        if options.data and name not in options.data:
            continue
        x, x_test, y, y_test = draw()
        model = fa.RadiusClassifier(random_state=0).fit(x, y)
        lower = model.predict_radius(x_test, exact=False)
        some = np.flatnonzero(lower > 0)[: options.points]
        classes = np.searchsorted(model.classes_, model.predict(x_test[some]))
        found = smallest_turn(
            Pieces(model.to_shallow()), x_test[some].astype(np.float64), classes, lower[some]
        )
        refuted |= bool((found < 1).any())
        turned = np.isfinite(found)
        print(
            f"{name}, {len(some)} points, {len(model.classes_)} classes, accuracy "
            f"{model.score(x_test, y_test):.3f}, median radius {np.median(lower):.3g}: "
            f"{(found < 1).sum()} certificates beaten; smallest perturbation found over the "
            f"certified radius {found.min():.4f}, median {np.median(found[turned]):.4f}",
            flush=True,
        )
    return 1 if refuted else 0


if __name__ == "__main__":
    sys.exit(main())

"""The attacks of `benchmarks/attacks.py`, each with a few step sizes, the default first."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import eagerpy as ep
import numpy as np
import torch

import featavg as fa
from attack_zoo import Array, Case

os.environ.setdefault("TQDM_DISABLE", "1")  # ART shows bars of its own even if told not to
with warnings.catch_warnings():  # both import from places that other libraries are giving up
    warnings.simplefilter("ignore")
    import foolbox
    from art.attacks.evasion import (
        AutoProjectedGradientDescent,
        CarliniL2Method,
        DeepFool,
        ProjectedGradientDescent,
    )
    from art.estimators.classification import PyTorchClassifier

logging.getLogger("art").setLevel(logging.ERROR)

# The data are in [0, 1], and attacks may leave it by its whole width: no exact perturbation comes
# near, and `attacks.py` checks that.
BOUNDS = (-1.0, 2.0)
# A point that single precision has put just short of the boundary is pushed on by this much.
PUSHES = (1.0, 1 + 1e-5, 1 + 1e-4, 1 + 1e-3)
# Fixed-radius attacks: gaps between these are searched by halving their ratio so many times.
SMALLEST_GAP, LARGEST_GAP, HALVINGS = 1e-3, 1.0, 7
# The radius that ART's defaults are meant for; the ball that is attacked is scaled to it.
ART_RADIUS = 0.3

Setting = dict[str, Any]


@dataclass(frozen=True)
class Attack:
    """An attack: settings of its step size, and a function that returns norms for one of them.

    Attributes
    ----------
    name : str
        Its name, with the library.
    norms : callable
        Takes a case and keyword arguments, and returns the norm that was found for each point,
        infinity where none was; None if the attack cannot be used for this network.
    settings : tuple of dict
        Keyword arguments; the first are the library's defaults.
    quick : dict
        Keyword arguments that make a slow attack fast enough for a test.
    needs : str
        Why it may not be possible to use it.
    """

    name: str
    norms: Callable[..., Array | None]
    settings: tuple[Setting, ...]
    quick: Setting = field(default_factory=dict)
    needs: str = ""


class Logits(torch.nn.Module):
    """A network as a PyTorch module, with one output for each label, computed in float64.

    With `origin` and `scale` it takes z where the network takes origin + scale·z, row by row.
    """

    def __init__(
        self, net: fa.ShallowNet, origin: Array | None = None, scale: Array | None = None
    ) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(net.dim, len(net.weights), dtype=torch.float64)
        self.out = torch.nn.Linear(len(net.weights), len(net.labels), dtype=torch.float64)
        for layer, weights, biases in (
            (self.hidden, net.weights, net.biases),
            (self.out, net.second_layer, net.output_biases),
        ):
            layer.weight.data = torch.tensor(np.array(weights))
            layer.bias.data = torch.tensor(np.array(biases))
        self.sides = [
            torch.tensor(np.flatnonzero(net.labels == label)) for label in np.unique(net.labels)
        ]
        self.origin = None if origin is None else torch.tensor(origin)
        self.scale = None if scale is None else torch.tensor(scale)[:, None]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of the labels."""
        x = x.double()
        if self.origin is not None and self.scale is not None:
            x = self.origin + self.scale * x
        outputs = self.out(torch.relu(self.hidden(x)))
        if len(self.sides) == outputs.shape[1]:
            return outputs
        return torch.stack([outputs[:, side].amax(dim=1) for side in self.sides], dim=1)


class MendedFMN(foolbox.attacks.L2FMNAttack):
    """FMN with the projection it is meant to have: Foolbox 3.3.4 divides a norm by itself."""

    def project(self, x: Any, x0: Any, epsilon: Any) -> Any:
        """Return the points of the balls of radius `epsilon` that are nearest to x."""
        difference = x - x0
        norms = ep.norms.l2(difference.flatten(1), axis=-1)
        factor = ep.minimum(1, epsilon / ep.maximum(norms, 1e-12))
        return x0 + foolbox.devutils.atleast_kd(factor, x.ndim) * difference


def verified(case: Case, found: Array, rows: Array | None = None) -> Array:
    """Return the norms of perturbations that turn the decision in float64, else infinity."""
    rows = np.arange(len(case.points)) if rows is None else rows
    points, labels = case.points[rows], case.labels[rows]
    moved = np.nan_to_num(found.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0) - points
    norms = np.full(len(rows), np.inf)
    for push in reversed(PUSHES):
        turned = case.classes(points + push * moved) != labels
        norms[turned] = push * np.linalg.norm(moved[turned], axis=1)
    return norms


def foolbox_minimal(
    attack: Any, case: Case, *, starts: torch.Tensor | None = None, **setting: Any
) -> Array:
    """Run an attack of Foolbox that looks for the smallest perturbation."""
    options = {} if starts is None else {"starting_points": starts}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Numba has to compile
        found = attack(**setting).run(
            bounded(case), torch.tensor(case.points), torch.tensor(case.labels), **options
        )
    return verified(case, found.detach().numpy())


def bounded(case: Case) -> Any:
    return foolbox.PyTorchModel(Logits(case.net).eval(), bounds=BOUNDS, device="cpu")


def brendel_bethge(case: Case, *, start: str = "noise", **setting: Any) -> Array | None:
    """Run Brendel and Bethge's attack, from noise or the nearest training point of another label.

    Noise is the default. Where it is not adversarial, the training point takes its place: the
    attack would refuse the whole batch.
    """
    if find_spec("numba") is None:
        return None
    starts = torch.tensor(case.starts)
    if start == "noise":
        noise = foolbox.attacks.LinearSearchBlendedUniformNoiseAttack().run(
            bounded(case), torch.tensor(case.points), torch.tensor(case.labels)
        )
        turned = torch.tensor(case.classes(noise.numpy()) != case.labels)
        starts = torch.where(turned[:, None], noise, starts)
    return foolbox_minimal(foolbox.attacks.L2BrendelBethgeAttack, case, starts=starts, **setting)


def compile_brendel_bethge(case: Case) -> None:
    """Have Numba compile, so that it does not count as time of the attack."""
    brendel_bethge(case, steps=2)


def art_minimal(attack: Any, clip: bool, case: Case, **setting: Any) -> Array:
    """Run an attack of ART that looks for a small perturbation."""
    found = attack(
        classifier(Logits(case.net), case, BOUNDS if clip else None),
        batch_size=len(case.points),
        verbose=False,
        **setting,
    ).generate(case.points.astype(np.float32), case.labels)
    return verified(case, found)


def own(case: Case, **setting: Any) -> Array | None:
    """Run featavg's own attack, if the decision of the network is a binary one."""
    if case.own is None:
        return None
    found = fa.minimal_norm(case.own, case.points, 2 * case.labels - 1, **setting)
    return verified(case, case.points + found.perturbations)


def classifier(module: Logits, case: Case, clip: tuple[float, float] | None) -> Any:
    return PyTorchClassifier(
        module.eval(),
        loss=torch.nn.CrossEntropyLoss(),
        input_shape=(case.net.dim,),
        nb_classes=len(module.sides),
        clip_values=clip,
        device_type="cpu",
    )


FixedRadius = Callable[[Case, Array, Array], Array]


def bisected(attack: Callable[..., FixedRadius], case: Case, **setting: Any) -> Array:
    """Return the smallest norm at which a fixed-radius attack succeeds, by bisection over radii.

    Each point is attacked at multiples of its own exact radius, twice that at first. The gap is
    found to within 6 % of itself; below 0.1 % it is not searched any further.
    """
    run = attack(**setting)
    exact = case.radii.upper
    everything = np.arange(len(exact))
    norms = run(case, everything, (1 + LARGEST_GAP) * exact)
    low, high = np.full(len(exact), np.log(SMALLEST_GAP)), np.full(len(exact), np.log(LARGEST_GAP))
    for _ in range(HALVINGS):
        rows = np.flatnonzero(np.isfinite(norms))
        if not len(rows):
            break
        middle = (low[rows] + high[rows]) / 2
        found = run(case, rows, (1 + np.exp(middle)) * exact[rows])
        low[rows] = np.where(np.isinf(found), middle, low[rows])
        high[rows] = np.where(np.isinf(found), high[rows], middle)
        norms[rows] = np.minimum(norms[rows], found)
    return norms


def foolbox_pgd(**setting: Any) -> FixedRadius:
    """Return Foolbox's PGD as a function of a case, rows of it and their radii."""

    def run(case: Case, rows: Array, radii: Array) -> Array:
        module = Logits(case.net, case.points[rows], radii)
        model = foolbox.PyTorchModel(module.eval(), bounds=(-1e6, 1e6), device="cpu")
        attack = foolbox.attacks.L2ProjectedGradientDescentAttack(**setting)
        z = attack.run(
            model,
            torch.zeros(len(rows), case.net.dim, dtype=torch.float64),
            torch.tensor(case.labels[rows]),
            epsilon=1.0,
        )
        return verified(case, case.points[rows] + radii[:, None] * z.detach().numpy(), rows)

    return run


def art_fixed(attack: Any, restarts: int, **setting: Any) -> FixedRadius:
    """Return a fixed-radius attack of ART; restarts are for the points that are left over."""

    def run(case: Case, rows: Array, radii: Array) -> Array:
        norms = np.full(len(rows), np.inf)
        for _ in range(max(1, restarts)):
            left = np.flatnonzero(np.isinf(norms))
            if not len(left):
                break
            points, scale = case.points[rows[left]], radii[left] / ART_RADIUS
            z = attack(
                classifier(Logits(case.net, points, scale), case, None),
                norm=2,
                eps=ART_RADIUS,
                batch_size=len(left),
                verbose=False,
                **setting,
            ).generate(np.zeros(points.shape, dtype=np.float32), case.labels[rows[left]])
            norms[left] = verified(case, points + scale[:, None] * z, rows[left])
        return norms

    return run


def one_of(name: str, *values: Any) -> tuple[Setting, ...]:
    return tuple({name: value} for value in values)


_ART_APGD = partial(art_fixed, AutoProjectedGradientDescent, 5, nb_random_init=1)
ATTACKS = (
    Attack(
        "PGD (Foolbox)", partial(bisected, foolbox_pgd), one_of("rel_stepsize", 0.025, 0.1, 0.3)
    ),
    Attack(
        "PGD (ART)",
        partial(bisected, partial(art_fixed, ProjectedGradientDescent, 1)),
        one_of("eps_step", 0.1, 0.02),
    ),
    Attack("APGD (ART)", partial(bisected, _ART_APGD), one_of("eps_step", 0.1, 0.6)),
    Attack(
        "DeepFool (Foolbox)",
        partial(foolbox_minimal, foolbox.attacks.L2DeepFoolAttack),
        one_of("overshoot", 0.02, 0.001, 0.1),
    ),
    Attack(
        "DeepFool (ART)",
        partial(art_minimal, DeepFool, False),
        one_of("epsilon", 1e-6, 1e-3, 0.02),
    ),
    Attack(
        "C&W (Foolbox)",
        partial(foolbox_minimal, foolbox.attacks.L2CarliniWagnerAttack),
        one_of("stepsize", 0.01, 0.001),
        quick={"steps": 100},
    ),
    Attack(
        "C&W (ART)",
        partial(art_minimal, CarliniL2Method, True),
        # its search for the constant ends too early where logits are small
        ({"initial_const": 0.01}, {"learning_rate": 0.1}, {"initial_const": 1.0}),
    ),
    Attack(
        "DDN (Foolbox)",
        partial(foolbox_minimal, foolbox.attacks.DDNAttack),
        one_of("init_epsilon", 1.0, 0.1, 10.0),
    ),
    Attack(
        "FMN (Foolbox)",
        partial(foolbox_minimal, foolbox.attacks.L2FMNAttack),
        one_of("max_stepsize", 1.0, 0.1, 10.0),
    ),
    Attack(
        "FMN, mended",
        partial(foolbox_minimal, MendedFMN),
        one_of("max_stepsize", 1.0, 0.1, 10.0),
    ),
    Attack(
        "BB (Foolbox)",
        brendel_bethge,
        ({"lr": 1e-3}, {"lr": 1e-3, "start": "nearest"}, {"lr": 1e-4, "start": "nearest"}),
        quick={"steps": 10},
        needs="skipped: needs numba, which 'pip install numba' provides",
    ),
    Attack(
        "featavg.minimal_norm", own, ({},), needs="not for decisions between more than two labels"
    ),
)
# It takes up to 90,000 steps: it gets fewer points, and another step size only where the median gap
# of the default one is above this.
SLOW, GOOD_ENOUGH = ("C&W (Foolbox)",), 0.01

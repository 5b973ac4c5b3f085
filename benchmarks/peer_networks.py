"""Networks with certified radii: 1-Lipschitz, randomly smoothed, and adversarially trained.

All take points that are centred and divided by the root mean square of their coordinates; knobs are
in units of s, the root mean squared distance of the training points from their mean; radii are in
the units of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from scipy.stats import beta, norm
from torch import Tensor, nn
from torch.nn.functional import softplus

import featavg as fa
from peer_prototypes import Array, Certificates

BATCH = 256
SMOOTHED_HIDDEN, ADVERSARIAL_HIDDEN = 64, 32
VOTES, SAMPLES, ALPHA = 100, 1000, 0.001  # Cohen et al. 2019: n0, n and α
SECONDS_A_POINT = 2.0
_PGD_STEPS = 5


class Network:
    """A scalar score of standardised points whose sign decides."""

    steps, rate = 1000, 2e-3
    module: nn.Module

    def __init__(self, knob: float, seed: int) -> None:
        self.knob, self.seed = knob, seed

    def fit(self, x: Array, y: Array) -> Any:
        self.mean = x.mean(axis=0)
        self.unit = float(np.sqrt(np.square(x - self.mean).mean()))
        self.length = float(np.sqrt(x.shape[1]))  # s, in standardised units
        points = torch.tensor(self.standardised(x), dtype=torch.float32)
        signs = torch.tensor(2 * y - 1, dtype=torch.float32)
        torch.manual_seed(self.seed)
        self.module = self.build(x.shape[1])
        optimizer = torch.optim.Adam(self.module.parameters(), lr=self.rate)
        plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.rate, total_steps=self.steps)
        for step in range(self.steps):
            some = torch.randint(len(points), (BATCH,))
            loss = self.loss(points[some], signs[some], step / self.steps)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            plan.step()
        self.module = self.finished(self.module).double().requires_grad_(False)
        return self

    def standardised(self, x: Array) -> Array:
        return (x - self.mean) / self.unit

    def scores(self, x: Array) -> Array:
        return self.module(torch.tensor(self.standardised(x)))[:, 0].numpy()

    def predict(self, x: Array) -> Array:
        return (self.scores(x) > 0).astype(np.int64)

    def build(self, dim: int) -> nn.Module:
        raise NotImplementedError

    def loss(self, points: Tensor, signs: Tensor, time: float) -> Tensor:
        raise NotImplementedError

    def finished(self, module: nn.Module) -> nn.Module:
        """Return the network as it is used after training."""
        return module


class LipschitzNetwork(Network):
    """GroupSort layers of deel-torchlip with the cross-entropy of scores over a temperature.

    The knob is the temperature (Béthune et al. 2022). The radius is the score over the product of
    the layers' spectral norms, which are computed after training and not taken to be 1.
    """

    rate = 5e-3

    def __init__(self, knob: float, seed: int, hidden: tuple[int, ...] = (64,)) -> None:
        super().__init__(knob, seed)
        self.hidden = hidden

    def build(self, dim: int) -> nn.Module:
        from deel import torchlip

        layers: list[nn.Module] = []
        for wide, narrow in pairwise((dim, *self.hidden)):
            layers += [torchlip.SpectralLinear(wide, narrow), torchlip.GroupSort2()]
        return torchlip.Sequential(*layers, torchlip.FrobeniusLinear(self.hidden[-1], 1))

    def loss(self, points: Tensor, signs: Tensor, time: float) -> Tensor:  # noqa: ARG002
        return softplus(-signs * self.module(points)[:, 0] / (self.knob * self.length)).mean()

    def finished(self, module: Any) -> nn.Module:
        module.eval()
        plain: nn.Module = module.vanilla_export()
        layers = [layer for layer in plain.modules() if isinstance(layer, nn.Linear)]
        norms = [torch.linalg.matrix_norm(layer.weight.detach().double(), 2) for layer in layers]
        self.lipschitz = float(np.prod(norms))
        return plain

    def radii(self, x: Array) -> Certificates:
        radii = np.abs(self.scores(x)) * self.unit / self.lipschitz
        return radii, np.zeros(len(x), dtype=bool)


def relu_network(dim: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, 1))


class SmoothedNetwork(Network):
    """Randomised smoothing of a network that is trained with the same Gaussian noise.

    The knob is σ in units of s. Where the certificate abstains the radius is 0, but the vote of
    `VOTES` samples still counts as the prediction, in its favour. The first layer maps noise to a
    Gaussian of 64 coordinates, which is drawn directly: the same law, at a fraction of the cost.
    """

    def build(self, dim: int) -> nn.Module:
        return relu_network(dim, SMOOTHED_HIDDEN)

    def loss(self, points: Tensor, signs: Tensor, time: float) -> Tensor:  # noqa: ARG002
        noise = self.knob * self.length * torch.randn_like(points)
        return softplus(-signs * self.module(points + noise)[:, 0]).mean()

    def predict(self, x: Array) -> Array:
        return (2 * self._positive_votes(x, VOTES, 0) > VOTES).astype(np.int64)

    def radii(self, x: Array) -> Certificates:
        positive = self._positive_votes(x, SAMPLES, 1)
        votes = np.where(self.predict(x) == 1, positive, SAMPLES - positive)
        # Clopper and Pearson's lower bound of the share of votes; it is 0 without votes
        share = beta.ppf(ALPHA, np.maximum(votes, 1), SAMPLES - votes + 1)
        share = np.where(votes > 0, share, 0)
        radii = self.knob * self.length * self.unit * norm.ppf(np.maximum(share, 0.5))
        return radii, np.zeros(len(x), dtype=bool)

    def _positive_votes(self, x: Array, samples: int, stream: int) -> Array:
        first, _, last = cast("Any", self.module)
        sigma = self.knob * self.length
        root = sigma * torch.linalg.qr(first.weight.T).R.float()  # root.T @ root is σ² W W.T
        hidden = first(torch.tensor(self.standardised(x))).float()
        outer, offset = last.weight[0].float(), float(last.bias)
        draw = torch.Generator().manual_seed(2 * self.seed + stream)
        votes = np.empty(len(x), dtype=np.int64)
        for i, at in enumerate(hidden):
            noise = torch.randn(samples, len(root), generator=draw) @ root
            votes[i] = int((torch.relu(at + noise) @ outer + offset > 0).sum())
        return votes


class AdversarialNetwork(Network):
    """A ReLU network trained on the L2 PGD attacks of its training points, with exact radii.

    The knob is ε in units of s. It grows from 0 in the first half of the training; otherwise the
    network becomes constant where it is large.
    """

    def build(self, dim: int) -> nn.Module:
        return relu_network(dim, ADVERSARIAL_HIDDEN)

    def loss(self, points: Tensor, signs: Tensor, time: float) -> Tensor:
        radius = self.knob * self.length * min(1.0, 2 * time)
        if radius > 0:
            points = attacked(self.module, points, signs, radius)
        return softplus(-signs * self.module(points)[:, 0]).mean()

    def radii(self, x: Array) -> Certificates:
        found = fa.exact_radii(
            self.module,
            self.standardised(x),
            time_limit=SECONDS_A_POINT,
            jobs=1,
            certificates=False,
        )
        return found.lower * self.unit, found.exact


def attacked(
    score: Callable[[Tensor], Tensor], points: Tensor, signs: Tensor, radius: float
) -> Tensor:
    """Return points that PGD moved by at most the radius."""
    moved = torch.zeros_like(points)
    for _ in range(_PGD_STEPS):
        moved.requires_grad_(True)
        loss = softplus(-signs * score(points + moved)[:, 0]).sum()
        (slope,) = torch.autograd.grad(loss, moved)
        with torch.no_grad():
            moved = moved + 2.5 * radius / _PGD_STEPS * nn.functional.normalize(slope)
            moved = moved * (radius / moved.norm(dim=1, keepdim=True).clamp_min(1e-12)).clamp_max(1)
    return points + moved.detach()

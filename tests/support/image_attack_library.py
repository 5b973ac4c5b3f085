"""Attacks of Foolbox and ART on the binary decision of an image classifier, in [0, 1]."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import nn

from featavg.vision.objectives import readout

with warnings.catch_warnings():  # they import what others are giving up
    warnings.simplefilter("ignore")
    import foolbox
    from art.attacks.evasion import AutoProjectedGradientDescent
    from art.estimators.classification import PyTorchClassifier


class TwoLogits(nn.Module):
    """The decision of a network as two logits: class 1 is the positive side."""

    def __init__(self, model: nn.Module, positive: torch.Tensor) -> None:
        super().__init__()
        self.model, self.positive = model, positive

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        decision = readout(self.model(x), self.positive)
        return torch.stack([torch.zeros_like(decision), decision], 1)


def ddn_norms(two: TwoLogits, x: torch.Tensor, sides: torch.Tensor, steps: int) -> np.ndarray:
    """Return the norm that Foolbox's DDN finds for each image; infinity where it fails."""
    model = foolbox.PyTorchModel(two.eval(), bounds=(0, 1), device="cpu")
    attack = foolbox.attacks.DDNAttack(steps=steps)
    found, _, success = attack(model, x, sides, epsilons=None)
    norms = (found - x).flatten(1).double().norm(dim=1).numpy()
    return np.where(success.numpy(), norms, np.inf)


def apgd_robust(
    two: TwoLogits, x: torch.Tensor, sides: torch.Tensor, radius: float, steps: int
) -> np.ndarray:
    """Return which images ART's APGD does not break at a radius."""
    classifier = PyTorchClassifier(
        two.eval(),
        loss=nn.CrossEntropyLoss(),
        input_shape=tuple(x.shape[1:]),
        nb_classes=2,
        clip_values=(0.0, 1.0),
        device_type="cpu",
    )
    attack = AutoProjectedGradientDescent(
        classifier,
        norm=2,
        eps=radius,
        eps_step=radius / 4,
        max_iter=steps,
        nb_random_init=2,
        batch_size=len(x),
        loss_type="cross_entropy",
        verbose=False,
    )
    np.random.seed(0)  # noqa: NPY002 - ART draws from the global state
    found = torch.from_numpy(attack.generate(x.numpy(), sides.numpy()))
    assert (found - x).flatten(1).norm(dim=1).max() <= radius * (1 + 1e-5)
    assert found.min() >= 0
    assert found.max() <= 1
    with torch.no_grad():
        return (two(found).argmax(1) == sides).numpy()

"""The warning where attacks have no gradient to follow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from featavg import GradientMaskingWarning
from featavg.vision.attacks import pgd_l2
from featavg.vision.curves import robust_curves
from featavg.vision.worst import worst_norms
from support.blob_images import linear

RADII = [0.2, 0.4]

pytestmark = pytest.mark.usefixtures("one_thread")


class _Rounding(nn.Module):
    """A network behind pixels that are rounded to a few levels where a mask says so."""

    def __init__(self, net: nn.Module, masked: torch.Tensor) -> None:
        super().__init__()
        self.net, self.masked = net, masked

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        # an image that is marked by its first pixel keeps its gradient
        kept = images[:, :1, :1, :1] < 0.5
        rounded = (images * 8).round() / 8
        return self.net(torch.where(kept, images, rounded) if self.masked else rounded)


@pytest.fixture
def net(rng):
    return linear(torch.from_numpy(rng.standard_normal((2, 48))).float(), torch.zeros(2))


@pytest.fixture
def images(rng):
    return torch.from_numpy(rng.uniform(0.3, 0.7, (20, 3, 4, 4))).float()


ATTACKS = {
    "pgd": lambda net, x, y: pgd_l2(net, x, y, radii=[1e-3], steps=3).norms,
    "worst": lambda net, x, y: worst_norms(net, x, y, radii=[1e-3], steps=3, pgd_steps=3),
    "curves": lambda net, x, y: robust_curves(net, x, y, radii=[1e-3], steps=3, pgd_steps=3).norms[
        "worst"
    ],
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("some", [False, True])
def test_images_without_a_gradient_are_counted(net, images, attack, some):
    masking = _Rounding(net, torch.tensor(some))
    labels = masking(images).argmax(1)
    flat = int((images[:, 0, 0, 0] >= 0.5).sum()) if some else len(images)
    with pytest.warns(GradientMaskingWarning, match=f"0 at {flat} of 20 images") as caught:
        norms = attack(masking, images, labels)
    assert np.isinf(norms).sum() >= flat
    assert caught[0].filename == __file__  # the line that called the attack


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_warning_for_images_that_are_merely_robust_or_wrong(net, images, attack):
    labels = net(images).argmax(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attack(net, images, labels)
        assert (attack(_Rounding(net, torch.tensor(False)), images, 1 - labels) == 0).any()


def test_saved_results_are_warned_of_again(net, images, tmp_path):
    masking = _Rounding(net, torch.tensor(False))
    labels = masking(images).argmax(1)
    for _ in range(2):
        with pytest.warns(GradientMaskingWarning):
            worst_norms(masking, images, labels, radii=RADII, steps=3, folder=tmp_path)

from __future__ import annotations

import math

import torch
from torch import nn

from featavg.vision.objectives import scaled_losses


def test_loss_is_the_cross_entropy_and_exact_where_it_is_tiny(rng):
    logits = torch.tensor(rng.normal(size=(50, 4)) * 5)
    labels = torch.tensor(rng.integers(4, size=50))
    expected = nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(scaled_losses(logits, labels, 0.0), expected)
    torch.testing.assert_close(scaled_losses(logits, labels, -3.0), expected * math.exp(3))
    # the loss of a margin of 2000 is exp(-2000), 10^-869, and relative to itself it is 1
    tiny = torch.tensor([[2000.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss = scaled_losses(tiny, torch.tensor([0]), -2000.0)
    loss.sum().backward()
    assert loss.item() == 1
    assert tiny.grad.tolist() == [[-1.0, 1.0]]

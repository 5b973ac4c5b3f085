from __future__ import annotations

import pytest
import torch
from torch import nn

from featavg.vision.objectives import OBJECTIVES, aimed, objective, readout, wrong

pytestmark = pytest.mark.usefixtures("one_thread")
FIRST_HALF = torch.arange(10) < 5


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_of_objectives_by_finite_differences(name, rng):
    logits = torch.from_numpy(3 * rng.standard_normal((6, 10))).requires_grad_()
    labels = torch.from_numpy(rng.integers(10, size=6))
    positive = torch.tensor([True, False] * 5)
    assert torch.autograd.gradcheck(lambda z: objective(name, z, labels, positive), logits)


def test_objectives_are_what_they_are_called(rng):
    logits = torch.from_numpy(3 * rng.standard_normal((50, 10)))
    labels = torch.from_numpy(rng.integers(10, size=50))
    y = torch.where(labels < 5, 1.0, -1.0).double()
    own = objective("cross-entropy", logits, labels, FIRST_HALF)
    expected = nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(nn.functional.softplus(-own), expected)
    p = logits.softmax(1)
    difference = p[:, :5].sum(1) - p[:, 5:].sum(1)
    torch.testing.assert_close(objective("probability", logits, labels, FIRST_HALF), y * difference)
    torch.testing.assert_close(torch.tanh(readout(logits, FIRST_HALF) / 2), difference)
    assert torch.equal(wrong(logits, labels, FIRST_HALF), y * difference < 0)


def test_where_a_network_is_sure_only_the_probability_has_no_gradient():
    logits = torch.zeros(1, 10)
    logits[0, 0] = 200
    lengths = {}
    for name in OBJECTIVES:
        z = logits.clone().requires_grad_()
        objective(name, z, torch.tensor([0]), FIRST_HALF).sum().backward()
        lengths[name] = float(z.grad.norm())
    assert lengths["probability"] == 0
    assert min(lengths["cross-entropy"], lengths["readout"]) > 0.5


def test_at_a_readout_of_zero_the_decision_is_negative():
    logits, positive = torch.zeros(2, 2), torch.tensor([True, False])
    assert wrong(logits, torch.tensor([0, 1]), positive).tolist() == [True, False]


def test_the_objective_with_a_target_decides_as_the_nearest_class_of_the_other_side(rng):
    logits = torch.from_numpy(3 * rng.standard_normal((50, 10)))
    labels = torch.from_numpy(rng.integers(10, size=50))
    other = [range(5, 10) if label < 5 else range(5) for label in labels.tolist()]
    by_class = []
    for rank in range(5):
        aims = torch.tensor([classes[rank] for classes in other])
        by_class.append(aimed(logits, labels, FIRST_HALF, aims))
    margins = torch.stack(by_class, 1)
    # -log sum_t exp(-margin_t) is the signed readout, whatever the side
    y = torch.where(labels < 5, 1.0, -1.0)
    torch.testing.assert_close(-(-margins).logsumexp(1), y * readout(logits, FIRST_HALF))
    assert bool(wrong(logits, labels, FIRST_HALF)[(margins < 0).any(1)].all())

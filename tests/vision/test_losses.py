from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import featavg as fa
from featavg import InputError
from featavg.vision.objectives import hits, log_losses, scaled_losses
from featavg.vision.supplied_labels import SuppliedLabels


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


def test_partly_labelled_loss_by_probabilities(rng):
    """Cross-entropy where the class is known, else minus the log of the side's summed p."""
    logits = torch.tensor(3 * rng.normal(size=(40, 10)))
    labels, known = rng.integers(10, size=40), rng.random(40) < 0.4
    positive = [0, 3, 4, 8]
    weights = rng.uniform(0.5, 2, size=40)
    supplied = SuppliedLabels(labels, known, classes=10, positive=positive, weights=weights)
    p = logits.softmax(1).numpy()
    own_side = np.isin(np.arange(10), positive) == np.isin(labels, positive)[:, None]
    side = (p * own_side).sum(1)
    expected = -weights.astype(np.float32) * np.log(np.where(known, p[np.arange(40), labels], side))
    losses = scaled_losses(logits, supplied.targets, 0.0)
    np.testing.assert_allclose(losses.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(log_losses(logits, supplied.targets).exp().numpy(), expected, 1e-6)
    largest = p.argmax(1)
    right = np.where(known, largest == labels, own_side[np.arange(40), largest])
    np.testing.assert_array_equal(hits(logits, supplied.targets).numpy(), right)


def test_it_is_the_loss_of_the_laboratory(rng):
    """`featavg.networks` has the same loss for two-layer networks, in NumPy."""
    train = fa.MultiCluster(clusters=6, dim=50).sample(30, rng=rng)
    known = rng.random(30) < 0.5
    theirs = fa.SuppliedLabels(np.where(known, train.cluster, -1))
    outputs = 4 * rng.standard_normal((6, 30))
    ours = SuppliedLabels(train.cluster, known, classes=6)
    np.testing.assert_array_equal(ours.right.numpy().T, theirs.targets(6, train))
    expected = theirs.losses(outputs, theirs.targets(6, train))
    losses = scaled_losses(torch.from_numpy(outputs.T.copy()), ours.targets, 0.0)
    np.testing.assert_allclose(losses.numpy(), expected, rtol=1e-9)


def test_a_hidden_class_leaves_no_trace():
    one = SuppliedLabels([0, 1, 2], [True, False, False], classes=4)
    other = SuppliedLabels([0, 0, 3], [True, False, False], classes=4)
    assert torch.equal(one.targets, other.targets)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 4],), {}, "labels must be from 0 to 3; got 4"),
        (([0, 1], [1, 0]), {}, "known must be True or False for each of the 2 images; got int64"),
        (([0, 1], [True]), {}, r"known must be .*; got bool of shape \(1,\)"),
        (([0, 1],), {"weights": [1, 0]}, "weights must be above 0; got 0."),
        (([0, 1],), {"weights": [1]}, "weights must be a vector of length 2"),
        (([0, 1],), {"positive": 4}, "positive must leave at least one"),
    ],
)
def test_bad_supplies(arguments, options, message):
    with pytest.raises(InputError, match=message):
        SuppliedLabels(*arguments, classes=4, **options)

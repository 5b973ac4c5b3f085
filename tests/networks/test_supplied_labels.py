"""Labels that are handed in: against the losses they contain, and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa


def problem(rng, outputs=4):
    law = fa.MultiCluster(clusters=4, dim=30, signal=0.2, noise=0.1)
    train = law.sample(24, rng=rng)
    weights = 0.3 * rng.standard_normal((2 * outputs, 30))
    return fa.MultiClassNet(weights, outputs), train


def same_training(net, train, ours, theirs, method="dual"):
    runs = [
        fa.descend(net, train, learning_rate=0.3, steps=30, loss=loss, method=method)
        for loss in (ours, theirs)
    ]
    np.testing.assert_allclose(runs[0].net.weights, runs[1].net.weights, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(runs[0].log_loss, runs[1].log_loss, rtol=1e-9)
    np.testing.assert_allclose(runs[0].margins, runs[1].margins, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("method", ["dual", "primal"])
def test_all_right_labels_are_the_cross_entropy(method, rng):
    net, train = problem(rng)
    ours, theirs = fa.SuppliedLabels(train.cluster), fa.CrossEntropy()
    same_training(net, train, ours, theirs, method)


def test_no_labels_are_the_coarse_loss(rng):
    net, train = problem(rng)
    same_training(net, train, fa.SuppliedLabels(np.full(24, -1)), fa.CoarseCrossEntropy())


def test_some_labels_are_the_coarse_loss_with_fine_points(rng):
    net, train = problem(rng)
    known = rng.random(24) < 0.4
    labels = np.where(known, train.cluster, -1)
    same_training(net, train, fa.SuppliedLabels(labels), fa.CoarseCrossEntropy(fine=known))


def test_fast_forward_follows_many_small_steps(rng):
    net, train = problem(rng, outputs=6)
    labels = rng.integers(-1, 6, size=24)
    loss = fa.SuppliedLabels(labels, positive=2)
    net = net.with_positive(2)
    slow = fa.descend(net, train, learning_rate=1e-3, steps=3000, loss=loss, record=2)
    fast = fa.fast_forward(
        net, train, learning_rate=1e-3, steps=3000, loss=loss, tolerance=2e-3, record=2
    )
    assert fast.loss[-1] == pytest.approx(slow.loss[-1], rel=5e-3)


def test_residuals_are_minus_the_derivative_of_what_the_docstring_says(rng):
    _, train = problem(rng)
    labels = rng.integers(-1, 7, size=24)
    loss = fa.SuppliedLabels(labels, positive=(0, 3, 4))
    targets = loss.targets(7, train)
    f = rng.standard_normal((7, 24))

    def written_out(f):
        p = np.exp(f) / np.exp(f).sum(axis=0)
        own = [[0, 3, 4] if y == 1 else [1, 2, 5, 6] for y in train.y]
        right = [own[i] if c < 0 else [c] for i, c in enumerate(labels)]
        return np.array([-np.log(p[j, i].sum()) for i, j in enumerate(right)])

    np.testing.assert_allclose(loss.losses(f, targets), written_out(f), rtol=1e-12)
    for j in range(7):
        step = np.zeros_like(f)
        step[j] = 1e-6
        slope = (written_out(f + step) - written_out(f - step)) / 2e-6
        np.testing.assert_allclose(loss.residuals(f, targets)[j], -slope, atol=1e-8)


@pytest.mark.parametrize(
    ("labels", "outputs", "sentence"),
    [
        ([0.5] * 24, 4, "whole number for each training point"),
        ([[0] * 24], 4, "whole number for each training point"),
        ([], 4, "whole number for each training point"),
        ([0] * 23, 4, "each of the 24 points"),
        ([4] * 24, 4, "from 0 to 3"),
        ([-2] * 24, 4, "from 0 to 3"),
        ([0] * 24, 1, "many outputs"),
    ],
)
def test_refusals(labels, outputs, sentence, rng):
    _, train = problem(rng)
    with pytest.raises(fa.InputError, match=sentence):
        fa.SuppliedLabels(labels).targets(outputs, train)

"""Affine pieces: radii against hand-worked cases, brute force, attacks and autograd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import featavg as fa
from featavg.estimators.piece_start import Groups, Shape, start_head
from featavg.estimators.piece_training import Examples, radius_gradients, train, uniform_noise
from featavg.estimators.pieces import (
    PieceHead,
    SortedPairs,
    nearest_pairs,
    piece_distances,
    prototype_biases,
    quick_piece_distances,
)
from featavg.estimators.scaling import Scaling
from support.shallow_oracles import brute_force


def random_head(rng, *, features=0, classes=2, dim=3, pieces=3):
    rotation = None
    if features:
        tall = np.linalg.qr(rng.standard_normal((max(dim, features), min(dim, features))))[0]
        rotation = SortedPairs(
            tall if features > dim else tall.T, 0.3 * rng.standard_normal(features)
        )
    size = features or dim
    count = classes * pieces
    return PieceHead(
        rng.standard_normal((count, size)),
        0.5 * rng.standard_normal(count),
        np.repeat(np.arange(classes), pieces),
        rotation,
    )


def test_a_corner_is_further_than_each_of_its_sides():
    """Class 0 has the pieces x1 and x2, class 1 has 0: it is left where both are below 0."""
    head = PieceHead(np.array([[1.0, 0], [0, 1], [0, 0]]), np.zeros(3), np.array([0, 0, 1]))
    x = np.array([[3.0, 1.0], [3.0, -1.0], [3.0, 3.0], [-1.0, -2.0]])
    assert head.predict(x).tolist() == [0, 0, 0, 1]
    # the closed form is the larger of both distances, the exact radius the distance of a quadrant
    assert head.lower_radii(x, np.array([0, 0, 0, 1])) == pytest.approx([3, 3, 3, 1])
    exact = head.radii(x, np.array([0, 0, 0, 1]))
    assert exact.exact.all()
    assert exact.lower == pytest.approx([np.sqrt(10), 3, np.sqrt(18), 1])
    assert head.lower_radii(x, np.array([1, 1, 1, 0])).tolist() == [0, 0, 0, 0]
    assert head.signed_radii(x, np.array([1, 1, 1, 0]))[:2] == pytest.approx([-3, -3])


@pytest.mark.parametrize("features", [0, 2, 4])
@pytest.mark.parametrize("classes", [2, 3])
def test_radii_are_those_of_brute_force(rng, features, classes):
    for _ in range(4):
        head = random_head(rng, features=features, classes=classes)
        x = 2 * rng.standard_normal((8, 3))
        predicted = head.predict(x)
        net = head.to_shallow()
        assert (net.predict(x) == predicted).all()
        truth = [
            brute_force(net, point, net.labels == c, net.labels != c)
            for point, c in zip(x, predicted, strict=True)
        ]
        found = head.radii(x, predicted)
        assert found.exact.all()
        assert found.lower == pytest.approx(truth, rel=1e-5)
        assert (head.lower_radii(x, predicted) <= np.array(truth) * (1 + 1e-9)).all()
        assert (head.predict(x + found.perturbations) != predicted).all()


def test_another_norm_is_searched_and_not_answered_by_the_closed_form(rng):
    head = random_head(rng)
    x = rng.standard_normal((5, 3))
    predicted = head.predict(x)
    found = head.radii(x, predicted, norm="linf")
    expected = fa.exact_radii(head.to_shallow(), x, predicted, norm="linf")
    assert found.norm == expected.norm
    assert found.lower == pytest.approx(expected.lower)
    assert (found.lower < head.lower_radii(x, predicted)).all()


@pytest.mark.parametrize("features", [0, 4])
def test_proofs_of_radii_can_be_checked(rng, features):
    head = random_head(rng, features=features)
    x = rng.standard_normal((5, 3))
    radii = head.radii(x, head.predict(x), certificates=True)
    assert radii.verify(head.to_shallow(), x).proved.all()


def test_sorting_pairs_does_not_increase_distances(rng):
    features = random_head(rng, features=6, dim=10).features
    x, other = rng.standard_normal((2, 50, 10))
    before = np.linalg.norm(x - other, axis=1)
    after = np.linalg.norm(features.apply(x) - features.apply(other), axis=1)
    assert (after <= before * (1 + 1e-12)).all()
    assert features.lipschitz() == pytest.approx(1)


@pytest.mark.parametrize("features", [0, 4])
@pytest.mark.parametrize("factor", [3.0, np.array([1.0, 5.0, 0.1])])
def test_a_scaling_can_be_folded_in(rng, features, factor):
    head, scaling = random_head(rng, features=features), Scaling(rng.standard_normal(3), factor)
    x = rng.standard_normal((20, 3))
    folded = head.after(scaling)
    assert folded.decision(x) == pytest.approx(head.decision(scaling.apply(x)))
    radii = folded.lower_radii(x, folded.predict(x))
    for _ in range(200):
        step = rng.standard_normal(x.shape)
        step *= (0.9999 * radii / np.linalg.norm(step, axis=1))[:, None]
        assert (folded.predict(x + step) == folded.predict(x)).all()


@pytest.mark.vision
@pytest.mark.parametrize("is_moved", [False, True])
@pytest.mark.parametrize("prototypes", [False, True])
@pytest.mark.parametrize("features", [0, 4, 2])
def test_gradients_are_those_of_autograd(rng, features, prototypes, is_moved):
    """Points are moved in their three coordinates, or in two after the rotation."""
    import torch

    head = random_head(rng, features=features, classes=3)
    if prototypes:
        head = replace(head, biases=prototype_biases(head.weights))
    x, classes = rng.standard_normal((40, 3)), rng.integers(3, size=40)
    weights, margin = rng.uniform(0.5, 2, 40), 0.7
    within = features == 2
    noise = 0.3 * rng.standard_normal((40, 2 if within else 3)) * is_moved
    names = [head.weights, head.biases]
    if head.features is not None:
        names += [head.features.weights, head.features.biases]
    leaves = [torch.tensor(array, requires_grad=True) for array in names]
    inputs = torch.tensor(x if within else x + noise)
    if features:
        rotated = inputs @ leaves[2].T + leaves[3] + (torch.tensor(noise) if within else 0)
        first, second = rotated[:, : features // 2], rotated[:, features // 2 :]
        inputs = torch.cat([torch.maximum(first, second), torch.minimum(first, second)], dim=1)
    biases = -leaves[0].square().sum(dim=1) / 2 if prototypes else leaves[1]
    values = inputs @ leaves[0].T + biases
    losses = []
    for i in range(40):
        own = torch.tensor(head.class_of == classes[i])
        ahead = values[i, own][:, None] - values[i, ~own][None]
        between = torch.linalg.norm(leaves[0][own][:, None] - leaves[0][~own][None], dim=2)
        radius = (ahead / between).max(dim=0).values.min()
        short = 4 * (margin - radius) / margin  # PyTorch's softplus is linear from 20 on
        losses.append(weights[i] * torch.logaddexp(torch.zeros_like(short), short))
    torch.stack(losses).mean().backward()
    examples = Examples(x, classes, weights)
    found = radius_gradients(
        head, examples, margin, noise if is_moved else None, prototypes=prototypes
    )
    expected = [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
    if features:  # the part along the manifold of orthonormal matrices
        rotation = head.features.weights
        flipped = features > 3
        q, g = (rotation.T, expected[2].T) if flipped else (rotation, expected[2])
        inner = g @ q.T
        tangent = g - (inner + inner.T) / 2 @ q
        expected[2] = tangent.T if flipped else tangent
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("pieces", [6, 40])
def test_of_many_pieces_the_nearest_pair_is_still_found(rng, pieces):
    """Where the largest own piece says little about the nearest pair, too: 1 in 5 is random."""
    weights, classes = rng.standard_normal((2 * pieces, 5)), rng.integers(2, size=300)
    values = rng.standard_normal((300, 5)) @ weights.T
    values[::5] = rng.standard_normal((60, 2 * pieces))
    class_of, between = np.repeat([0, 1], pieces), piece_distances(weights)
    radii, p, q = nearest_pairs(values, classes, class_of, between)
    for i, c in enumerate(classes):
        own, other = np.flatnonzero(class_of == c), np.flatnonzero(class_of != c)
        table = (values[i, own][:, None] - values[i, other]) / between[own][:, other]
        assert radii[i] == pytest.approx(table.max(axis=0).min(), rel=1e-12)
        assert other[table.max(axis=0).argmin()] == q[i]
        assert own[table[:, other == q[i]].argmax()] == p[i]


def test_quick_distances_are_distances(rng):
    weights = rng.standard_normal((9, 4))
    weights[3] = weights[2]
    largest = np.square(weights).sum(axis=1).max()
    for dtype in (np.float64, np.float32):
        quick = quick_piece_distances(weights.astype(dtype))
        error = np.sqrt(16 * np.finfo(dtype).eps * largest)  # of two pieces at one place
        assert quick == pytest.approx(piece_distances(weights), abs=error)
        assert (quick > 0).all()


def test_noise_has_the_given_deviation(rng):
    noise = uniform_noise((20_000, 3), 0.7, rng)
    assert np.cov(noise, rowvar=False) == pytest.approx(0.49 * np.eye(3), abs=0.02)


def test_trained_prototypes_are_still_prototypes(rng):
    """The nearest of them decides, and they are not where they started."""
    x = rng.standard_normal((90, 4))
    classes = (np.linalg.norm(x, axis=1) > 1.9).astype(np.int64)
    groups = Groups(classes, np.arange(2))
    start, _ = start_head(
        x, classes, groups, Shape(5, 0, True), weights=np.ones(90), starts=1, rng=rng
    )
    examples = Examples(x, classes, np.ones(90))
    head = train(start, examples, 0.5, steps=60, batch=90, prototypes=True, rng=rng)
    nearest = cdist(x, head.weights).argmin(axis=1)
    assert (head.class_of[nearest] == head.predict(x)).all()
    assert np.linalg.norm(head.weights - start.weights, axis=1).min() > 0.01
    assert (head.predict(x) == classes).mean() > (start.predict(x) == classes).mean()


def test_a_known_subclass_is_defended_by_its_own_pieces(rng):
    x = rng.standard_normal((60, 4)).astype(np.float32)
    classes = np.repeat([0, 1], 30)
    labels = np.where(np.arange(60) < 10, 0, np.where(np.arange(60) < 30, 1, 2))
    labels[[4, 20]] = -1
    groups = Groups(labels, np.array([0, 0, 1]))
    head, allowed = start_head(
        x, classes, groups, Shape(4, 0), weights=np.ones(60), starts=1, rng=rng
    )
    assert head.class_of.tolist() == [0] * 4 + [1] * 4
    assert allowed[0].tolist() == [True] * 2 + [False] * 6
    assert allowed[25].tolist() == [False] * 2 + [True] * 2 + [False] * 4
    assert allowed[4].all()


def test_training_decouples_the_features_of_the_law():
    """From coarse labels alone each piece learns one centre, not their average."""
    rng = np.random.default_rng(0)
    sample = fa.MultiCluster(clusters=6, dim=600).sample(400, rng=rng)
    classes = (sample.y > 0).astype(np.int64)
    x = sample.x.astype(np.float32)
    groups = Groups(classes, np.arange(2))
    head, _ = start_head(x, classes, groups, Shape(3, 0), weights=np.ones(400), starts=1, rng=rng)
    margin = 0.5 * np.sqrt(600 / 2)
    head = train(head, Examples(x, classes, np.ones(400)), margin, steps=200, batch=256, rng=rng)
    fresh = sample.fresh(200, rng=rng)
    radii = head.lower_radii(fresh.x, (fresh.y > 0).astype(np.int64))
    assert np.median(radii) > 0.95 * np.sqrt(600 / 2)  # averages have sqrt(600 / 6)
    cosines = head.weights @ sample.centers.T
    assert len(set(cosines.argmax(axis=1).tolist())) == 6

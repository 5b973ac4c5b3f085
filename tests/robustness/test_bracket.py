"""Radii of the probability readout, between two bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.datasets import make_blobs

import featavg as fa
from featavg.robustness.exact.odds_bound import _ClassScalars
from featavg.robustness.view import AttackView
from support.zoo import (
    SEEDS,
    check_perturbations,
    random_multi,
)


@settings(deadline=None)
@given(SEEDS)
def test_costs_of_class_outputs_are_below_the_norm(seed):
    """The inequality behind the bracket: the sum of d (change of a class)² is at most |rho|²."""
    rng = np.random.default_rng(seed)
    net = random_multi(rng, "probability")
    weights = net.weights.copy()
    weights[rng.random(len(weights)) < 0.2] = 0
    net = fa.MultiClassNet(weights, net.classes, net.positive)
    x = rng.standard_normal((1, net.dim))
    rho = rng.standard_normal((200, net.dim)) * 10.0 ** rng.uniform(-2, 2, (200, 1))
    view = AttackView.of(net, x, net.predict(x))
    scalars = _ClassScalars.of(net, view)
    moved = AttackView.of(net, x + rho, np.ones(200, dtype=int))
    change = _ClassScalars.of(net, moved).z - scalars.z
    spent = (scalars.cost[:, None] * np.square(change)).sum(axis=0)
    assert (spent <= np.square(rho).sum(axis=1) * (1 + 1e-9)).all()


def nearest_turn(net, x, y, reach, angles=361, lengths=400):
    """Return the smallest norm that turns the decision at x in the plane, by a scan of all angles.

    Each angle is scanned outwards and bisected where it first turns; the best is looked at again
    with finer angles. What the scan finds does turn the decision, so no proof may be above it.
    """
    centre, width, best = 0.0, np.pi, np.inf
    for _ in range(5):
        theta = centre + np.linspace(-width, width, angles)
        rays = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        r = np.linspace(0, min(reach, 1.01 * best), lengths)[1:]
        turned = net.predict((x + r[:, None, None] * rays).reshape(-1, 2)) != y
        turned = turned.reshape(len(r), -1)
        found = turned.any(axis=0)
        if not found.any():
            break
        high = r[turned.argmax(axis=0)]
        low = high - r[0]
        for _ in range(40):
            middle = (low + high) / 2
            hit = net.predict(x + middle[:, None] * rays) != y
            low, high = np.where(hit, low, middle), np.where(hit, middle, high)
        high[~found] = np.inf
        best = min(best, float(high.min()))
        centre, width = theta[high.argmin()], width / 30
    return best


def plane_network(rng, *, classes, biases):
    h, k = int(rng.integers(1, 3)), int(rng.integers(*classes))
    scale = 10.0 ** rng.uniform(-1, 1)
    positive = rng.choice(k, size=int(rng.integers(1, k)), replace=False).tolist()
    b = scale * rng.standard_normal(k * h) if biases else None
    return fa.MultiClassNet(scale * rng.standard_normal((k * h, 2)), k, positive, biases=b)


@pytest.mark.slow
@pytest.mark.parametrize("biases", [False, True])
def test_brackets_hold_what_a_scan_of_the_plane_finds(biases):
    rng = np.random.default_rng(2)
    gaps = []
    for _ in range(25):
        net = plane_network(rng, classes=(3, 11), biases=biases)
        x = rng.standard_normal((1, 2)) * 10.0 ** rng.uniform(-1, 0.5)
        y = net.predict(x)
        radii = fa.exact_radii(net, x, jobs=1)
        nearest = nearest_turn(net, x, y[0], min(1.2 * radii.upper[0], 50.0))
        assert radii.lower[0] <= nearest * (1 + 1e-9)
        assert radii.upper[0] <= nearest * (1 + 1e-2)
        check_perturbations(net, x, y, radii, thin_sets=True)
        gaps.append(radii.gap[0])
    assert np.median(gaps) < 0.01
    assert np.quantile(gaps, 0.9) < 0.05


@pytest.mark.slow
def test_brackets_of_random_networks_are_narrow():
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(60):
        net = random_multi(rng, "probability")
        x = rng.standard_normal((1, net.dim))
        radii = fa.exact_radii(net, x, jobs=1)
        assert radii.lower[0] > 0
        gaps.append(radii.gap[0])
    assert np.median(gaps) < 0.01
    assert np.quantile(gaps, 0.9) < 0.05


@pytest.mark.slow
def test_no_attack_is_below_the_bracket():
    rng = np.random.default_rng(5)
    for _ in range(10):
        net = random_multi(rng, "probability")
        x = rng.standard_normal((20, net.dim))
        y = net.predict(x)
        radii = fa.exact_radii(net, x, y, jobs=1)
        attack = fa.minimal_norm(net, x, y, steps=100)
        assert (radii.lower <= attack.upper * (1 + 1e-12)).all()
        assert (radii.upper <= attack.upper * (1 + 1e-4)).all()


def test_two_classes_are_those_of_the_argmax():
    """sigmoid(f_1 - f_0) > 1/2 where f_1 > f_0: the boundary of the first two points is x1 = x2."""
    net = fa.MultiClassNet([[1.0, 0.0], [0.0, 1.0]], 2, [0])
    radii = fa.exact_radii(net, [[3.0, 1.0], [1.0, 2.0], [-1.0, -2.0]])
    np.testing.assert_allclose(radii.upper, [np.sqrt(2), np.sqrt(0.5), 1.0], rtol=1e-5)
    assert radii.exact.all()


def test_one_class_against_two_by_hand():
    """On the line f = (relu(x), relu(-x), relu(-x)); the first class leads where e^x > 2."""
    net = fa.MultiClassNet([[1.0], [-1.0], [-1.0]], 3, [0])
    radii = fa.exact_radii(net, [[3.0], [0.0], [-2.0]])
    expected = [3 - np.log(2), np.log(2), 2 + np.log(2)]
    np.testing.assert_allclose(radii.upper, expected, rtol=1e-5)
    np.testing.assert_allclose(radii.lower, expected, rtol=1e-3)
    assert (radii.lower <= expected).all()


def test_two_classes_against_one_turn_where_their_sum_is_overtaken():
    """Along (1, 1, 0) to (0, 0, 1): with f = x the flip is at 2 e^a = e^b."""
    net = fa.MultiClassNet(np.eye(3), 3, [0, 1])
    radii = fa.exact_radii(net, [[4.0, 4.0, 0.0]])
    expected = (4 + np.log(2)) / np.sqrt(1.5)  # the gradient of log(e^a + e^b) - c has this norm
    np.testing.assert_allclose(radii.upper, expected, rtol=1e-4)
    np.testing.assert_allclose(radii.lower, expected, rtol=1e-3)


@pytest.mark.parametrize("classes", [4, 5, 6])
def test_silent_points_keep_their_prediction_up_to_the_first_kink(classes):
    """All outputs are 0 for x < 1; the side with more classes decides there, or -1 in a draw."""
    half = classes // 2
    signs = np.where(np.arange(classes) < half, 1.0, -1.0)
    weights = np.stack([signs, 1 - 1e-3 * np.arange(classes)], axis=1)
    net = fa.MultiClassNet(weights, classes, half, biases=np.full(classes, -1.0))
    x = np.array([[0.0, -3.0], [0.0, 0.0]])
    np.testing.assert_array_equal(net.predict(x), [-1, -1])
    radii = fa.exact_radii(net, x)
    assert (radii.lower > 0.5).all()
    assert (radii.gap < 1e-3).all()
    for point, upper, lower in zip(x, radii.upper, radii.lower, strict=True):
        assert lower <= nearest_turn(net, point[None], -1, 1.2 * upper) * (1 + 1e-9)
    check_perturbations(net, x, net.predict(x), radii)


def test_decisions_that_never_turn_have_no_radius():
    """More own classes in silence, and no opposing neuron that can switch on far enough."""
    net = fa.MultiClassNet([[1.0], [1.0], [0.5]], 3, [0, 1])
    radii = fa.exact_radii(net, [[2.0], [-2.0]])
    assert np.isinf(radii.lower).all()
    assert np.isinf(radii.upper).all()


def test_equal_outputs_of_both_sides_cancel():
    """Classes 1 and 2 are the same, so 0 against 3 decides: their boundary is x1 = x2."""
    net = fa.MultiClassNet([[1.0, 0.0], [2.0, 3.0], [2.0, 3.0], [0.0, 1.0]], 4, [0, 1])
    radii = fa.exact_radii(net, [[3.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(radii.upper, np.sqrt(2), rtol=1e-5)
    np.testing.assert_allclose(radii.lower, np.sqrt(2), rtol=1e-3)
    shared = fa.MultiClassNet([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 3, [0])
    assert np.isinf(fa.exact_radii(shared, [[1.0, 2.0]]).lower).all()


@pytest.mark.slow
def test_radii_of_a_decoupled_classifier_on_blobs_are_positive():
    x, clusters = make_blobs(120, centers=4, random_state=0)
    model = fa.DecoupledClassifier(readout="probability", random_state=0)
    model.fit(x[:80], clusters[:80] % 2, clusters[:80])
    assert np.abs(model.decision_function(x[80:])).min() > 1e-6
    assert (model.predict_radius(x[80:]) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-4, 1e-2, 1.0, 30.0, 1e4])
def test_brackets_are_narrow_for_small_and_large_logits(paper, factor):
    """Small logits: the readout is a difference of sums. Large ones: it is the argmax."""
    test, _, fine = paper
    net = fa.MultiClassNet(factor * fine.weights, 10, 5)
    radii = fa.exact_radii(net, test.x[:30], test.y[:30])
    assert np.quantile(radii.gap, 0.9) < 0.01
    check_perturbations(net, test.x[:30], test.y[:30], radii)

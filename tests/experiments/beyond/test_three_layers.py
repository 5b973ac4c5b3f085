from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import featavg as fa
from featavg.experiments.beyond.three_layers import (
    ThreeLayerNet,
    attacked_radii,
    averaging,
    descend_three_layers,
)


@pytest.fixture
def train():
    return fa.MultiCluster(clusters=4, dim=12).sample(30, rng=np.random.default_rng(0))


@pytest.fixture
def net(train):
    rng = np.random.default_rng(1)
    return ThreeLayerNet.init(train, width=3, weight_scale=0.3, bias_scale=0.2, rng=rng)


def by_loops(net, x):
    hidden = [max(float(w @ x + b), 0.0) for w, b in zip(net.weights, net.biases, strict=True)]
    inner = zip(net.inner, net.inner_biases, net.outer, strict=True)
    return sum(a * max(float(v @ np.array(hidden) + c), 0.0) for v, c, a in inner)


def test_the_score_written_out(net, train):
    expected = [by_loops(net, x) for x in train.x]
    np.testing.assert_allclose(net.score(train.x), expected, rtol=1e-12)
    np.testing.assert_array_equal(net.predict(train.x), np.where(np.array(expected) > 0, 1, -1))


def test_a_step_is_minus_the_learning_rate_times_the_gradient(net, train):
    def mean_loss(at):
        return np.logaddexp(0, -train.y * at.score(train.x)).mean()

    after = net.step(train.x, train.y, 0.1)
    rng = np.random.default_rng(2)
    for name in ("weights", "biases", "inner", "inner_biases"):
        before = getattr(net, name)
        for _ in range(5):
            place = tuple(int(rng.integers(size)) for size in before.shape)
            moved = []
            for sign in (1, -1):
                changed = before.copy()
                changed[place] += sign * 1e-6
                moved.append(mean_loss(replace(net, **{name: changed})))
            slope = (moved[0] - moved[1]) / 2e-6
            step = getattr(after, name)[place] - before[place]
            assert step == pytest.approx(-0.1 * slope, rel=1e-4, abs=1e-9)
    np.testing.assert_array_equal(after.outer, net.outer)


def test_gradients_by_the_points(net, train):
    score, gradient = net.input_gradients(train.x)
    np.testing.assert_array_equal(score, net.score(train.x))
    for j in range(4):
        step = np.eye(12)[j] * 1e-6
        slope = (net.score(train.x + step) - net.score(train.x - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-5, atol=1e-7)


def test_training_lowers_the_loss(net, train):
    path = list(descend_three_layers(net, train, learning_rate=0.01, steps=60))
    losses = [np.logaddexp(0, -train.y * at.score(train.x)).mean() for at in path]
    assert path[0] is net
    assert len(path) == 61
    assert (np.diff(losses) < 0).all()


def embedded(shallow):
    """Return the same function with a second hidden layer of the identity: relu twice is relu."""
    neurons = len(shallow.weights)
    outer = shallow.second_layer[0]
    return ThreeLayerNet(shallow.weights, shallow.biases, np.eye(neurons), np.zeros(neurons), outer)


def test_attacked_radii_against_exact_ones():
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=4, dim=100).sample(80, rng=rng)
    start = fa.BinaryNet.init(train, width=3, weight_scale=1e-3, bias_scale=1e-3, rng=rng)
    shallow = fa.descend(start, train, learning_rate=0.05, steps=60, record=2).net
    test = train.fresh(40, rng=rng)
    net = embedded(shallow)
    np.testing.assert_allclose(net.score(test.x), shallow.score(test.x), rtol=1e-9)
    exact = fa.exact_radii(shallow, test.x, test.y)
    assert exact.exact.all()
    found = attacked_radii(net, test.x, test.y, towards=train.centers)
    assert (found >= exact.upper * (1 - 1e-6)).all()  # an attack cannot be better
    assert np.median(found / np.maximum(exact.upper, 1e-9)) < 1.001
    wrong = attacked_radii(net, test.x, -net.predict(test.x), towards=train.centers)
    np.testing.assert_array_equal(wrong, 0)


def test_nothing_is_found_where_nothing_turns_the_decision(net, train):
    constant = replace(
        net, inner=np.zeros_like(net.inner), inner_biases=np.ones(6), outer=np.ones(6)
    )
    found = attacked_radii(
        constant, train.x[:3], np.ones(3, dtype=int), towards=train.centers, steps=5
    )
    assert np.isinf(found).all()


def test_averaging_of_the_first_layer():
    law = fa.MultiCluster(clusters=4, dim=16, noise=0.0)
    train = law.sample(10, rng=np.random.default_rng(0))
    mu = train.centers
    weights = np.stack([mu[0] + mu[1], mu[2] + mu[3], mu[2] + mu[3], mu[1]])
    blank = np.zeros(4)
    net = ThreeLayerNet(weights, blank, np.eye(4), blank, blank)
    index, cosine = averaging(net, train)
    sizes = np.sqrt([2, 2, 2, 1])  # neurons weigh as much as their norms
    assert index == pytest.approx(sizes[:3].sum() / sizes.sum())
    own = [np.sqrt(0.5)] * 3 + [0.5]
    assert cosine == pytest.approx(np.average(own, weights=sizes))
    silent = replace(net, inner=np.diag([1.0, 1.0, 1.0, 0.0]))
    assert averaging(silent, train)[0] == pytest.approx(1)


def test_fields_are_arrays_of_fitting_shapes(net):
    assert [getattr(net, f.name).shape for f in fields(net)] == [(6, 12), (6,), (6, 6), (6,), (6,)]

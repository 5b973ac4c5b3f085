"""Rules that change one thing about another rule."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.training.wrapped_rule import WrappedRule


@pytest.fixture
def train():
    return fa.MultiCluster(clusters=4, dim=30).sample(40, rng=np.random.default_rng(0))


@pytest.fixture
def net(train):
    rng = np.random.default_rng(1)
    return fa.BinaryNet.init(train, width=3, weight_scale=0.05, bias_scale=0.05, rng=rng)


@pytest.mark.parametrize(
    "rule",
    [fa.GradientDescent(), fa.SGD(8), fa.Momentum(), fa.Adam(batch=8), fa.SAM(0.1)],
    ids=repr,
)
def test_a_wrapper_that_changes_nothing(rule, net, train):
    runs = [
        fa.descend(
            net, train, learning_rate=0.01, steps=20, rule=used, rng=np.random.default_rng(2)
        )
        for used in (rule, WrappedRule(rule=rule), fa.LearningRates(rule=rule))
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.net.weights, runs[0].net.weights)
        np.testing.assert_array_equal(run.net.biases, runs[0].net.biases)
        assert run.exact_coefficients == rule.linear


@pytest.mark.parametrize("method", ["dual", "primal"])
def test_learning_rates_by_hand(method, net, train):
    rate, factor = 0.02, 7.0
    rule = fa.LearningRates(biases=factor)
    run = fa.descend(net, train, learning_rate=rate, steps=25, rule=rule, method=method)
    W, b, a = net.weights.copy(), net.biases.copy(), net.second_layer[0]
    for _ in range(25):
        Z = train.x @ W.T + b
        margin = train.y * (np.maximum(Z, 0) @ a)
        pull = (train.y / (1 + np.exp(margin)))[:, None] * (Z >= 0) * a / len(train)
        W, b = W + rate * pull.T @ train.x, b + factor * rate * pull.sum(axis=0)
    np.testing.assert_allclose(run.net.weights, W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.net.biases, b, rtol=1e-9, atol=1e-12)


def test_factors_of_zero_leave_parameters_as_they_are(train):
    rng = np.random.default_rng(1)
    net = fa.BinaryNet.init(
        train, width=3, weight_scale=0.05, bias_scale=0.05, rng=rng, train_second_layer=True
    )
    rule = fa.LearningRates(biases=0, second_layer=0, rule=fa.Adam())
    run = fa.descend(net, train, learning_rate=0.01, steps=5, rule=rule)
    np.testing.assert_array_equal(run.net.biases, net.biases)
    np.testing.assert_array_equal(run.net.second_layer, net.second_layer)
    assert np.abs(run.net.weights - net.weights).max() > 1e-3


def test_promises_are_those_of_the_other_rule(net, train):
    span = fa.MultiCluster(clusters=4, dim=600).sample(
        20, rng=np.random.default_rng(0), coordinates="span", reserve=6
    )
    start = fa.BinaryNet.init(
        span, width=3, weight_scale=0.05, bias_scale=0.05, rng=np.random.default_rng(1)
    )
    for inner in (fa.GradientDescent(), fa.SAM(0.1)):
        rule = fa.LearningRates(biases=5.0, rule=inner)
        fa.descend(start, span, learning_rate=0.01, steps=2, rule=rule)
    rule = fa.LearningRates(biases=5.0, rule=fa.Adam())
    with pytest.raises(fa.InputError, match="commutes with rotations"):
        fa.descend(start, span, learning_rate=0.01, steps=2, rule=rule)
    with pytest.raises(fa.InputError, match="rule must be a Rule"):
        fa.LearningRates(rule="adam")
    with pytest.raises(fa.InputError, match="biases must be at least 0"):
        fa.LearningRates(biases=-1.0)


class Ahead(fa.GradientDescent):
    """A rule that looks ahead and is declared linear all the same."""

    def lookahead(self, gradients):
        return dict(gradients)


def test_a_linear_rule_takes_gradients_where_it_is(net, train):
    for rule in (Ahead(), WrappedRule(rule=Ahead())):
        with pytest.raises(fa.InputError, match="must not be declared linear"):
            fa.descend(net, train, learning_rate=0.01, steps=1, rule=rule)


@pytest.mark.parametrize(
    ("inner", "method"),
    [(fa.GradientDescent(), "dual"), (fa.GradientDescent(), "primal"), (fa.SAM(0.0), "auto")],
)
def test_dropout_by_hand(inner, method, train):
    net = fa.BinaryNet.init(
        train,
        width=3,
        weight_scale=0.05,
        bias_scale=0.05,
        rng=np.random.default_rng(1),
        train_second_layer=True,
    )
    rate, share = 0.05, 0.3
    rule = fa.Dropout(share, rule=inner)
    steps = {"learning_rate": rate, "steps": 25, "rng": np.random.default_rng(5)}
    run = fa.descend(net, train, rule=rule, method=method, **steps)
    W, b, a = net.weights.copy(), net.biases.copy(), net.second_layer[0].copy()
    masks = np.random.default_rng(5)
    for _ in range(25):
        kept = (masks.random((6, 40)) >= share).T / (1 - share)
        Z = train.x @ W.T + b
        hidden = np.maximum(Z, 0) * kept
        residual = train.y / (1 + np.exp(train.y * (hidden @ a))) / len(train)
        pull = residual[:, None] * (Z >= 0) * kept * a
        W, b, a = (
            W + rate * pull.T @ train.x,
            b + rate * pull.sum(axis=0),
            a + rate * residual @ hidden,
        )
    np.testing.assert_allclose(run.net.weights, W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.net.biases, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.net.second_layer[0], a, rtol=1e-9, atol=1e-12)
    # what is recorded is the whole network
    margins = train.y * (np.maximum(train.x @ W.T + b, 0) @ a)
    np.testing.assert_allclose(run.margins[-1], margins, rtol=1e-9)


def test_dropout_of_nothing_and_of_batches(net, train):
    runs = [
        fa.descend(net, train, learning_rate=0.01, steps=9, rule=rule, rng=np.random.default_rng(2))
        for rule in (fa.GradientDescent(), fa.Dropout(0.0))
    ]
    np.testing.assert_array_equal(runs[0].net.weights, runs[1].net.weights)
    twice = fa.Dropout(0.5, rule=fa.Dropout(0.5)).neuron_factors(
        (4, 5000), np.random.default_rng(0)
    )
    assert set(np.unique(twice)) == {0.0, 4.0}
    assert twice.mean() == pytest.approx(1, abs=0.05)  # the mean gradient is that of the outputs
    rule = fa.Dropout(0.5, rule=fa.SGD(8))
    assert rule.batch == 8
    run = fa.descend(
        net, train, learning_rate=0.01, steps=3, rule=rule, rng=np.random.default_rng(2)
    )
    moved = np.flatnonzero(run.point_coefficients[1].any(axis=0))
    assert 0 < len(moved) <= 8
    with pytest.raises(fa.InputError, match="rng must be"):
        fa.descend(net, train, learning_rate=0.01, steps=1, rule=fa.Dropout())
    with pytest.raises(fa.InputError, match="rate must be below 1; got 1.0"):
        fa.Dropout(1.0)

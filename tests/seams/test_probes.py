"""Obvious extensions that would give wrong numbers: each is right, or refused in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import featavg as fa


@pytest.fixture(scope="module")
def train():
    return fa.MultiCluster(clusters=4, dim=60).sample(120, rng=np.random.default_rng(0))


def start(train, **options):
    rng = np.random.default_rng(1)
    return fa.BinaryNet.init(train, width=3, weight_scale=0.1, bias_scale=0.1, rng=rng, **options)


def test_a_leaky_subclass_of_a_network_is_refused():
    with pytest.raises(TypeError, match="BinaryNet cannot be subclassed"):

        class Leaky(fa.BinaryNet):
            def hidden(self, Z):
                return np.where(Z >= 0, Z, 0.1 * Z)

    with pytest.raises(TypeError, match="must not override hidden"):

        class Other(fa.networks.base.TwoLayerNet):
            def hidden(self, Z):
                return Z


def test_a_leaky_network_trains_as_one_and_its_radii_turn_its_own_decision(train):
    leaky = start(train, activation=fa.LeakyReLU(0.1))
    run = fa.descend(leaky, train, learning_rate=0.01, steps=100)
    plain = fa.descend(start(train), train, learning_rate=0.01, steps=100)
    assert np.abs(run.net.weights - plain.net.weights).max() > 1e-3
    test = train.fresh(120, rng=np.random.default_rng(2))
    radii = fa.exact_radii(run.net, test.x, test.y, jobs=1)
    right = radii.upper > 0
    turned = run.net.predict(test.x + radii.perturbations) != test.y
    assert turned[right].all()
    assert radii.exact.all()


def test_margins_know_the_second_layer_and_the_degree(train):
    net = start(train, activation=fa.ReLUPower(1), train_second_layer=True)
    run = fa.descend(net, train, learning_rate=0.02, steps=300)
    q = train.y * run.net.score(train.x)
    theta = sum(
        np.square(part).sum() for part in (run.net.weights, run.net.biases, run.net.second_layer)
    )
    assert run.net.degree == 2
    assert fa.normalized_margin(run.net, train) == pytest.approx(q.min() / theta)
    with pytest.raises(fa.InputError, match="homogeneous of degree 1 .* of degree 2"):
        fa.kkt_residual(run.net, train)


def test_fresh_points_have_the_noise_of_the_law():
    class Stretched(fa.MultiCluster):
        def draw_noise(self, shape, rng, dtype):
            return 10 * rng.standard_normal(shape).astype(dtype)

    rng = np.random.default_rng(0)
    train = Stretched(clusters=4, dim=50).sample(400, rng=rng)
    test = train.fresh(400, rng=rng)
    for sample in (train, test):
        noise = sample.x - sample.centers[sample.cluster]
        assert noise.std() == pytest.approx(10, rel=0.02)

    with pytest.raises(TypeError, match="must not override sample"):

        class Other(fa.MultiCluster):
            def sample(self, size, **options):
                return super().sample(size, **options)


def test_a_subclass_that_breaks_a_promise_is_refused(train):
    class Leaky(fa.ReLU):  # and forgets pieces
        def value(self, z):
            return np.where(z >= 0, z, 0.1 * z)

        def slope(self, z):
            return np.where(z >= 0, 1.0, 0.1)

    class Capped(fa.ReLU):  # a ReLU up to 6
        def value(self, z):
            return np.clip(z, 0, 6)

        def slope(self, z):
            return ((z >= 0) & (z < 6)).astype(float)

    class Bent(fa.ReLUPower):  # a square up to 10,000
        def value(self, z):
            return np.where(z < 1e4, super().value(z), 1e4 * z)

    @dataclass(frozen=True)
    class Wrong(fa.Activation):
        def value(self, z):
            return np.tanh(z)

        def slope(self, z):
            return np.ones_like(z)

    for activation, sentence in (
        (Leaky(), "value must be linear with the slopes in pieces"),
        (Capped(), "value must be linear with the slopes in pieces"),
        (Bent(), "value must be homogeneous of the stated degree"),
        (Wrong(), "slope must be the derivative of value"),
        ("relu", "activation must be an Activation"),
    ):
        with pytest.raises(fa.InputError, match=sentence):
            start(train, activation=activation)

    class Signs(fa.GradientDescent):  # and stays "linear"
        def update(self, gradients, state, parameters, learning_rate):
            return {name: -learning_rate * np.sign(g) for name, g in gradients.items()}, state

    class Rotated(fa.SignDescent):
        rotation_equivariant = True

    with pytest.raises(fa.InputError, match="declared linear must be linear"):
        fa.descend(start(train), train, learning_rate=0.1, steps=1, rule=Signs())
    span = fa.MultiCluster(clusters=4, dim=600).sample(
        20, rng=np.random.default_rng(0), coordinates="span", reserve=6
    )
    with pytest.raises(fa.InputError, match="commutes with rotations"):
        fa.descend(start(span), span, learning_rate=0.1, steps=1, rule=Rotated())
    with pytest.raises(fa.InputError, match="rule must be a Rule"):
        fa.descend(start(train), train, learning_rate=0.1, steps=1, rule="adam")

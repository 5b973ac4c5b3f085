"""Obvious extensions that would give wrong numbers: each is right, or refused in one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import featavg as fa
from featavg.networks import reference


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


def test_activations_that_are_equal_are_checked_one_by_one():
    class Capped(fa.ReLU):  # equal to every other one, as a dataclass without fields
        def __init__(self, cap):
            object.__setattr__(self, "cap", cap)

        def value(self, z):
            return np.clip(z, 0, self.cap)

        def slope(self, z):
            return ((z >= 0) & (z < self.cap)).astype(float)

    assert Capped(0.5) == Capped(np.inf)
    fa.ShallowNet(np.eye(2), [0, 0], [[1, -1]], [0], activation=Capped(np.inf))
    with pytest.raises(fa.InputError, match="value must be linear with the slopes in pieces"):
        fa.ShallowNet(np.eye(2), [0, 0], [[1, -1]], [0], activation=Capped(0.5))


@pytest.mark.parametrize("limit", [10.0, 1e-4, 1e7])
def test_rules_that_treat_large_gradients_differently_are_not_linear(train, limit):
    class Clipped(fa.GradientDescent):  # and stays "linear"
        def update(self, gradients, state, parameters, learning_rate):
            norm = np.sqrt(sum(np.square(g).sum() for g in gradients.values()))
            factor = min(1, limit / norm) if norm else 1
            return {name: -learning_rate * factor * g for name, g in gradients.items()}, state

    class Entries(fa.Rule):  # each entry for itself
        rotation_equivariant = True

        def update(self, gradients, state, parameters, learning_rate):
            clipped = {name: np.clip(g, -limit, limit) for name, g in gradients.items()}
            return {name: -learning_rate * g for name, g in clipped.items()}, state

    with pytest.raises(fa.InputError, match="a rule that is declared linear must be linear"):
        fa.descend(start(train), train, learning_rate=0.01, steps=1, rule=Clipped())
    rng = np.random.default_rng(0)
    span = fa.MultiCluster(clusters=4, dim=600).sample(30, rng=rng, coordinates="span")
    with pytest.raises(fa.InputError, match="needs? a rule that commutes with rotations"):
        fa.descend(start(span), span, learning_rate=0.01, steps=1, rule=Entries())


@pytest.mark.parametrize("method", ["points_around", "draw_points"])
def test_laws_that_draw_points_of_their_own_stay_in_their_coordinates(method):
    class Clipped(fa.MultiCluster):
        pass

    def clipped(self, *arguments, **options):
        drawn = getattr(fa.MultiCluster, method)(self, *arguments, **options)
        if method == "points_around":
            return np.clip(drawn[0], -1, 1), drawn[1]
        return replace(drawn, x=np.clip(drawn.x, -1, 1))

    setattr(Clipped, method, clipped)
    law, rng = Clipped(clusters=4, dim=400), np.random.default_rng(0)
    assert law.sample(20, rng=rng).x.max() == 1
    with pytest.raises(fa.InputError, match="span coordinates need a law that is rotation"):
        law.sample(20, rng=rng, coordinates="span")


def test_losses_that_break_a_promise_are_refused(train):
    class Half(fa.Logistic):  # and forgets what is computed by logarithms
        def losses(self, outputs, targets):
            return super().losses(outputs, targets) / 2

        def residuals(self, outputs, targets):
            return super().residuals(outputs, targets) / 2

    class Uphill(fa.Square):
        def residuals(self, outputs, targets):
            return -super().residuals(outputs, targets)

        def losses(self, outputs, targets):
            return np.square(super().residuals(outputs, targets)).sum(axis=0) / 2

    class Mean(fa.Square):
        def losses(self, outputs, targets):
            return super().losses(outputs, targets).mean()

    for loss, sentence in (
        (Half(), "log_losses must be the logarithms of losses"),
        (Uphill(), "residuals must be minus the derivatives of losses"),
        (Mean(), "losses must return a number for each point"),
        ("hinge", "loss must be a Loss, such as Logistic"),
        (fa.Hinge, "loss must be a Loss, such as Logistic"),
    ):
        for train_net in (fa.descend, fa.fast_forward):
            with pytest.raises(fa.InputError, match=sentence):
                train_net(start(train), train, learning_rate=0.01, steps=1, loss=loss)


def test_pulls_that_are_not_those_of_the_residuals_are_refused(train):
    class Pull(fa.Exponential):  # losses and residuals are right
        def log_pulls(self, outputs, targets):
            return super().log_pulls(outputs, targets) / 2

    with pytest.raises(fa.InputError, match="times the pulls of log_pulls must be residuals"):
        fa.fast_forward(start(train), train, learning_rate=0.01, steps=1, loss=Pull())


def test_outputs_on_other_sides_than_the_labels_are_refused(train):
    rng = np.random.default_rng(0)
    other = fa.MultiCluster(clusters=4, dim=60, positive=[0, 3]).sample(20, rng=rng)
    net = fa.MultiClassNet.init(other, width=1, weight_scale=1e-3, rng=rng)
    for loss in (None, fa.CoarseCrossEntropy(), fa.SuppliedLabels(train.cluster)):
        with pytest.raises(fa.InputError, match=r"outputs of net must be on the sides .*\[1, 1, -"):
            fa.descend(net, train, learning_rate=0.01, steps=1, loss=loss)
    fa.descend(net.with_positive([0, 1]), train, learning_rate=0.01, steps=1)


def test_span_coordinates_have_no_other_norm_and_no_bounds():
    """Their axes are arbitrary, so that the largest coordinate means nothing."""
    law, rng = fa.MultiCluster(clusters=4, dim=600), np.random.default_rng(0)
    train = law.sample(30, rng=rng, coordinates="span")
    for net in (
        fa.descend(start(train), train, learning_rate=0.01, steps=3).net,
        fa.MultiClassNet.init(train, width=1, weight_scale=1, rng=rng).with_readout("argmax"),
        reference.decoupled(train),
    ):
        assert fa.exact_radii(net, train.x[:2]).norm == "l2"
        for options in ({"norm": "linf"}, {"bounds": (-1e6, 1e6)}):
            with pytest.raises(fa.InputError, match="leave the orientation open"):
                fa.exact_radii(net, train.x[:2], **options)
    ambient = start(law.sample(30, rng=rng))
    assert fa.exact_radii(ambient, np.ones((1, 600)), norm="linf").exact.all()

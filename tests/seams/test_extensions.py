"""A new law, activation, loss and rule is one class each, and nothing in the package changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import erf

import featavg as fa


class HeavyTailed(fa.MultiCluster):
    """Clusters with Student's noise."""

    def draw_noise(self, shape, rng, dtype):
        return rng.standard_t(3, shape).astype(dtype)


@dataclass(frozen=True)
class Polygon(fa.Law):
    """Clusters at the corners of a regular polygon, of which the first half is positive."""

    clusters: int
    dim: int
    signal: float = 1.0
    noise: float = 1.0

    def center_directions(self):
        angles = 2 * np.pi * np.arange(self.clusters) / self.clusters
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@dataclass(frozen=True)
class GELU(fa.Activation):
    """The Gaussian error linear unit."""

    def value(self, z):
        return z * (1 + erf(z / np.sqrt(2))) / 2

    def slope(self, z):
        return (1 + erf(z / np.sqrt(2))) / 2 + z * np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi)


@dataclass(frozen=True)
class Steep(fa.Activation):
    """Three times the ReLU: piecewise linear, so that everything exact applies."""

    pieces = (0.0, 3.0)
    degree = 1

    def value(self, z):
        return 3 * np.maximum(z, 0)

    def slope(self, z):
        return 3.0 * (z >= 0)


class Clipped(fa.Rule):
    """Gradient descent whose gradient is no longer than 1."""

    rotation_equivariant = True

    def update(self, gradients, state, parameters, learning_rate):
        norm = np.sqrt(sum(np.square(g).sum() for g in gradients.values()))
        return {name: -learning_rate * g / max(1, norm) for name, g in gradients.items()}, state


class Nesterov(fa.GradientDescent):
    """Nesterov's momentum: linear, so that coefficients stay exact."""

    def init(self, parameters):
        return {name: np.zeros_like(value) for name, value in parameters.items()}

    def update(self, gradients, state, parameters, learning_rate):
        velocity = {name: 0.9 * state[name] + g for name, g in gradients.items()}
        step = {name: -learning_rate * (g + 0.9 * velocity[name]) for name, g in gradients.items()}
        return step, velocity


class Quartic(fa.Loss):
    """The fourth power of the distance from the label."""

    def losses(self, outputs, targets):
        return (outputs[0] - targets) ** 4 / 4

    def residuals(self, outputs, targets):
        return -((outputs[0] - targets) ** 3)[None, :]


def start(train, **options):
    rng = np.random.default_rng(1)
    return fa.BinaryNet.init(train, width=3, weight_scale=0.05, bias_scale=0.05, rng=rng, **options)


def finite_differences(net, train, mean_loss):
    """Return the gradient of a mean loss by each weight."""
    gradient = np.zeros_like(net.weights)
    for index in np.ndindex(gradient.shape):
        values = []
        for sign in (1, -1):
            weights = net.weights.copy()
            weights[index] += sign * 1e-5
            values.append(mean_loss(net.with_parameters(weights, net.biases)))
        gradient[index] = (values[0] - values[1]) / 2e-5
    return gradient


def logistic(train):
    return lambda net: np.logaddexp(0, -train.y * net.score(train.x)).mean()


@pytest.fixture
def train():
    return fa.MultiCluster(clusters=4, dim=12).sample(40, rng=np.random.default_rng(0))


def test_a_new_law():
    law = HeavyTailed(clusters=4, dim=20, signal=3.0)
    rng = np.random.default_rng(0)
    train = law.sample(2000, rng=rng)
    test = train.fresh(2000, rng=rng)
    for sample in (train, test):
        noise = sample.x - 3.0 * sample.centers[sample.cluster]
        np.testing.assert_allclose(np.linalg.norm(noise, axis=1), sample.noise_norms, rtol=1e-9)
        # half of Student's law with 3 degrees of freedom is within 0.765, of N(0, 1) within 0.674
        assert (np.abs(noise) < 0.765).mean() == pytest.approx(0.5, abs=0.01)
    assert not law.rotation_invariant
    with pytest.raises(fa.InputError, match="span coordinates need a law that is rotation"):
        HeavyTailed(clusters=4, dim=10**6).sample(10, rng=rng, coordinates="span")
    net = start(train)
    run = fa.descend(net, train, learning_rate=0.05, steps=300)
    assert fa.clean_accuracy(run.net, test.x, test.y) > 0.95


def test_a_new_arrangement_of_centres():
    law, rng = Polygon(clusters=6, dim=400), np.random.default_rng(0)
    for coordinates in ("ambient", "span"):
        train = law.sample(60, rng=rng, coordinates=coordinates)
        cosines = train.centers @ train.centers.T / law.dim
        turns = 2 * np.pi * (np.arange(6)[:, None] - np.arange(6)) / 6
        np.testing.assert_allclose(cosines, np.cos(turns), atol=1e-9)
        np.testing.assert_array_equal(train.y, np.where(train.cluster < 3, 1, -1))
        run = fa.descend(start(train), train, learning_rate=0.01, steps=300)
        test = train.fresh(200, rng=rng)
        assert fa.clean_accuracy(run.net, test.x, test.y) > 0.95


@pytest.mark.parametrize("activation", [GELU(), Steep()], ids=repr)
def test_a_new_activation(activation, train):
    net = start(train, activation=activation)
    run = fa.descend(net, train, learning_rate=0.01, steps=1)
    expected = net.weights - 0.01 * finite_differences(net, train, logistic(train))
    np.testing.assert_allclose(run.net.weights, expected, atol=1e-9)
    trained = fa.descend(net, train, learning_rate=0.05, steps=200)
    assert trained.loss[-1] < 0.5 * trained.loss[0]


def test_exact_radii_of_a_new_activation(train):
    net = fa.descend(start(train, activation=Steep()), train, learning_rate=0.01, steps=50).net
    plain = fa.BinaryNet(3 * net.weights, 3 * net.biases)
    found, expected = (fa.exact_radii(n, train.x, train.y, jobs=1) for n in (net, plain))
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-9)
    with pytest.raises(fa.InputError, match=r"piecewise linear activation; got GELU\(\)"):
        fa.exact_radii(start(train, activation=GELU()), train.x, train.y)


def test_a_new_rule(train):
    net = start(train)
    W, b = net.weights.copy(), net.biases.copy()
    for _ in range(20):
        gradients = fa.descend(net.with_parameters(W, b), train, learning_rate=1.0, steps=1).net
        g, h = W - gradients.weights, b - gradients.biases
        norm = max(1, np.sqrt(np.square(g).sum() + np.square(h).sum()))
        W, b = W - 0.5 * g / norm, b - 0.5 * h / norm
    run = fa.descend(net, train, learning_rate=0.5, steps=20, rule=Clipped())
    np.testing.assert_allclose(run.net.weights, W, rtol=1e-8, atol=1e-10)
    assert not run.exact_coefficients


def test_a_new_linear_rule_keeps_exact_coefficients(train):
    net = start(train)
    run = fa.descend(net, train, learning_rate=0.02, steps=30, rule=Nesterov())
    W, b, V, U = net.weights.copy(), net.biases.copy(), 0.0, 0.0
    for _ in range(30):
        once = fa.descend(net.with_parameters(W, b), train, learning_rate=1.0, steps=1).net
        g, h = W - once.weights, b - once.biases
        V, U = 0.9 * V + g, 0.9 * U + h
        W, b = W - 0.02 * (g + 0.9 * V), b - 0.02 * (h + 0.9 * U)
    np.testing.assert_allclose(run.net.weights, W, rtol=1e-7, atol=1e-9)
    rebuilt = net.weights + run.point_coefficients[-1] @ train.x
    np.testing.assert_allclose(rebuilt, W, rtol=1e-7, atol=1e-9)


def test_a_new_loss(train):
    net = start(train)
    run = fa.descend(net, train, learning_rate=0.01, steps=1, loss=Quartic())
    gradient = finite_differences(
        net, train, lambda n: ((n.score(train.x) - train.y) ** 4).mean() / 4
    )
    np.testing.assert_allclose(run.net.weights, net.weights - 0.01 * gradient, atol=1e-8)


@pytest.mark.parametrize(
    ("method", "returned", "message"),
    [
        ("center_directions", np.eye(3), "a matrix with a row for each of the 4"),
        ("draw_clusters", np.full(20, 7), "20 whole numbers from 0 to 3"),
        ("draw_clusters", np.zeros(19, int), r"got int64 of the shape \(19,\)"),
        ("draw_noise", np.zeros((20, 3)), r"asked for, \(20, 12\); got \(20, 3\)"),
    ],
)
def test_laws_that_draw_something_of_another_shape_are_refused(method, returned, message):
    law = type("Wrong", (fa.MultiCluster,), {method: lambda self, *arguments: returned})
    with pytest.raises(fa.InputError, match=f"^{method} of Wrong must .*{message}"):
        law(clusters=4, dim=12).sample(20, rng=np.random.default_rng(0))

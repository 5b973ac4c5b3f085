"""What the tests of every pair of seam and method share; see `tests/seams/test_matrix.py`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import featavg as fa
from featavg.estimators import AveragingClassifier, DecoupledClassifier, load
from featavg.estimators.heads import Head
from featavg.measures.distance import distance_to_averaging
from featavg.networks import reference

METHODS = (
    "train",
    "fast_forward",
    "exact_radii",
    "bracket",
    "attacks",
    "margins",
    "kkt",
    "distance",
    "theory",
    "to_torch",
    "save_load",
)


class SeamMatrix:
    """The tests of a seam, one for each method."""

    def test_every_method_is_there(self):
        assert {f"test_{method}" for method in METHODS} <= set(dir(self))


def sample_of(law, seed=0, size=40):
    return law.sample(size, rng=np.random.default_rng(seed))


def binary(train, seed=1, **options):
    rng = np.random.default_rng(seed)
    options = {"width": 3, "weight_scale": 0.05, "bias_scale": 0.05, **options}
    return fa.BinaryNet.init(train, rng=rng, **options)


def multi(train, seed=1, **options):
    options = {"width": 2, "weight_scale": 0.05, **options}
    return fa.MultiClassNet.init(train, rng=np.random.default_rng(seed), **options)


USUAL = sample_of(fa.MultiCluster(clusters=4, dim=30))
LEAKY = fa.LeakyReLU(0.3)


def fitted(net, train, **options):
    """Return a network that fits every point."""
    return fa.descend(net, train, learning_rate=0.05, steps=400, **options).net


def refused(match, function, *arguments, **options):
    with pytest.raises(fa.InputError, match=match) as error:
        function(*arguments, **options)
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "; got" in text


def check_radii(net, x, y, radii):
    """Exact radii: perturbations turn the decision, and nothing nearer does on random rays."""
    rng = np.random.default_rng(0)
    moved = net.predict(x + radii.perturbations * (1 + 1e-9))
    finite = np.isfinite(radii.upper) & (radii.upper > 0)
    assert finite.sum() >= len(y) // 2
    assert radii.exact.all()
    np.testing.assert_array_equal(moved[finite], -y[finite])
    norms = np.linalg.norm(radii.perturbations, axis=1)
    np.testing.assert_allclose(norms[finite], radii.upper[finite], rtol=1e-4)
    for _ in range(300):
        ray = rng.standard_normal(x.shape)
        ray *= (0.999 * radii.lower / np.linalg.norm(ray, axis=1))[:, None]
        inside = np.isfinite(radii.lower)
        same = net.predict(np.where(inside[:, None], x + ray, x)) == net.predict(x)
        assert same.all()


def check_saved(net, folder):
    """A saved network decides as before; how it was trained is not saved with it."""
    model = AveragingClassifier(random_state=0).fit(USUAL.x, USUAL.y)
    model.head_ = Head(net, model.head_.class_of)
    model.save(folder / "model.npz")
    again = load(folder / "model.npz")
    assert again.head_.net.activation == net.activation
    np.testing.assert_array_equal(again.head_.net.weights, net.weights)
    for name in ("decision_function", "predict_radius"):
        np.testing.assert_array_equal(getattr(again, name)(USUAL.x), getattr(model, name)(USUAL.x))


def check_saved_classes(net, class_of, folder):
    """A saved network of many classes has the same readout, decisions and radii."""
    model = DecoupledClassifier(1, random_state=0).fit(USUAL.x, USUAL.y)
    model.head_ = Head(net, class_of)
    del model.subclasses_  # those of the network that was replaced do not fit
    model.save(folder / "model.npz")
    again = load(folder / "model.npz")
    assert again.head_.net.readout == net.readout
    for name in ("decision_function", "predict", "predict_radius"):
        np.testing.assert_array_equal(getattr(again, name)(USUAL.x), getattr(model, name)(USUAL.x))


def descend_by_hand(net, train, rate, steps, loss_slope, activation_value, activation_slope):
    """Gradient descent on weights and biases, written out; `loss_slope` is dl/df."""
    W, b, a = net.weights.copy(), net.biases.copy(), net.second_layer[0]
    for _ in range(steps):
        Z = train.x @ W.T + b
        f = activation_value(Z) @ a
        pull = loss_slope(f)[:, None] * activation_slope(Z) * a / len(train)
        W, b = W - rate * pull.T @ train.x, b - rate * pull.sum(axis=0)
    return W, b


def check_stationarity(net, train, slopes):
    """The definition: theta - sum lambda y d f/d theta, at margins of at least 1."""
    found = fa.kkt_residual(net, train, kink=0)
    scale = (train.y * net.score(train.x)).min()
    gates = slopes * net.second_layer.T * train.y
    combined = (gates * found.multipliers) @ np.c_[train.x, np.ones(len(train))]
    theta = np.c_[net.weights, net.biases] / scale
    rest = np.linalg.norm(theta - combined) / np.linalg.norm(theta)
    assert found.stationarity == pytest.approx(rest, rel=1e-6)


def check_distance(net, train):
    """No multiple is nearer on many points of the sphere than the bounds say."""
    found = distance_to_averaging(net, train)
    rng = np.random.default_rng(0)
    spanned = np.vstack([net.weights, train.centers])
    rows = np.vstack([spanned, rng.standard_normal((5000, len(spanned))) @ spanned])
    x = np.vstack([rows, -rows]) / np.linalg.norm(np.vstack([rows, rows]), axis=1, keepdims=True)
    f, g = net.score(x), reference.averaging(train).score(x)
    multiples = np.linspace(0, 2, 400)[:, None] * np.abs(f).max() / np.abs(g).max()
    nearest = np.abs(f - multiples * g).max(axis=1).min()
    w = np.abs(net.second_layer.T) * net.weights
    sides = (w[net.neuron_signs == sign] for sign in (1, -1))
    largest = max(np.sqrt(np.maximum(v @ v.T, 0).sum()) for v in sides)  # at least that of |f|
    assert 0.1 < nearest / largest <= found.lower <= found.upper <= 1


def relu(z):
    return np.maximum(z, 0)


def step(z):
    return (z >= 0) * 1.0


def logistic_slope(train):
    return lambda f: -train.y * expit(-train.y * f)

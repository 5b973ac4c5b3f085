"""Every pair of seam and method: right for another object than the default, or refused.

A class for each of the five seams (law, activation, loss, rule, norm), one for labels and one for
readouts; a test for each method.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

import featavg as fa
from featavg.estimators import AveragingClassifier, DecoupledClassifier, load
from featavg.estimators.heads import Head
from featavg.measures.distance import distance_to_averaging, distance_to_decoupled
from featavg.networks import reference
from featavg.theory import ProofQuantities

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


class TestLaw:
    """Another law: unequal probabilities and norms, stretched noise, XOR, measured points."""

    unequal = sample_of(
        fa.MultiCluster(clusters=4, dim=30, probabilities=[4, 1, 2, 1], norms=[1, 2, 0.5, 1])
    )
    stretched = sample_of(
        fa.AnisotropicClusters(clusters=4, dim=30, spread=np.linspace(0.1, 2, 30))
    )
    xor = sample_of(fa.XorClusters(dim=200, noise=0.3))

    def test_train(self):
        for train in (self.unequal, self.stretched, self.xor):
            net = binary(train)
            run = fa.descend(net, train, learning_rate=0.01, steps=30)
            W, b = descend_by_hand(net, train, 0.01, 30, logistic_slope(train), relu, step)
            np.testing.assert_allclose(run.net.weights, W, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(run.net.biases, b, rtol=1e-9, atol=1e-12)
            # Lemma 5.1 with the norms of these centres and this noise
            mu, law = train.centers, train.law
            xi = (train.x - law.signal * mu[train.cluster]) / law.noise
            rebuilt = (
                net.weights
                + run.feature_coefficients[-1] @ (mu / np.square(mu).sum(1, keepdims=True))
                + run.noise_coefficients[-1] @ (xi / np.square(xi).sum(1, keepdims=True))
            )
            np.testing.assert_allclose(rebuilt, W, rtol=1e-8, atol=1e-10)

    def test_fast_forward(self):
        law = fa.XorClusters(dim=500, noise=0.3)
        train = law.sample(30, rng=np.random.default_rng(0), coordinates="span", reserve=6)
        net = binary(train)
        literal = fa.descend(net, train, learning_rate=1e-4, steps=2000, record=2)
        leaps = fa.fast_forward(
            net, train, learning_rate=1e-4, steps=2000, tolerance=1e-3, record=2
        )
        np.testing.assert_allclose(leaps.margins[-1], literal.margins[-1], rtol=0.02)
        for law in (self.stretched.law, fa.MeasuredLaw(4, 30)):
            with pytest.raises(fa.InputError, match=r"span coordinates need|cannot be drawn"):
                law.sample(10, rng=np.random.default_rng(0), coordinates="span")

    def test_exact_radii(self):
        for train in (self.stretched, self.xor):
            net = fitted(binary(train), train)
            check_radii(net, train.x, train.y, fa.exact_radii(net, train.x, train.y, jobs=1))

    def test_bracket(self):
        net = fitted(multi(self.stretched), self.stretched)
        x, y = self.stretched.x, self.stretched.y
        radii = fa.exact_radii(net, x, y, jobs=1)
        assert (radii.lower <= radii.upper).all()
        assert (net.predict(x + radii.perturbations)[radii.upper > 0] != y[radii.upper > 0]).all()

    def test_attacks(self):
        mu, signs = self.unequal.centers, self.unequal.law.signs
        direction = fa.averaged_direction(self.unequal)
        expected = signs @ mu
        np.testing.assert_allclose(direction, expected / np.linalg.norm(expected))
        with pytest.raises(fa.InputError, match="averaged direction is zero"):
            fa.averaged_direction(self.xor)

    def test_margins(self):
        net = binary(self.stretched)
        q = self.stretched.y * net.score(self.stretched.x)
        theta = np.sqrt(np.square(net.weights).sum() + np.square(net.biases).sum())
        assert fa.normalized_margin(net, self.stretched) == pytest.approx(q.min() / theta)

    def test_kkt(self):
        net = fitted(binary(self.xor), self.xor)
        check_stationarity(net, self.xor, step(net.preactivations(self.xor.x)))

    def test_distance(self):
        averages = reference.averaging(self.unequal)
        assert distance_to_averaging(averages, self.unequal).upper < 1e-9
        assert distance_to_averaging(averages, USUAL).lower > 0.1

    def test_theory(self):
        for train in (self.unequal, self.stretched, self.xor):
            run = fa.descend(binary(train), train, learning_rate=0.01, steps=2)
            refused("law of Definition 3.1", ProofQuantities, run)

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        net = binary(self.stretched)
        logits = net.to_torch()(torch.tensor(self.stretched.x)).detach().numpy()
        np.testing.assert_allclose(logits[:, 1], net.score(self.stretched.x))

    def test_save_load(self, tmp_path):
        model = AveragingClassifier(random_state=0).fit(self.stretched.x, self.stretched.y)
        model.save(tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        x = self.stretched.fresh(20, rng=np.random.default_rng(3)).x
        np.testing.assert_array_equal(again.predict_radius(x), model.predict_radius(x))


class TestActivation:
    """Other activations: leaky ReLU, powers of the ReLU, softplus."""

    def leaky(self, train=USUAL):
        return fitted(binary(train, activation=LEAKY), train)

    def test_train(self):
        for activation, value, slope in (
            (LEAKY, lambda z: np.where(z >= 0, z, 0.3 * z), lambda z: np.where(z >= 0, 1, 0.3)),
            (fa.Softplus(2.0), lambda z: np.log1p(np.exp(2 * z)) / 2, lambda z: expit(2 * z)),
            (fa.ReLUPower(2), lambda z: relu(z) ** 2, lambda z: 2 * relu(z)),
        ):
            net = binary(USUAL, activation=activation)
            run = fa.descend(net, USUAL, learning_rate=0.01, steps=20)
            W, b = descend_by_hand(net, USUAL, 0.01, 20, logistic_slope(USUAL), value, slope)
            np.testing.assert_allclose(run.net.weights, W, rtol=1e-8, atol=1e-11)
            np.testing.assert_allclose(run.net.biases, b, rtol=1e-8, atol=1e-11)
            plain = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=20)
            assert np.abs(plain.net.weights - W).max() > 1e-3

    def test_fast_forward(self):
        net = binary(USUAL, activation=LEAKY)
        literal = fa.descend(net, USUAL, learning_rate=1e-4, steps=3000, record=2)
        leaps = fa.fast_forward(
            net, USUAL, learning_rate=1e-4, steps=3000, tolerance=1e-3, record=2
        )
        np.testing.assert_allclose(leaps.margins[-1], literal.margins[-1], rtol=0.02)
        smooth = binary(USUAL, activation=fa.Softplus())
        refused("piecewise linear", fa.fast_forward, smooth, USUAL, learning_rate=1, steps=1)

    def test_exact_radii(self):
        net = self.leaky()
        test = USUAL.fresh(30, rng=np.random.default_rng(5))
        check_radii(net, test.x, test.y, fa.exact_radii(net, test.x, test.y, jobs=1))
        for other in (fa.Softplus(), fa.ReLUPower(2)):
            refused("piecewise linear", fa.exact_radii, binary(USUAL, activation=other), test.x,
                    test.y)  # fmt: skip
        many = fitted(multi(USUAL, readout="argmax", activation=LEAKY), USUAL)
        check_radii(many, test.x, test.y, fa.exact_radii(many, test.x, test.y, jobs=1))

    def test_exact_radius_of_one_leaky_neuron_by_hand(self):
        """f = leaky(x1) - leaky(x2) vanishes where x1 = x2, also left of the kinks."""
        net = fa.BinaryNet(np.eye(2), activation=LEAKY)
        radii = fa.exact_radii(net, [[3.0, 1.0], [-3.0, -1.0]], [1, -1], jobs=1)
        np.testing.assert_allclose(radii.upper, np.sqrt(2), rtol=1e-9)
        assert radii.exact.all()

    def test_bracket(self):
        net = multi(USUAL, activation=LEAKY)
        refused("got LeakyReLU", fa.exact_radii, net, USUAL.x, USUAL.y)
        refused("piecewise linear", fa.robust_curve, multi(USUAL, activation=fa.Softplus()),
                USUAL.x, USUAL.y, radii=[1.0], method="bracket")  # fmt: skip

    def test_attacks(self):
        rng = np.random.default_rng(0)
        for activation in (LEAKY, fa.Softplus(), fa.ReLUPower(2)):
            net = fitted(binary(USUAL, activation=activation), USUAL)
            found = fa.minimal_norm(net, USUAL.x, USUAL.y)
            flipped = net.predict(USUAL.x + found.perturbations) != USUAL.y
            assert flipped[np.isfinite(found.upper)].all()
            attack = fa.pgd(net, USUAL.x, USUAL.y, radius=100.0, rng=rng)
            flipped = net.predict(USUAL.x + attack.perturbations) != USUAL.y
            np.testing.assert_array_equal(flipped, attack.success)
        exact = fa.exact_radii(self.leaky(), USUAL.x, USUAL.y, jobs=1)
        attack = fa.minimal_norm(self.leaky(), USUAL.x, USUAL.y)
        assert (attack.upper >= exact.lower * (1 - 1e-9)).all()
        np.testing.assert_allclose(np.median(attack.upper), np.median(exact.upper), rtol=0.01)

    def test_margins(self):
        for activation, degree in ((LEAKY, 1), (fa.ReLUPower(3), 3)):
            net = binary(USUAL, activation=activation)
            q = USUAL.y * net.score(USUAL.x)
            theta = np.sqrt(np.square(net.weights).sum() + np.square(net.biases).sum())
            assert fa.normalized_margin(net, USUAL) == pytest.approx(q.min() / theta**degree)
        smooth = binary(USUAL, activation=fa.Softplus())
        refused("homogeneous", fa.normalized_margin, smooth, USUAL)
        refused("homogeneous", fa.smoothed_margin, smooth, USUAL)

    def test_margins_do_not_depend_on_the_scale_of_what_is_trained(self):
        net = binary(USUAL, activation=fa.ReLUPower(2, normalized=True), train_second_layer=True)
        twice = net.with_parameters(2 * net.weights, 2 * net.biases, 2 * net.second_layer[0])
        assert fa.normalized_margin(twice, USUAL) == pytest.approx(fa.normalized_margin(net, USUAL))

    def test_kkt(self):
        net = self.leaky()
        check_stationarity(net, USUAL, np.where(net.preactivations(USUAL.x) >= 0, 1, 0.3))
        smooth = binary(USUAL, activation=fa.Softplus())
        refused("piecewise linear", fa.kkt_residual, smooth, USUAL)

    def test_distance(self):
        power = fa.ReLUPower(2, normalized=True)
        net = fa.BinaryNet(
            USUAL.centers, second_layer=USUAL.law.signs, activation=power, train_biases=False
        )
        assert distance_to_decoupled(net, USUAL).upper < 1e-9
        for other in (LEAKY, fa.Softplus(), fa.ReLUPower(2)):
            refused("distance needs", distance_to_averaging, binary(USUAL, activation=other), USUAL)

    def test_theory(self):
        run = fa.descend(binary(USUAL, activation=LEAKY), USUAL, learning_rate=0.01, steps=2)
        refused("ReLUs and a fixed second layer", ProofQuantities, run)

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        for activation in (LEAKY, fa.Softplus(3.0), fa.ReLUPower(3, normalized=True)):
            net = multi(USUAL, activation=activation)
            outputs = net.to_torch("classes")(torch.tensor(USUAL.x)).detach().numpy()
            np.testing.assert_allclose(outputs.T, net.outputs(USUAL.x), rtol=1e-9)

        class Sine(fa.Activation):
            def value(self, z):
                return np.sin(z)

            def slope(self, z):
                return np.cos(z)

        refused("to_torch needs", binary(USUAL, activation=Sine()).to_torch)

    def test_save_load(self, tmp_path):
        check_saved(self.leaky(), tmp_path)
        model = AveragingClassifier(random_state=0).fit(USUAL.x, USUAL.y)
        net = model.head_.net

        class Sine(fa.Activation):
            def value(self, z):
                return np.sin(z)

            def slope(self, z):
                return np.cos(z)

        model.head_ = Head(fa.BinaryNet(net.weights, activation=Sine()), model.head_.class_of)
        refused("can be saved", model.save, tmp_path / "other.npz")


class TestLoss:
    """Other losses, and coarse labels on the outputs of clusters."""

    def test_train(self):
        y = USUAL.y
        for loss, slope in (
            (fa.Square(), lambda f: f - y),
            (fa.Exponential(), lambda f: -y * np.exp(-y * f)),
            (fa.Hinge(), lambda f: -y * (y * f < 1)),
            (fa.Logistic(smoothing=0.2), lambda f: expit(f) - (0.9 * (y > 0) + 0.1 * (y < 0))),
        ):
            net = binary(USUAL)
            run = fa.descend(net, USUAL, learning_rate=0.01, steps=20, loss=loss)
            W, _ = descend_by_hand(net, USUAL, 0.01, 20, slope, relu, step)
            np.testing.assert_allclose(run.net.weights, W, rtol=1e-8, atol=1e-11)
            assert run.loss_function == loss
        refused("one output", fa.descend, multi(USUAL), USUAL, learning_rate=1, steps=1,
                loss=fa.Logistic())  # fmt: skip
        for loss in (fa.CrossEntropy(), fa.CoarseCrossEntropy()):
            refused("output for each cluster", fa.descend, binary(USUAL), USUAL, learning_rate=1,
                    steps=1, loss=loss)  # fmt: skip

    def test_fast_forward(self):
        for net, loss in (
            (binary(USUAL), fa.Exponential()),
            (multi(USUAL), fa.CoarseCrossEntropy(fine=[0, 1, 2])),
        ):
            literal = fa.descend(net, USUAL, learning_rate=1e-4, steps=2000, record=2, loss=loss)
            leaps = fa.fast_forward(
                net, USUAL, learning_rate=1e-4, steps=2000, tolerance=1e-3, record=2, loss=loss
            )
            np.testing.assert_allclose(leaps.margins[-1], literal.margins[-1], rtol=0.02)
        for loss in (fa.Square(), fa.Hinge(), fa.Logistic(smoothing=0.1)):
            refused("needs a loss", fa.fast_forward, binary(USUAL), USUAL, learning_rate=1,
                    steps=1, loss=loss)  # fmt: skip

    def test_exact_radii(self):
        """The radius is that of the network, whatever it was trained by."""
        net = fitted(multi(USUAL, readout="argmax"), USUAL, loss=fa.CoarseCrossEntropy())
        check_radii(net, USUAL.x, USUAL.y, fa.exact_radii(net, USUAL.x, USUAL.y, jobs=1))

    def test_bracket(self):
        net = fitted(multi(USUAL), USUAL, loss=fa.CoarseCrossEntropy())
        radii = fa.exact_radii(net, USUAL.x, USUAL.y, jobs=1)
        moved = net.predict(USUAL.x + radii.perturbations)
        assert (moved != USUAL.y)[radii.upper > 0].all()
        assert (radii.lower <= radii.upper).all()

    def test_attacks(self):
        """The objective "cross-entropy" is the network's own, not the loss it was trained by."""
        net = fitted(binary(USUAL), USUAL, loss=fa.Square())
        results = [
            fa.pgd(net, USUAL.x, USUAL.y, radius=5.0, rng=np.random.default_rng(0), objective=o)
            for o in ("readout", "cross-entropy")
        ]
        # of one output both have the same direction
        np.testing.assert_array_equal(results[0].perturbations, results[1].perturbations)

    def test_margins(self):
        net = multi(USUAL)
        F, own = net.outputs(USUAL.x), USUAL.law.signs[:, None] == USUAL.y
        q = np.where(own, F, -np.inf).max(axis=0) - np.where(own, -np.inf, F).max(axis=0)
        theta = np.linalg.norm(net.weights)
        coarse = fa.CoarseCrossEntropy()
        assert fa.normalized_margin(net, USUAL, coarse) == pytest.approx(q.min() / theta)
        exponential = fa.smoothed_margin(binary(USUAL), USUAL, fa.Exponential())
        q, theta = USUAL.y * binary(USUAL).score(USUAL.x), binary(USUAL)
        norm = np.sqrt(np.square(theta.weights).sum() + np.square(theta.biases).sum())
        assert exponential == pytest.approx(-np.log(np.exp(-q).sum()) / norm)
        for loss in (fa.Square(), fa.Hinge(), fa.Logistic(smoothing=0.1)):
            refused("smoothed margin needs", fa.smoothed_margin, binary(USUAL), USUAL, loss)
        run = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=5, loss=fa.Square())
        refused("smoothed margin needs", fa.MarginHistory.of, run)

    def test_kkt(self):
        """The constraints are margins, whatever the network was trained by."""
        net = fitted(binary(USUAL), USUAL, loss=fa.Hinge())
        check_stationarity(net, USUAL, step(net.preactivations(USUAL.x)))
        assert "loss" not in inspect.signature(fa.kkt_residual).parameters

    def test_distance(self):
        check_distance(fitted(binary(USUAL, bias_scale=None), USUAL, loss=fa.Square()), USUAL)

    def test_theory(self):
        run = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=2, loss=fa.Square())
        refused("proofs need Logistic", ProofQuantities, run)

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        net = fitted(multi(USUAL), USUAL, loss=fa.CoarseCrossEntropy())
        outputs = net.to_torch("classes")(torch.tensor(USUAL.x)).detach().numpy()
        np.testing.assert_allclose(outputs.T, net.outputs(USUAL.x), rtol=1e-9, atol=1e-12)

    def test_save_load(self, tmp_path):
        check_saved(fitted(binary(USUAL), USUAL, loss=fa.Square()), tmp_path)


class TestRule:
    """Other rules: linear ones keep exact coefficients, others are trained on weights."""

    def test_train(self):
        net = binary(USUAL)
        W, b, V = net.weights.copy(), net.biases.copy(), 0.0
        U = 0.0
        for _ in range(15):
            Z = USUAL.x @ W.T + b
            f = relu(Z) @ net.second_layer[0]
            pull = logistic_slope(USUAL)(f)[:, None] * step(Z) * net.second_layer[0] / len(USUAL)
            V, U = 0.8 * V + pull.T @ USUAL.x, 0.8 * U + pull.sum(axis=0)
            W, b = W - 0.02 * V, b - 0.02 * U
        run = fa.descend(net, USUAL, learning_rate=0.02, steps=15, rule=fa.Momentum(0.8))
        np.testing.assert_allclose(run.net.weights, W, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(run.net.biases, b, rtol=1e-9, atol=1e-12)
        assert run.exact_coefficients
        signs = fa.descend(net, USUAL, learning_rate=0.02, steps=3, rule=fa.SignDescent())
        moved = signs.net.weights - net.weights
        np.testing.assert_allclose(np.abs(moved / 0.02).round(9) % 1, 0)
        assert not signs.exact_coefficients
        refused("linear rule", lambda: signs.noise_coefficients)

    def test_projected_coefficients_are_those_of_the_weights(self):
        net = binary(USUAL)
        run = fa.descend(net, USUAL, learning_rate=0.02, steps=30, rule=fa.Adam())
        moved = run.net.weights - net.weights
        products = moved @ USUAL.centers.T  # centres are orthogonal here
        np.testing.assert_allclose(run.feature_coefficients[-1], products, rtol=1e-8, atol=1e-9)
        assert "Adam" in repr(run)

    def test_fast_forward(self):
        assert "rule" not in inspect.signature(fa.fast_forward).parameters

    def test_span_coordinates(self):
        law = fa.MultiCluster(clusters=3, dim=400)
        train = law.sample(20, rng=np.random.default_rng(0), coordinates="span", reserve=6)
        net = binary(train)
        for rule in (fa.Adam(), fa.SignDescent()):
            refused("commutes with rotations", fa.descend, net, train, learning_rate=0.01,
                    steps=1, rule=rule)  # fmt: skip
        run = fa.descend(net, train, learning_rate=0.01, steps=5, rule=fa.SAM(0.1))
        turn = np.linalg.qr(np.random.default_rng(1).standard_normal((train.x.shape[1],) * 2))[0]
        turned = fa.Sample.from_points(train.x @ turn, train.cluster, positive=2)
        start = net.with_parameters(net.weights @ turn, net.biases)
        other = fa.descend(start, turned, learning_rate=0.01, steps=5, rule=fa.SAM(0.1))
        np.testing.assert_allclose(other.net.weights, run.net.weights @ turn, atol=1e-9)

    def test_exact_radii(self):
        net = fitted(binary(USUAL), USUAL, rule=fa.SAM(0.05))
        check_radii(net, USUAL.x, USUAL.y, fa.exact_radii(net, USUAL.x, USUAL.y, jobs=1))

    def test_bracket(self):
        net = fa.descend(multi(USUAL), USUAL, learning_rate=0.01, steps=50, rule=fa.Adam()).net
        radii = fa.exact_radii(net, USUAL.x, USUAL.y, jobs=1)
        assert (radii.lower <= radii.upper).all()
        moved = net.predict(USUAL.x + radii.perturbations)
        assert (moved != USUAL.y)[radii.upper > 0].all()

    def test_attacks(self):
        net = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=50, rule=fa.Adam()).net
        attack = fa.minimal_norm(net, USUAL.x, USUAL.y)
        exact = fa.exact_radii(net, USUAL.x, USUAL.y, jobs=1)
        assert (attack.upper >= exact.lower * (1 - 1e-9)).all()

    def test_margins(self):
        run = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=30, rule=fa.Adam())
        history = fa.MarginHistory.of(run)
        assert history.normalized[-1] == pytest.approx(fa.normalized_margin(run.net, USUAL))
        assert history.smoothed[-1] == pytest.approx(fa.smoothed_margin(run.net, USUAL))

    def test_kkt(self):
        net = fitted(binary(USUAL), USUAL, rule=fa.WeightDecay(1e-3))
        check_stationarity(net, USUAL, step(net.preactivations(USUAL.x)))

    def test_distance(self):
        start = binary(USUAL, bias_scale=None)
        run = fa.descend(start, USUAL, learning_rate=0.01, steps=50, rule=fa.Adam())
        check_distance(run.net, USUAL)

    def test_theory(self):
        for rule in (fa.Momentum(), fa.SGD(10), fa.WeightDecay()):
            run = fa.descend(
                binary(USUAL),
                USUAL,
                learning_rate=0.01,
                steps=2,
                rule=rule,
                rng=np.random.default_rng(0),
            )
            refused("proofs need gradient descent", ProofQuantities, run)

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        net = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=5, rule=fa.Adam()).net
        logits = net.to_torch()(torch.tensor(USUAL.x)).detach().numpy()
        np.testing.assert_allclose(logits[:, 1], net.score(USUAL.x), rtol=1e-9, atol=1e-12)

    def test_save_load(self, tmp_path):
        check_saved(fitted(binary(USUAL), USUAL, rule=fa.SAM(0.05)), tmp_path)


class TestNorm:
    """A norm is refused by every method that does not know it, and results say theirs."""

    net = fa.BinaryNet(np.eye(2))
    x, y = np.array([[3.0, 1.0]]), np.array([1])

    class Stretched(fa.L2):
        def length(self, u):
            return 10 * super().length(u)

    def test_train(self):
        assert "norm" not in inspect.signature(fa.descend).parameters

    def test_fast_forward(self):
        assert "norm" not in inspect.signature(fa.fast_forward).parameters

    def test_exact_radii(self):
        assert fa.exact_radii(self.net, self.x, self.y, norm="L2").norm == "l2"
        assert fa.exact_radii(self.net, self.x, self.y, norm="LInf").norm == "linf"
        for norm in ("l1", 2, None, self.Stretched()):
            refused("'l2' or 'linf'", fa.exact_radii, self.net, self.x, self.y, norm=norm)

    def test_bracket(self):
        many = fa.MultiClassNet(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), classes=3)
        assert fa.exact_radii(many, self.x, self.y).norm == "l2"
        refused("norms other than 'l2'", fa.exact_radii, many, self.x, self.y, norm="linf")
        two = fa.MultiClassNet(np.eye(2), classes=2)  # the likelier class has the larger output
        assert fa.exact_radii(two, self.x, self.y, norm="linf").upper[0] == pytest.approx(1.0)

    def test_attacks(self):
        rng = np.random.default_rng(0)
        along = {"radius": 1.0, "direction": [1.0, -1.0]}
        assert fa.pgd(self.net, self.x, self.y, radius=1.0, rng=rng).norm == "l2"
        assert fa.direction_attack(self.net, self.x, self.y, **along).norm == "l2"
        assert fa.minimal_norm(self.net, self.x, self.y).norm == "l2"
        refused("for pgd", fa.pgd, self.net, self.x, self.y, radius=1.0, rng=rng, norm="linf")
        refused("norm must be", fa.direction_attack, self.net, self.x, self.y, **along, norm="l1")
        refused("norm must be", fa.minimal_norm, self.net, self.x, self.y, norm="linf")
        for method in ("exact", "minimal-norm", "pgd", "direction"):
            refused("norm must be", fa.robust_curve, self.net, self.x, self.y, radii=[1.0],
                    method=method, rng=rng, direction=[1.0, -1.0], norm="linf")  # fmt: skip
        curve = fa.robust_curve(self.net, self.x, self.y, radii=[1.0])
        assert curve.norm == fa.worst(curve, curve).norm == "l2"

    def test_margins(self):
        """The normalised margin is defined by the L2 norm of what is trained."""
        assert "norm" not in inspect.signature(fa.normalized_margin).parameters

    def test_kkt(self):
        assert "norm" not in inspect.signature(fa.kkt_residual).parameters

    def test_distance(self):
        assert "norm" not in inspect.signature(distance_to_averaging).parameters

    def test_theory(self):
        assert "norm" not in inspect.signature(ProofQuantities).parameters

    def test_to_torch(self):
        assert "norm" not in inspect.signature(fa.BinaryNet.to_torch).parameters

    def test_save_load(self):
        assert "norm" not in inspect.signature(load).parameters


class TestLabels:
    """Fine labels that clusters share."""

    train = sample_of(fa.MultiCluster(clusters=5, dim=30)).grouped("1,2|2")

    def net(self, readout="argmax", **options):
        return fitted(multi(self.train, readout=readout), self.train, **options)

    def test_train(self):
        """As on points whose clusters are the groups; with all losses in test_grouping."""
        plain = fa.Sample.from_points(self.train.x, self.train.labels, positive=2)
        start = multi(self.train)
        for rule in (fa.GradientDescent(), fa.Adam(), fa.SAM(0.1)):
            first, second = (
                fa.descend(start, s, learning_rate=0.01, steps=20, rule=rule).net
                for s in (self.train, plain)
            )
            np.testing.assert_allclose(first.weights, second.weights, rtol=1e-8, atol=1e-11)

    def test_fast_forward(self):
        net = multi(self.train)
        options = {"learning_rate": 1e-4, "steps": 2000, "record": 2}
        literal = fa.descend(net, self.train, **options)
        leaps = fa.fast_forward(net, self.train, **options, tolerance=1e-3)
        np.testing.assert_allclose(leaps.margins[-1], literal.margins[-1], rtol=0.02)

    def test_exact_radii(self):
        net, x, y = self.net(), self.train.x, self.train.y
        check_radii(net, x, y, fa.exact_radii(net, x, y, jobs=1))

    def test_bracket(self):
        net, x, y = self.net("probability"), self.train.x, self.train.y
        radii = fa.exact_radii(net, x, y, jobs=1)
        assert (radii.lower <= radii.upper).all()
        assert (net.predict(x + radii.perturbations)[radii.upper > 0] != y[radii.upper > 0]).all()

    def test_attacks(self):
        net, x, y = self.net(), self.train.x, self.train.y
        attack = fa.pgd(net, x, y, radius=9.0, rng=np.random.default_rng(0),
                        objective="cross-entropy", fine_labels=self.train.labels)  # fmt: skip
        flipped = net.predict(x + attack.perturbations) != y
        np.testing.assert_array_equal(flipped, attack.success)

    def test_margins(self):
        net = multi(self.train)
        f, own = net.logits(self.train.x), self.train.labels
        points = np.arange(len(own))
        q = f[points, own] - np.where(np.eye(3)[own], -np.inf, f).max(axis=1)
        expected = q.min() / np.linalg.norm(net.weights)
        assert fa.normalized_margin(net, self.train) == pytest.approx(expected)

    def test_kkt(self):
        net = self.net()
        found = fa.kkt_residual(net, self.train)
        plain = fa.Sample.from_points(self.train.x, self.train.labels, positive=2)
        assert found.stationarity == pytest.approx(fa.kkt_residual(net, plain).stationarity)

    def test_distance(self):
        """The averaging network has one output, whatever the fine labels are."""
        averages = reference.averaging(self.train)
        assert distance_to_averaging(averages, self.train).upper < 1e-9

    def test_theory(self):
        run = fa.descend(multi(self.train), self.train, learning_rate=0.01, steps=2)
        refused("fine label for each cluster", ProofQuantities, run)

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        net = self.net()
        logits = net.to_torch("classes")(torch.tensor(self.train.x)).detach().numpy()
        np.testing.assert_allclose(logits, net.logits(self.train.x))

    def test_save_load(self, tmp_path):
        check_saved_classes(self.net(), np.array([1, 1, 0]), tmp_path)


class TestReadout:
    """The readout "logit-sum", which is that of a `BinaryNet`."""

    net = fitted(multi(USUAL, readout="logit-sum"), USUAL)
    x, y = USUAL.x, USUAL.y

    def test_train(self):
        """Training is by the outputs of the classes, whatever the readout."""
        other = fitted(multi(USUAL), USUAL)
        np.testing.assert_array_equal(self.net.weights, other.weights)

    def test_fast_forward(self):
        options = {"learning_rate": 1e-3, "steps": 500, "record": 2}
        runs = [fa.fast_forward(multi(USUAL, readout=r), USUAL, **options)
                for r in ("logit-sum", "argmax")]  # fmt: skip
        np.testing.assert_array_equal(runs[0].net.weights, runs[1].net.weights)
        assert runs[0].net.readout == "logit-sum"

    def test_exact_radii(self):
        radii = fa.exact_radii(self.net, self.x, self.y, jobs=1)
        check_radii(self.net, self.x, self.y, radii)
        twin = fa.exact_radii(self.net.to_binary(), self.x, self.y, jobs=1)
        np.testing.assert_allclose(radii.upper, twin.upper, rtol=1e-9)
        argmax = fa.exact_radii(self.net.with_readout("argmax"), self.x, self.y, jobs=1)
        assert np.abs(argmax.upper - radii.upper).max() > 0.1
        assert radii.verify(self.net, self.x).holds
        assert fa.exact_radii(self.net, self.x[:2], self.y[:2], norm="linf").norm == "linf"

    def test_bracket(self):
        """There is nothing between the bounds: they are those of the search."""
        curves = [fa.robust_curve(self.net, self.x, self.y, radii=[1.0, 3.0], method=m)
                  for m in ("exact", "bracket", "auto")]  # fmt: skip
        for curve in curves:
            np.testing.assert_allclose(curve.broken_at, curves[0].broken_at)
            np.testing.assert_allclose(curve.safe_until, curve.broken_at, rtol=1e-5)

    def test_attacks(self):
        exact = fa.exact_radii(self.net, self.x, self.y, jobs=1)
        attack = fa.minimal_norm(self.net, self.x, self.y)
        assert (attack.upper >= exact.lower * (1 - 1e-9)).all()
        np.testing.assert_allclose(np.median(attack.upper), np.median(exact.upper), rtol=0.01)
        found = fa.pgd(self.net, self.x, self.y, radius=8.0, rng=np.random.default_rng(0))
        flipped = self.net.predict(self.x + found.perturbations) != self.y
        np.testing.assert_array_equal(flipped, found.success)

    def test_margins(self):
        """Margins are of the classes: the readout takes no part."""
        other = self.net.with_readout("argmax")
        assert fa.normalized_margin(self.net, USUAL) == fa.normalized_margin(other, USUAL)

    def test_kkt(self):
        other = self.net.with_readout("argmax")
        found, same = (fa.kkt_residual(net, USUAL).stationarity for net in (self.net, other))
        assert found == same

    def test_distance(self):
        """A distance is of a network of one output, so of the `BinaryNet` that it is."""
        refused("one output", distance_to_averaging, self.net, USUAL)
        assert distance_to_averaging(self.net.to_binary(), USUAL).lower > 0.1

    def test_theory(self):
        """The proofs are about the weights; what decides is set by the ledger."""
        run = fa.descend(self.net, USUAL, learning_rate=0.01, steps=2)
        assert ProofQuantities(run).width == 2

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        logits = self.net.to_torch()(torch.tensor(self.x)).detach().numpy()
        np.testing.assert_allclose(logits[:, 1], self.net.score(self.x))

    def test_save_load(self, tmp_path):
        check_saved_classes(self.net, np.array([1, 1, 0, 0]), tmp_path)


@pytest.mark.parametrize(
    "seam", [TestLaw, TestActivation, TestLoss, TestRule, TestNorm, TestLabels, TestReadout]
)
def test_every_method_is_there(seam):
    assert {f"test_{method}" for method in METHODS} <= set(dir(seam))


def test_a_result_names_its_objects():
    run = fa.descend(binary(USUAL), USUAL, learning_rate=0.1, steps=1, rule=fa.SAM(0.1))
    named = SimpleNamespace(rule=run.rule, loss=run.loss_function, law=run.sample.law)
    assert named == SimpleNamespace(rule=fa.SAM(0.1), loss=fa.Logistic(), law=USUAL.law)

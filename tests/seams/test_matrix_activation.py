"""Every method with other activations than the default: right, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import featavg as fa
from featavg.estimators import AveragingClassifier
from featavg.estimators.heads import Head
from featavg.measures.distance import distance_to_averaging, distance_to_decoupled
from featavg.theory import ProofQuantities
from support.seam_matrix import (
    LEAKY,
    USUAL,
    SeamMatrix,
    binary,
    check_radii,
    check_saved,
    check_stationarity,
    descend_by_hand,
    fitted,
    logistic_slope,
    multi,
    refused,
    relu,
)


class TestActivation(SeamMatrix):
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

"""Every method with other rules than the default: right, or refused."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import featavg as fa
from featavg.theory import ProofQuantities
from support.seam_matrix import (
    USUAL,
    SeamMatrix,
    binary,
    check_distance,
    check_radii,
    check_saved,
    check_stationarity,
    fitted,
    logistic_slope,
    multi,
    refused,
    relu,
    step,
)


class TestRule(SeamMatrix):
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
        start = fa.BinaryNet(net.weights @ turn, net.biases)  # in coordinates of its own
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

"""Every method with other laws than the default: right, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.estimators import AveragingClassifier, load
from featavg.measures.distance import distance_to_averaging
from featavg.networks import reference
from featavg.theory import ProofQuantities
from support.seam_matrix import (
    USUAL,
    SeamMatrix,
    binary,
    check_radii,
    check_stationarity,
    descend_by_hand,
    fitted,
    logistic_slope,
    multi,
    refused,
    relu,
    sample_of,
    step,
)


class TestLaw(SeamMatrix):
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

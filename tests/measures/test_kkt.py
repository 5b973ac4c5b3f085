from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

import featavg as fa
from featavg.measures.kkt import _project
from support.zoo import small_training


def without_noise(dim=98):
    """Two clusters on each side, and the KKT point worked out by hand.

    With the gate g on the other side, w = own - g·other and b = 2 (1 - g): there the
    pre-activation is 2 (1 - g) - g d = 0 for g = 2 / (d + 2).
    """
    law = fa.MultiCluster(clusters=4, dim=dim, noise=0)
    train = law.sample(40, rng=np.random.default_rng(0))
    own = np.array([train.centers[:2].sum(axis=0), train.centers[2:].sum(axis=0)])
    gate = 2 / (dim + 2)
    return train, fa.BinaryNet(own - gate * own[::-1], [2 * (1 - gate)] * 2), own


def test_the_kkt_point_worked_out_by_hand():
    train, net, own = without_noise()
    kkt = fa.kkt_residual(net, train, accuracy=1e-10)
    assert kkt.stationarity < 1e-4
    assert abs(kkt.complementarity) < 1e-10
    assert kkt.free == 40
    assert kkt.pattern_margin == pytest.approx(fa.normalized_margin(net, train))
    # Σ λ = ||θ||² at a KKT point, and each cluster has the same share, q = d + 2 - 2 g
    lam = kkt.multipliers[0]
    share = [lam[train.cluster == j].sum() for j in range(4)]
    np.testing.assert_allclose(share, 1 / (100 - 0.04), rtol=1e-4)
    # without the bias: γ² = 24.5 of the 24.99 that could be had
    assert fa.kkt_residual(fa.BinaryNet(own), train).gap == pytest.approx(1 - 24.5 / 24.99)


def test_without_free_gates_a_network_that_slides_looks_further_away():
    train, net, _ = without_noise()
    off = fa.BinaryNet(net.weights, net.biases - 1e-9)  # silent on the other side, just
    # with those gates shut, w = own and b = 2 would be best: the distance is g of the norm
    assert fa.kkt_residual(off, train, kink=0).stationarity == pytest.approx(0.02, rel=1e-3)
    assert fa.kkt_residual(off, train, accuracy=1e-8).stationarity < 1e-3


@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_residual_does_not_depend_on_scale_and_grows_with_a_perturbation(kind, rng):
    net, train = small_training(kind)
    net = fa.fast_forward(net, train, learning_rate=1e-6, steps=10**200, tolerance=0.5).net
    kkt = fa.kkt_residual(net, train)
    assert kkt.gap < 0.02
    assert kkt.accuracy < 2e-5
    scaled = net.with_parameters(1e-3 * net.weights, 1e-3 * net.biases)
    assert fa.kkt_residual(scaled, train).gap == pytest.approx(kkt.gap, rel=1e-3)
    noise = rng.standard_normal(net.weights.shape)
    noise *= 0.3 * np.linalg.norm(net.weights) / np.linalg.norm(noise)
    assert fa.kkt_residual(net.with_parameters(net.weights + noise, net.biases), train).gap > 0.05


@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_residual_falls_and_both_conditions_are_true_of_the_multipliers(kind):
    net, train = small_training(kind)
    run = fa.fast_forward(
        net, train, learning_rate=1e-6, steps=10**86, tolerance=0.2, record=[10**8, 10**20, 10**50]
    )
    found = [fa.kkt_residual(run.net_at(i), train) for i in range(1, 5)]
    for name in ("gap", "stationarity", "complementarity"):
        values = np.array([getattr(kkt, name) for kkt in found])
        assert (np.diff(values) < 0).all()
        assert values[-1] < 0.3 * values[0]
    # gap = 1 - (γ / largest γ)², up to what kinks that are not exactly at 0 make of it
    gamma = fa.normalized_margin(run.net, train)
    assert found[-1].gap == pytest.approx(1 - (gamma / found[-1].pattern_margin) ** 2, abs=1e-4)


def test_projection_is_the_nearest_point(rng):
    for _ in range(20):
        lam, mu = rng.standard_normal((2, 3)), rng.standard_normal((2, 4, 3))
        free = rng.random(mu.shape) < 0.6
        near, gates = _project(lam, mu, free)
        assert (near >= 0).all()
        assert ((gates >= 0) & (gates <= near[:, None])).all()
        assert not gates[~free].any()

        def distance(at, lam=lam, mu=mu, free=free):
            best = np.where(free, np.clip(mu, 0, at[:, None]) - mu, 0)
            return (at - lam) ** 2 + (best**2).sum(axis=1)

        for other in np.linspace(0, 4, 200):
            assert (distance(near) <= distance(np.full_like(lam, other)) + 1e-12).all()


def test_both_conditions_in_the_primal():
    """The gradients written out, point by point, where no gate is free."""
    net, train = small_training("binary")
    net = fa.fast_forward(net, train, learning_rate=1e-6, steps=10**40, tolerance=0.2).net
    kkt = fa.kkt_residual(net, train, kink=0)
    q = train.y * net.score(train.x)
    X = np.column_stack([train.x, np.ones(60)])
    on = net.preactivations(train.x) >= 0
    h = np.einsum("r,i,ri,id->ird", net.second_layer[0], train.y, on, X)
    hat = np.column_stack([net.weights, net.biases]) / q.min()
    lam, norm = kkt.multipliers[0], np.linalg.norm(hat)
    rest = np.linalg.norm(hat - np.einsum("i,ird->rd", lam, h)) / norm
    assert kkt.stationarity == pytest.approx(rest)
    assert kkt.complementarity == pytest.approx(lam @ (q / q.min() - 1) / norm**2)
    # no other multipliers do better: the same minimum by non-negative least squares,
    # min ½||Σ λ h||² - Σ λ, through a Cholesky factor of the Gram matrix of the gradients
    H = np.einsum("ird,jrd->ij", h, h)
    L = np.linalg.cholesky(H)
    best, _ = nnls(L.T, np.linalg.solve(L, np.ones(60)))
    assert lam.sum() - lam @ H @ lam / 2 == pytest.approx(best.sum() / 2, rel=1e-5)
    assert lam.sum() - lam @ H @ lam / 2 <= best.sum() / 2 * (1 + 1e-12)

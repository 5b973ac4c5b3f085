from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

import featavg as fa
from support.zoo import small_training


def theta(net):
    return np.concatenate([net.weights.ravel(), net.biases])


@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_margins_are_what_the_formulas_say(kind):
    net, train = small_training(kind)
    net = fa.descend(net, train, learning_rate=1e-3, steps=3000).net
    rho = np.linalg.norm(theta(net))
    if kind == "binary":
        q = soft = train.y * net.score(train.x)
    else:
        f = net.logits(train.x)
        ahead = np.array(
            [np.delete(row - row[j], j) for row, j in zip(f, train.cluster, strict=True)]
        )
        q, soft = -ahead.max(axis=1), -np.log(np.exp(ahead).sum(axis=1))
    loss = np.log(1 + np.exp(-soft)).sum()
    assert fa.normalized_margin(net, train) == pytest.approx(q.min() / rho)
    assert fa.smoothed_margin(net, train) == pytest.approx(-np.log(np.exp(loss) - 1) / rho)


def test_inverse_of_the_loss_at_every_size():
    q = np.array([-1e5, -800.0, -60.0, -3.0, 0.0, 5.0, 39.9, 40.1])
    loss = np.logaddexp(0, -q)
    np.testing.assert_allclose(fa.Logistic().margin_of(np.log(loss)), q, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(fa.Logistic().margin_of(np.array([-1e3, -1e6])), [1e3, 1e6])


@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_smoothed_margin_lies_below_the_margin_and_meets_it(kind):
    net, train = small_training(kind)
    run = fa.fast_forward(net, train, learning_rate=1e-3, steps=10**520, tolerance=0.5)
    history = fa.MarginHistory.of(run)
    assert history.log_loss[-1] < -500 * np.log(10)
    late = history.log_loss < np.log(np.log(2))
    count = 60 if kind == "binary" else 60 * 3
    q, rho = run.margins.min(axis=1)[late], history.norm[late]
    lowest = fa.Logistic().margin_of(np.log(count) + np.log(np.logaddexp(0, -np.minimum(q, 40))))
    lowest = np.where(q > 40, q - np.log(count), lowest) / rho
    gamma, smoothed = history.normalized[late], history.smoothed[late]
    assert (smoothed <= gamma * (1 + 1e-12)).all()
    assert (smoothed >= lowest * (1 - 1e-12)).all()
    assert 0 < gamma[-1] - smoothed[-1] < np.log(count) / rho[-1]
    for index in (-1, -20):
        at = run.net_at(index)
        assert fa.normalized_margin(at, train) == pytest.approx(history.normalized[index])
        assert fa.smoothed_margin(at, train) == pytest.approx(history.smoothed[index])
    rates = history.rates()
    assert rates.loss == pytest.approx(-1, abs=0.01)
    assert rates.norm == pytest.approx(1 / gamma[-1], rel=0.02)
    assert rates.norm_deviation < 0.01


@pytest.mark.parametrize("kind", ["binary", "multi"])
@pytest.mark.parametrize("learning_rate", [0.01, 0.1, 1.0])
def test_smoothed_margin_does_not_fall_in_any_step_of_gradient_descent(kind, learning_rate):
    net, train = small_training(kind)
    run = fa.descend(net, train, learning_rate=learning_rate, steps=400, record=range(401))
    history = fa.MarginHistory.of(run)
    assert history.fitted < 200
    assert history.largest_decrease == 0


@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_smoothed_margin_does_not_fall_at_losses_of_1e_100(kind):
    net, train = small_training(kind)
    for tolerance in (0.4, 0.1):  # about as many recorded times as steps at the coarser one
        run = fa.fast_forward(
            net, train, learning_rate=1e-6, steps=10**106, tolerance=tolerance, record=500
        )
        history = fa.MarginHistory.of(run)
        assert history.log_loss[-1] < -100 * np.log(10) + np.log(60)
        assert history.largest_decrease == 0


def test_a_fall_is_noticed_and_the_error_shrinks_with_the_tolerance():
    net, train = small_training("binary")
    curves = []
    for tolerance in (0.4, 0.1, 0.02):
        run = fa.fast_forward(
            net, train, learning_rate=1e-6, steps=10**46, tolerance=tolerance, record=200
        )
        history = fa.MarginHistory.of(run)
        assert history.largest_decrease == 0
        curves.append(history.smoothed[80:])
    coarse, fine = (np.abs(curve / curves[-1] - 1).max() for curve in curves[:-1])
    assert fine < 0.5 * coarse
    worse = replace(history, smoothed=np.append(history.smoothed[:-1], 0.9 * curves[-1][-2]))
    assert worse.largest_decrease == pytest.approx(0.1)
    early = np.where(np.arange(200) < history.fitted, 1.0 - np.arange(200), 1.0)
    assert replace(history, smoothed=early).largest_decrease == 0  # before the fit nothing counts


def test_two_sides_that_do_not_see_each_other_become_two_support_vector_machines():
    rng = np.random.default_rng(3)
    law = fa.MultiCluster(clusters=2, dim=50, cosine=-1, noise=0.3)
    train = law.sample(30, rng=rng)
    net = fa.BinaryNet.init(train, width=1, weight_scale=1e-6, bias_scale=1e-6, rng=rng)
    run = fa.fast_forward(net, train, learning_rate=1e-4, steps=10**1000, tolerance=0.5, record=9)
    best = []
    for row, sign in enumerate((1, -1)):
        x = train.x[train.y == sign]
        G = np.column_stack([x, np.ones(len(x))])
        # Lawson and Hanson: the shortest v with G v >= 1, by non-negative least squares
        E = np.vstack([G.T, np.ones(len(x))])
        target = np.append(np.zeros(len(E) - 1), 1)
        rest = E @ nnls(E, target)[0] - target
        best.append(-rest[:-1] / rest[-1])
        found = np.append(run.net.weights[row], run.net.biases[row])
        cosine = found @ best[-1] / np.linalg.norm(found) / np.linalg.norm(best[-1])
        assert cosine == pytest.approx(1, abs=1e-4)
    largest = 1 / np.linalg.norm(best)
    assert fa.normalized_margin(run.net, train) == pytest.approx(largest, rel=5e-3)
    kkt = fa.kkt_residual(run.net, train, accuracy=1e-8)
    assert kkt.pattern_margin == pytest.approx(largest, rel=1e-6)
    exact = fa.BinaryNet([best[0][:-1], best[1][:-1]], [best[0][-1], best[1][-1]])
    assert fa.kkt_residual(exact, train, accuracy=1e-8).gap == pytest.approx(0, abs=1e-7)


class Ten(fa.Logistic):
    """Ten times the logistic loss, which inherits the inverse of the loss."""

    def losses(self, outputs, targets):
        return 10 * super().losses(outputs, targets)

    def residuals(self, outputs, targets):
        return 10 * super().residuals(outputs, targets)

    def log_losses(self, outputs, targets):
        return np.log(10) + super().log_losses(outputs, targets)

    def log_pulls(self, outputs, targets):
        return np.log(10) + super().log_pulls(outputs, targets)


class TenWithInverse(Ten):
    """The same, with its own inverse."""

    def margin_of(self, log_loss):
        return super().margin_of(log_loss - np.log(10))


def test_a_loss_whose_margins_are_those_of_its_parent_is_refused():
    net, train = small_training("binary")
    run = fa.descend(net, train, learning_rate=1e-3, steps=5, loss=Ten())
    sentence = "^margin_of must return the margin whose loss .*; got Ten.*[.]$"
    with pytest.raises(fa.InputError, match=sentence):
        fa.smoothed_margin(net, train, Ten())
    with pytest.raises(fa.InputError, match=sentence):
        fa.MarginHistory.of(run)
    # the sum of ten times the losses is ten times the sum, so the margin is the same
    found = fa.smoothed_margin(run.net, train, TenWithInverse())
    assert found == pytest.approx(fa.smoothed_margin(run.net, train))
    with pytest.raises(fa.InputError, match="loss must be a Loss, such as Logistic"):
        fa.smoothed_margin(net, train, "logistic")


def test_bad_input_is_refused():
    net, train = small_training("binary")
    with pytest.raises(fa.InputError, match="a KKT point must fit every point"):
        fa.kkt_residual(net, train)
    with pytest.raises(fa.InputError, match="kink must be at least 0"):
        fa.kkt_residual(net, train, kink=-1)
    with pytest.raises(fa.InputError, match="same coordinates"):
        fa.normalized_margin(fa.BinaryNet(np.ones((2, 3))), train)
    history = fa.MarginHistory.of(fa.descend(net, train, learning_rate=1e-3, steps=5))
    assert "not fitted" in repr(history)
    with pytest.raises(fa.InputError, match="rates need at least 3 recorded times"):
        history.rates()
    with pytest.raises(fa.InputError, match="share must be above 0"):
        history.rates(share=0)

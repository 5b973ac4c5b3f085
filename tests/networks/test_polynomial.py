"""The network of polynomial neurons with a trainable second layer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featavg as fa
from support.zoo import check_perturbations, polynomial, random_polynomial


def relative_error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def problem(power, train_second_layer, seed, *, scale=0.1, size=40, width=3):
    """Return a network and points of norm about 1, where all powers learn at a similar pace."""
    rng = np.random.default_rng(seed)
    dim = 60
    law = fa.MultiCluster(clusters=4, dim=dim, signal=dim**-0.5, noise=0.3 * dim**-0.5)
    train = law.sample(size, rng=rng)
    return initial(train, width, scale, rng, power, train_second_layer), train


def initial(train, width, scale, rng, power, train_second_layer=True):
    return fa.BinaryNet.init(
        train,
        width=width,
        weight_scale=scale,
        bias_scale=None,
        rng=rng,
        activation=fa.ReLUPower(power, normalized=True),
        train_second_layer=train_second_layer,
    )


def imbalances(net):
    """Return what gradient flow conserves, a² - ‖w‖²."""
    return np.square(net.second_layer[0]) - np.square(net.norms)


@pytest.mark.vision
@settings(max_examples=20, deadline=None)
@given(st.sampled_from([1, 2, 3]), st.booleans(), st.integers(0, 10**6))
def test_gradient_descent_is_that_of_autograd(power, train_second_layer, seed):
    from support import autograd

    net, train = problem(power, train_second_layer, seed)
    expected = autograd.train(net, train, 0.5, 200)
    weights, outer = expected.weights, expected.second_layer
    assert relative_error(weights, net.weights) > 0.01  # it has really moved
    for method in ("dual", "primal"):
        run = fa.descend(net, train, learning_rate=0.5, steps=200, method=method)
        assert relative_error(run.net.weights, weights) < 1e-5
        assert relative_error(run.net.second_layer[0], outer) < 1e-5
        assert run.loss[-1] == pytest.approx(expected.loss, rel=1e-5)
        # Lemma 5.1 with what is left of the start, written out
        mu, law = train.centers, train.law
        xi = (train.x - law.signal * mu[train.cluster]) / law.noise
        rebuilt = (
            run.snapshots[-1].initial_share[:, None] * net.weights
            + run.feature_coefficients[-1] @ (mu / (mu**2).sum(axis=1, keepdims=True))
            + run.noise_coefficients[-1] @ (xi / (xi**2).sum(axis=1, keepdims=True))
        )
        assert relative_error(rebuilt, weights) < 1e-5
        left = np.array([snapshot.initial_share for snapshot in run.snapshots])
        np.testing.assert_allclose(left, 1) if power == 1 else None
        assert power == 1 or not np.allclose(left, 1)


@pytest.mark.vision
def test_many_steps_from_a_tiny_start_are_those_of_autograd():
    from support import autograd

    net, train = problem(3, True, 5, scale=1e-4)
    expected = autograd.train(net, train, 1.0, 3000)
    weights, outer = expected.weights, expected.second_layer
    run = fa.descend(net, train, learning_rate=1.0, steps=3000)
    assert np.abs(outer).max() > 1000 * np.abs(net.second_layer[0]).max()
    assert relative_error(run.net.weights, weights) < 1e-5
    assert relative_error(run.net.second_layer[0], outer) < 1e-5
    # the norms that the state has carried along are those of the weights
    np.testing.assert_allclose(run.net_at(-1).norms, np.linalg.norm(weights, axis=1), rtol=1e-6)


@pytest.mark.vision
def test_span_coordinates_are_as_good_as_any():
    from support import autograd

    dim = 400
    law = fa.MultiCluster(clusters=4, dim=dim, signal=dim**-0.5, noise=0.3 * dim**-0.5)
    rng = np.random.default_rng(0)
    train = law.sample(30, rng=rng, coordinates="span", reserve=8)
    net = initial(train, 4, 0.02, rng, 2)
    expected = autograd.train(net, train, 0.5, 200)
    weights, outer = expected.weights, expected.second_layer
    run = fa.descend(net, train, learning_rate=0.5, steps=200)
    assert relative_error(run.net.weights, weights) < 1e-5
    assert relative_error(run.net.second_layer[0], outer) < 1e-5


def test_power_1_with_a_fixed_second_layer_is_the_papers_network(small_train, rng):
    """A bias is the weight of a coordinate that is always 1."""
    binary = fa.BinaryNet.init(small_train, width=3, weight_scale=0.1, bias_scale=0.1, rng=rng)
    ones = np.ones((len(small_train), 1))
    longer = fa.Sample(
        small_train.law,
        np.hstack([small_train.centers, np.zeros((5, 1))]),
        np.hstack([small_train.x, ones]),
        small_train.y,
        small_train.cluster,
        small_train.noise_norms,
    )
    weights = np.hstack([binary.weights, binary.biases[:, None]])
    net = polynomial(weights, binary.second_layer[0], train_second_layer=False)
    first = fa.descend(binary, small_train, learning_rate=0.02, steps=150)
    second = fa.descend(net, longer, learning_rate=0.02, steps=150)
    np.testing.assert_allclose(second.net.weights[:, :-1], first.net.weights, rtol=1e-9)
    np.testing.assert_allclose(second.net.weights[:, -1], first.net.biases, rtol=1e-9)
    np.testing.assert_allclose(second.margins, first.margins, rtol=1e-9, atol=1e-12)
    far = fa.fast_forward(net, longer, learning_rate=1e-4, steps=1e4)
    there = fa.fast_forward(binary, small_train, learning_rate=1e-4, steps=1e4)
    np.testing.assert_allclose(far.margins, there.margins, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("power", [1, 2, 3])
def test_balancedness_drifts_in_proportion_to_the_learning_rate(power):
    net, train = problem(power, True, 1)
    np.testing.assert_allclose(imbalances(net), 0, atol=1e-15)
    drifts = []
    for eta in (0.2, 0.02, 0.002):
        end = fa.descend(net, train, learning_rate=eta, steps=round(40 / eta), record=2).net
        drifts.append(np.abs(imbalances(end)).max() / np.square(end.second_layer[0]).max())
    assert drifts[0] > 8 * drifts[1] > 64 * drifts[2] > 0
    assert drifts[2] < 1e-3


def test_one_step_by_hand():
    """One neuron, one point: w = (3, 4), x = (1, 0), p = 2, a = 5, y = 1, eta = 1.

    z = 3, h = 9/5 = 1.8, f = 9, R = sigmoid(-9). Then a gains R·1.8, and w gains
    a·R·(2·3/5·x - 9/125·w) = R·(6 - 1.08, -1.44).
    """
    law = fa.MultiCluster(clusters=2, dim=2, signal=2**-0.5, noise=0)
    train = fa.Sample(law, np.sqrt(2) * np.eye(2), [[1.0, 0.0]], [1], [0], [0.0])
    net = polynomial([[3.0, 4.0]], [5.0], power=2)
    assert net.score(train.x)[0] == pytest.approx(9)
    R = 1 / (1 + np.exp(9))
    end = fa.descend(net, train, learning_rate=1.0, steps=1).net
    np.testing.assert_allclose(end.second_layer[0], [5 + 1.8 * R])
    np.testing.assert_allclose(end.weights, [[3 + 4.92 * R, 4 - 1.44 * R]])
    # balanced to first order in R, as by gradient flow
    assert imbalances(end)[0] == pytest.approx(0, abs=40 * R**2)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_homogeneity(seed, a, c):
    """Of degree 1 in each layer and p in the point."""
    rng = np.random.default_rng(seed)
    net = random_polynomial(rng)
    x = rng.standard_normal((5, net.dim))
    score = net.score(x)
    kwargs = {"rtol": 1e-9, "atol": 1e-12 * a * c**net.activation.power}
    heavier = polynomial(a * net.weights, net.second_layer[0], net.activation.power)
    np.testing.assert_allclose(heavier.score(x), a * score, **kwargs)
    np.testing.assert_allclose(
        polynomial(net.weights, a * net.second_layer[0], net.activation.power).score(x),
        a * score,
        **kwargs,
    )
    np.testing.assert_allclose(net.score(c * x), c**net.activation.power * score, **kwargs)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_gradients_of_the_view_are_finite_differences(power, rng):
    from featavg.robustness.view import AttackView

    net = random_polynomial(rng, power)
    x, y = rng.standard_normal((6, net.dim)), np.array([1, -1] * 3)
    for scaled in (False, True):
        view = AttackView.of(net, x, y, scaled=scaled)
        u = 0.3 * rng.standard_normal((view.span.weights.shape[1], 6))
        _, gradient = view.margin_and_gradient(u)
        for i in range(len(u)):
            step = 1e-6 * np.eye(len(u))[i][:, None]
            slope = (view.margin(u + step) - view.margin(u - step)) / 2e-6
            np.testing.assert_allclose(gradient[i], slope, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_attacks_turn_decisions_and_never_beat_the_exact_radius(seed):
    rng = np.random.default_rng(seed)
    net = random_polynomial(rng)
    x = rng.standard_normal((8, net.dim))
    y = net.predict(x)
    found = fa.minimal_norm(net, x, y, steps=60)
    check_perturbations(net, x, y, found, thin_sets=True)
    radius = 1.0
    attack = fa.pgd(net, x, y, radius=radius, rng=rng)
    moved = net.predict(x + attack.perturbations)
    thin = np.abs(net.score(x + attack.perturbations)) < 1e-12
    assert (moved != y)[attack.success & ~thin].all()
    assert (np.linalg.norm(attack.perturbations, axis=1) <= radius * (1 + 1e-9)).all()
    # the same perturbation that a minimal-norm attack found is seen by every curve
    curve = fa.robust_curve(net, x, y, radii=[0.1, radius, 10.0], method="minimal-norm")
    assert (np.diff(curve.accuracy) <= 0).all()
    if net.activation.power == 1:
        exact = fa.exact_radii(net, x, y, jobs=1)
        check_perturbations(net, x, y, exact, thin_sets=True)
        assert exact.exact.all()
        assert (found.upper >= exact.upper * (1 - 1e-6)).all()
        assert not (attack.success & (exact.lower > radius * (1 + 1e-6))).any()


def test_the_boundary_between_two_powers_by_hand():
    """f = x1^p - x2^p for positive x: the boundary is x1 = x2, whatever p is."""
    for power in (1, 2, 3):
        net = polynomial(np.eye(2), [1.0, -1.0], power)
        radii = fa.minimal_norm(net, [[3.0, 1.0], [2.0, 4.0]], [1, -1])
        np.testing.assert_allclose(radii.upper, np.sqrt(2), rtol=1e-6)


def test_weights_of_zero_say_nothing_and_stay():
    """A neuron without a weight has no gradient, and without a second layer neither has w."""
    net, train = problem(3, True, 0)
    weights = np.array(net.weights)
    weights[0] = 0
    dead = polynomial(weights, np.where(np.arange(6) == 0, 0.0, net.second_layer[0]), 3)
    run = fa.descend(dead, train, learning_rate=0.5, steps=50)
    assert run.net.norms[0] == 0
    assert run.net.second_layer[0][0] == 0
    assert np.isfinite(run.net.score(train.x)).all()
    assert fa.minimal_norm(run.net, train.x, train.y).upper.min() >= 0


def test_bad_input_is_refused(small_train):
    weights, outer = np.ones((2, 40)), np.array([1.0, -1.0])
    for power in (0, 1.5, True):
        with pytest.raises(fa.InputError, match="power must be"):
            polynomial(weights, outer, power)
    with pytest.raises(fa.InputError, match="second_layer"):
        polynomial(weights, [1.0, -1.0, 1.0])
    with pytest.raises(fa.InputError, match="train_second_layer must be True or False; got 'no'"):
        polynomial(weights, outer, 1, "no")
    net = polynomial(weights, outer, 2)
    with pytest.raises(fa.InputError, match="needs a piecewise linear activation; got ReLUPower"):
        fa.exact_radii(net, small_train.x, small_train.y)
    for method in ("auto", "exact", "bracket"):
        with pytest.raises(fa.InputError, match="needs a piecewise linear activation"):
            fa.robust_curve(net, small_train.x, small_train.y, radii=[1.0], method=method)
    with pytest.raises(fa.InputError, match="fast_forward needs a piecewise linear activation"):
        fa.fast_forward(net, small_train, learning_rate=1e-3, steps=10)

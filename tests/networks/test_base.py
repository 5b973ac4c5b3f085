from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import featavg as fa


def test_residuals_are_minus_the_derivative_of_the_loss(binary, multi, rng):
    for net, outputs, target in [
        (binary, 1, np.array([-1])),
        (binary, 1, np.array([1])),
        (multi, 5, np.array([3])),
    ]:
        f = rng.standard_normal(outputs)

        def loss(f, net=net, target=target):
            return net.default_loss.losses(f[:, None], target)[0]

        np.testing.assert_allclose(
            net.default_loss.residuals(f[:, None], target)[:, 0], -approx_fprime(f, loss), atol=1e-6
        )


def test_decision_gradient_is_the_derivative_of_the_decision(binary, multi, rng):
    for net, outputs in [(binary, 1), (multi, 5)]:
        f = rng.standard_normal(outputs)
        numeric = approx_fprime(f, lambda f, net=net: net.decision(f[:, None])[0])
        np.testing.assert_allclose(net.decision_gradient(f[:, None])[:, 0], numeric, atol=1e-6)


def test_residual_direction_is_that_of_the_residuals(binary, multi, rng):
    for net, outputs, targets in (
        (binary, rng.standard_normal((1, 9)), rng.choice([-1, 1], 9)),
        (multi, rng.standard_normal((5, 9)), rng.integers(5, size=9)),
    ):
        residuals = net.default_loss.residuals(outputs, targets)
        direction = net.default_loss.directions(outputs, targets)
        factor = np.linalg.norm(residuals, axis=0) / np.linalg.norm(direction, axis=0)
        np.testing.assert_allclose(direction * factor, residuals)


def test_networks_and_samples_do_not_change_with_the_arrays_they_were_made_from(small_train):
    W, b, x = np.ones((2, 2)), np.ones(2), small_train.x.copy()
    net = fa.BinaryNet(W, b)
    W[0, 0] = b[0] = 7
    assert net.weights[0, 0] == net.biases[0] == 1
    sample = fa.Sample(
        small_train.law,
        small_train.centers,
        x,
        small_train.y,
        small_train.cluster,
        small_train.noise_norms,
    )
    x[0] = 0
    np.testing.assert_array_equal(sample.x, small_train.x)


def test_initial_weights_have_the_asked_for_scales(small_train):
    rng = np.random.default_rng(0)
    net = fa.BinaryNet.init(small_train, width=500, weight_scale=0.1, bias_scale=3.0, rng=rng)
    assert net.weights.shape == (1000, 40)
    assert net.weights.std() == pytest.approx(0.1, rel=0.02)
    assert net.biases.std() == pytest.approx(3.0, rel=0.1)
    multi = fa.MultiClassNet.init(small_train, width=200, weight_scale=0.1, rng=rng)
    assert multi.weights.shape == (1000, 40)
    assert multi.positive == (0, 3, 4)
    assert multi.weights.std() == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fa.BinaryNet(np.ones((3, 2))), "even number of rows.*got 3"),
        (lambda: fa.BinaryNet(np.ones((2, 2)), [1.0]), "one entry for each of the 2 neurons"),
        (lambda: fa.BinaryNet([[1.0, np.inf], [0, 0]]), r"weights must be finite; got inf"),
        (lambda: fa.BinaryNet([[1j, 1], [1, 1]]), "weights must hold real numbers"),
        (lambda: fa.BinaryNet([[1, 1], [1]]), "weights must hold real numbers"),
        (lambda: fa.BinaryNet(np.ones((2, 1)), ["a", "b"]), "biases must hold real numbers"),
        (lambda: fa.BinaryNet(np.ones(4)), r"weights must be a matrix .* shape \(4,\)"),
        (lambda: fa.MultiClassNet(np.ones((5, 2)), classes=2), "same number of rows"),
        (lambda: fa.MultiClassNet(np.ones((4, 2)), classes=4, positive=4), "on each side"),
        (lambda: fa.MultiClassNet(np.ones((4, 2)), 4, readout="max"), "readout must be one of"),
        (lambda: fa.BinaryNet(np.ones((2, 2))).score(np.ones((3, 5))), "x must have 2 columns"),
        (lambda: fa.BinaryNet(np.ones((2, 2))).score([["a", "b"]]), "x must hold real numbers"),
        (lambda: fa.BinaryNet(np.ones((2, 2))).score([[np.nan, 1]]), "x must be finite; got nan"),
    ],
)
def test_bad_networks_and_points_are_refused(make, message):
    with pytest.raises(fa.InputError, match=message):
        make()


def test_bad_initialisations_are_refused(small_train, rng):
    for width in (0, -1, 1.5, True):
        with pytest.raises(fa.InputError, match="width must be a whole number of at least 1"):
            fa.BinaryNet.init(small_train, width=width, weight_scale=1.0, bias_scale=1.0, rng=rng)
    with pytest.raises(fa.InputError, match="weight_scale must be at least 0"):
        fa.MultiClassNet.init(small_train, width=1, weight_scale=-1.0, rng=rng)

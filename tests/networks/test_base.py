from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import softmax

import featavg as fa
from featavg.networks import reference


def relu(z):
    return np.maximum(z, 0)


@pytest.fixture
def binary(rng):
    return fa.BinaryNet(rng.standard_normal((6, 4)), rng.standard_normal(6))


@pytest.fixture(params=["probability", "argmax"])
def multi(request, rng):
    return fa.MultiClassNet(
        rng.standard_normal((10, 4)), classes=5, positive=[1, 4], readout=request.param
    )


def test_binary_score_is_the_formula_of_section_3_2(binary, rng):
    x = rng.standard_normal((7, 4))
    W, b = binary.weights, binary.biases
    expected = [
        sum(relu(W[r] @ p + b[r]) for r in range(3)) / 3
        - sum(relu(W[r] @ p + b[r]) for r in range(3, 6)) / 3
        for p in x
    ]
    np.testing.assert_allclose(binary.score(x), expected)


def test_multiclass_logits_and_readouts_are_the_formulas_of_section_4_2(multi, rng):
    x = rng.standard_normal((7, 4))
    logits = np.array(
        [[relu(multi.weights[2 * j : 2 * j + 2] @ p).mean() for j in range(5)] for p in x]
    )
    np.testing.assert_allclose(multi.logits(x), logits)
    p = softmax(logits, axis=1)
    np.testing.assert_allclose(multi.probabilities(x), p)
    if multi.readout == "probability":
        expected = p[:, [1, 4]].sum(axis=1) - p[:, [0, 2, 3]].sum(axis=1)
    else:
        expected = logits[:, [1, 4]].max(axis=1) - logits[:, [0, 2, 3]].max(axis=1)
    np.testing.assert_allclose(multi.score(x), expected, atol=1e-14)
    np.testing.assert_array_equal(multi.predict(x), np.where(expected > 0, 1, -1))


def test_a_score_of_zero_is_the_decision_minus_one():
    silent = fa.BinaryNet([[1.0], [2.0]])
    np.testing.assert_array_equal(silent.score([[-1.0]]), [0.0])
    np.testing.assert_array_equal(silent.predict([[-1.0]]), [-1])


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_probability_readout_at_every_scale(factor):
    net = fa.MultiClassNet(factor * np.eye(4), classes=4, positive=2)
    points = [[2.0, 0, 1, 0], [1.0, 0, 2, 0]]
    np.testing.assert_array_equal(net.predict(points), [1, -1])
    assert np.isfinite(net.score(points)).all()


def test_residuals_are_minus_the_derivative_of_the_loss(binary, multi, rng):
    for net, outputs, target in [
        (binary, 1, np.array([-1])),
        (binary, 1, np.array([1])),
        (multi, 5, np.array([3])),
    ]:
        f = rng.standard_normal(outputs)

        def loss(f, net=net, target=target):
            return net.losses(f[:, None], target)[0]

        np.testing.assert_allclose(
            net.residuals(f[:, None], target)[:, 0], -approx_fprime(f, loss), atol=1e-6
        )


def test_decision_gradient_is_the_derivative_of_the_decision(binary, multi, rng):
    for net, outputs in [(binary, 1), (multi, 5)]:
        f = rng.standard_normal(outputs)
        numeric = approx_fprime(f, lambda f, net=net: net.decision(f[:, None])[0])
        np.testing.assert_allclose(net.decision_gradient(f[:, None])[:, 0], numeric, atol=1e-6)


def test_small_losses_keep_their_digits():
    """At a gap g between two classes the loss is log(1 + e^-g), however small."""
    net = fa.MultiClassNet(np.eye(2), classes=2, positive=1)
    for dtype, gaps in ((np.float64, [5.0, 37.0, 700.0]), (np.float32, [5.0, 20.0, 80.0])):
        outputs = np.array([gaps, [0.0] * 3], dtype=dtype)
        targets = np.zeros(3, dtype=np.int64)
        exact = np.log1p(np.exp(-np.array(gaps)))
        np.testing.assert_allclose(net.losses(outputs, targets), exact, rtol=1e-5)
        residuals = net.residuals(outputs, targets)
        np.testing.assert_allclose(residuals[0], 1 / (1 + np.exp(gaps)), rtol=1e-5)
        np.testing.assert_allclose(residuals[0], -residuals[1])
        # wrongly classified: the loss is the gap
        wrong = net.losses(outputs, targets + 1)
        np.testing.assert_allclose(wrong, np.array(gaps) + exact, rtol=1e-5)


def test_residual_direction_is_that_of_the_residuals(binary, multi, rng):
    for net, outputs, targets in (
        (binary, rng.standard_normal((1, 9)), rng.choice([-1, 1], 9)),
        (multi, rng.standard_normal((5, 9)), rng.integers(5, size=9)),
    ):
        residuals = net.residuals(outputs, targets)
        direction = net.residual_direction(outputs, targets)
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


def test_margins_are_positive_exactly_where_the_label_wins(multi, rng):
    f = rng.standard_normal((5, 50))
    targets = rng.integers(5, size=50)
    np.testing.assert_array_equal(multi.margins(f, targets) > 0, f.argmax(axis=0) == targets)


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


def test_reference_networks_are_the_paper_formulas(small_train):
    mu, x, d = small_train.centers, small_train.x, 40
    plus, minus = [0, 3, 4], [1, 2]
    mu_plus, mu_minus = mu[plus].mean(axis=0), mu[minus].mean(axis=0)
    np.testing.assert_allclose(  # Definition 4.1
        reference.averaging(small_train).score(x),
        3 * relu(x @ mu_plus) - 2 * relu(x @ mu_minus),
    )
    np.testing.assert_allclose(  # Appendix D.1
        reference.averaging(small_train, positive_bias=2.0, negative_bias=-5.0).score(x),
        relu(x @ mu[plus].sum(axis=0) + 2) - relu(x @ mu[minus].sum(axis=0) - 5),
    )
    np.testing.assert_allclose(  # Theorem D.3, up to a positive factor
        3 * reference.decoupled(small_train).score(x),
        relu(x @ mu[plus].T - d / 2).sum(axis=1) - relu(x @ mu[minus].T - d / 2).sum(axis=1),
    )
    sums = np.where(np.isin(np.arange(5), plus)[:, None], mu[plus].sum(0), mu[minus].sum(0))
    np.testing.assert_allclose(  # Proposition 4.8
        reference.averaging_multiclass(small_train).logits(x), relu(x @ (mu + sums).T)
    )


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


@pytest.mark.parametrize("method", ["dual", "primal"])
def test_biases_of_many_classes_are_weights_of_a_constant_coordinate(method):
    rng = np.random.default_rng(0)
    x, cluster = rng.standard_normal((30, 5)), np.arange(30) % 3
    W, b = rng.standard_normal((6, 5)), rng.standard_normal(6)
    train = fa.Sample.of_points(x, cluster)
    longer = fa.Sample.of_points(np.column_stack([x, np.ones(30)]), cluster)
    with_biases = fa.MultiClassNet(W, classes=3, biases=b)
    without = fa.MultiClassNet(np.column_stack([W, b]), classes=3)
    settings = {"learning_rate": 0.1, "steps": 50, "method": method}
    net = fa.descend(with_biases, train, **settings).net
    other = fa.descend(without, longer, **settings).net
    assert net.weights == pytest.approx(other.weights[:, :-1])
    assert net.biases == pytest.approx(other.weights[:, -1])
    assert net.with_readout("argmax").score(x) == pytest.approx(
        other.with_readout("argmax").score(longer.x)
    )

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import featavg as fa
from support.literal import relu


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
        of = np.max if multi.readout == "argmax" else np.sum
        expected = of(logits[:, [1, 4]], axis=1) - of(logits[:, [0, 2, 3]], axis=1)
    np.testing.assert_allclose(multi.score(x), expected, atol=1e-14)
    np.testing.assert_array_equal(multi.predict(x), np.where(expected > 0, 1, -1))


def test_the_difference_of_log_sum_exps_decides_as_the_probabilities_do(rng):
    """p_+ - p_- = tanh((lse_+ - lse_-)/2), so it is no readout of its own."""
    net = fa.MultiClassNet(rng.standard_normal((10, 4)), classes=5, positive=[1, 4])
    f = net.logits(rng.standard_normal((200, 4)))
    p = softmax(f, axis=1)
    difference = logsumexp(f[:, [1, 4]], axis=1) - logsumexp(f[:, [0, 2, 3]], axis=1)
    sums = p[:, [1, 4]].sum(axis=1) - p[:, [0, 2, 3]].sum(axis=1)
    np.testing.assert_allclose(np.tanh(difference / 2), sums, atol=1e-14)
    np.testing.assert_allclose(net.decision(f.T), difference, atol=1e-14)


def test_summed_logits_are_a_binary_network(rng):
    activation = fa.LeakyReLU(0.2)
    net = fa.MultiClassNet(
        rng.standard_normal((10, 4)), 5, [1, 4], "logit-sum", rng.standard_normal(10),
        activation=activation,
    )  # fmt: skip
    x = rng.standard_normal((50, 4))
    binary = net.to_binary()
    np.testing.assert_allclose(binary.score(x), net.score(x))
    np.testing.assert_array_equal(binary.neuron_signs, net.neuron_signs)
    assert binary.activation == activation
    assert binary.has_biases
    with pytest.raises(
        fa.InputError, match="only with the readout 'logit-sum'; got the readout 'a"
    ):
        net.with_readout("argmax").to_binary()


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_probability_readout_at_every_scale(factor):
    net = fa.MultiClassNet(factor * np.eye(4), classes=4, positive=2)
    points = [[2.0, 0, 1, 0], [1.0, 0, 2, 0]]
    np.testing.assert_array_equal(net.predict(points), [1, -1])
    assert np.isfinite(net.score(points)).all()


def test_small_losses_keep_their_digits():
    """At a gap g between two classes the loss is log(1 + e^-g), however small."""
    loss = fa.CrossEntropy()
    for dtype, gaps in ((np.float64, [5.0, 37.0, 700.0]), (np.float32, [5.0, 20.0, 80.0])):
        outputs = np.array([gaps, [0.0] * 3], dtype=dtype)
        targets = np.zeros(3, dtype=np.int64)
        exact = np.log1p(np.exp(-np.array(gaps)))
        np.testing.assert_allclose(loss.losses(outputs, targets), exact, rtol=1e-5)
        residuals = loss.residuals(outputs, targets)
        np.testing.assert_allclose(residuals[0], 1 / (1 + np.exp(gaps)), rtol=1e-5)
        np.testing.assert_allclose(residuals[0], -residuals[1])
        # wrongly classified: the loss is the gap
        wrong = loss.losses(outputs, targets + 1)
        np.testing.assert_allclose(wrong, np.array(gaps) + exact, rtol=1e-5)


def test_margins_are_positive_exactly_where_the_label_wins(multi, rng):
    f = rng.standard_normal((5, 50))
    targets = rng.integers(5, size=50)
    np.testing.assert_array_equal(
        multi.default_loss.margins(f, targets) > 0, f.argmax(axis=0) == targets
    )


@pytest.mark.parametrize("method", ["dual", "primal"])
def test_biases_of_many_classes_are_weights_of_a_constant_coordinate(method):
    rng = np.random.default_rng(0)
    x, cluster = rng.standard_normal((30, 5)), np.arange(30) % 3
    W, b = rng.standard_normal((6, 5)), rng.standard_normal(6)
    train = fa.Sample.from_points(x, cluster)
    longer = fa.Sample.from_points(np.column_stack([x, np.ones(30)]), cluster)
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

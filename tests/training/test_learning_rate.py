from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from support.zoo import small_training


def test_at_the_stable_rate_the_loss_never_rises_while_no_activation_changes(rng):
    """Positive points and weights: every neuron sees every point, and the outputs are linear."""
    x = np.abs(rng.standard_normal((40, 8))) + 1
    sample = fa.Sample.from_points(x, np.arange(40) % 4)
    for net in (fa.BinaryNet(np.ones((6, 8))), fa.MultiClassNet(np.ones((8, 8)), 4)):
        rate = fa.stable_learning_rate(net, sample)
        trained = fa.descend(net, sample, learning_rate=rate, steps=300, record=range(301))
        assert trained.active.all()
        assert (np.diff(trained.log_loss) <= 0).all()


def test_the_stable_rate_against_the_gram_matrix(measured, rng):
    x, cluster = measured
    sample = fa.Sample.from_points(x, cluster)
    gram = np.linalg.eigvalsh(x @ x.T)[-1] / 12
    net = fa.MultiClassNet.init(sample, width=2, weight_scale=1, rng=rng)
    assert fa.stable_learning_rate(net, sample) == pytest.approx(2 * 2 / gram)
    with_biases = np.linalg.eigvalsh(x @ x.T + 1)[-1] / 12
    net = fa.BinaryNet.init(sample, width=3, weight_scale=1, bias_scale=1, rng=rng)
    assert fa.stable_learning_rate(net, sample) == pytest.approx(2 * 3 / with_biases)
    nothing = fa.Sample.from_points(np.zeros((4, 2)), [0, 1, 0, 1])
    net = fa.MultiClassNet(np.ones((2, 2)), 2)
    with pytest.raises(InputError, match="a point that is not zero"):
        fa.stable_learning_rate(net, nothing)
    with pytest.raises(InputError, match="net must be a network, such as a BinaryNet; got 'net'"):
        fa.stable_learning_rate("net", nothing)


def test_a_loss_whose_curvature_is_that_of_its_parent_is_refused():
    class Ten(fa.Logistic):
        """Ten times the logistic loss, which inherits its curvature."""

        def losses(self, outputs, targets):
            return 10 * super().losses(outputs, targets)

        def residuals(self, outputs, targets):
            return 10 * super().residuals(outputs, targets)

        def log_losses(self, outputs, targets):
            return np.log(10) + super().log_losses(outputs, targets)

        def log_pulls(self, outputs, targets):
            return np.log(10) + super().log_pulls(outputs, targets)

    class TenWithCurvature(Ten):
        curvature = 2.5

    net, train = small_training("binary")
    sentence = r"^curvature must be at least .* 2\.5 is above 0\.25; got .*Ten\(smoothing=0\.0\)\.$"
    with pytest.raises(InputError, match=sentence):
        fa.stable_learning_rate(net, train, Ten())
    weighted = fa.Weighted(fa.Logistic(), np.full(len(train), 10.0))
    expected = fa.stable_learning_rate(net, train, weighted)
    assert fa.stable_learning_rate(net, train, TenWithCurvature()) == pytest.approx(expected)
    assert fa.stable_learning_rate(net, train) == pytest.approx(10 * expected)
    with pytest.raises(InputError, match="loss must be a Loss, such as Logistic"):
        fa.stable_learning_rate(net, train, "logistic")

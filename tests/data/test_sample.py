"""Samples of measured points, and the learning rate for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from featavg.data.law import UnknownLaw
from featavg.experiments import embedded, figure2_embeddings

# -- samples of measured points --------------------------------------------------------------------


@pytest.fixture
def measured(rng):
    """Correlated centres of unequal norms, more clusters on one side, clusters of unequal size."""
    cluster = np.array([0, 2, 1, 2, 2, 0, 3, 1, 2, 3, 0, 3])
    centers = rng.standard_normal((4, 6)) * [[1], [2], [3], [4]] + 5
    return centers[cluster] + rng.standard_normal((12, 6)), cluster


def test_a_sample_of_points_has_class_means_and_residuals(measured):
    x, cluster = measured
    sample = fa.Sample.of_points(x, cluster, positive=[1, 2, 3])
    for j in range(4):
        np.testing.assert_allclose(sample.centers[j], x[cluster == j].mean(axis=0))
    np.testing.assert_allclose(
        sample.noise_norms,
        [np.linalg.norm(p - sample.centers[j]) for p, j in zip(x, cluster, strict=True)],
    )
    np.testing.assert_array_equal(sample.y, np.where(cluster == 0, -1, 1))
    assert isinstance(sample.law, UnknownLaw)
    assert (sample.law.signal, sample.law.noise) == (1, 1)
    assert np.isnan(sample.law.cosine)
    assert repr(sample) == "Sample(12 points, 4 clusters, 6 coordinates, float64)"


def test_lemma_5_1_holds_for_measured_points(measured, rng):
    """w = w(0) + Σ λ μ/|μ|² + Σ σ ξ/|ξ|², though centres are correlated and of unequal norms."""
    x, cluster = measured
    sample = fa.Sample.of_points(x, cluster)
    for net in (
        fa.BinaryNet.init(sample, width=3, weight_scale=1e-3, bias_scale=1e-3, rng=rng),
        fa.MultiClassNet.init(sample, width=2, weight_scale=1e-3, rng=rng),
    ):
        rate = fa.stable_learning_rate(net, sample)
        trained = fa.descend(net, sample, learning_rate=rate, steps=40)
        mu = sample.centers / np.square(sample.centers).sum(axis=1, keepdims=True)
        xi = (x - sample.centers[cluster]) / np.square(sample.noise_norms)[:, None]
        rebuilt = (
            net.weights
            + trained.feature_coefficients[-1] @ mu
            + trained.noise_coefficients[-1] @ xi
        )
        np.testing.assert_allclose(trained.net.weights, rebuilt, atol=1e-10)


def test_points_held_back_share_the_centres(measured):
    x, cluster = measured
    train = fa.Sample.of_points(x, cluster)
    test = fa.Sample.of_points(x[:2] + 1, cluster[:2], centers=train.centers)
    np.testing.assert_array_equal(test.centers, train.centers)
    np.testing.assert_allclose(
        test.noise_norms, np.linalg.norm(x[:2] + 1 - train.centers[cluster[:2]], axis=1)
    )


def test_single_precision_and_more_clusters_than_dimensions(rng):
    x = rng.standard_normal((30, 2)).astype(np.float32)
    sample = fa.Sample.of_points(x, np.arange(30) % 5)
    assert sample.x.dtype == sample.centers.dtype == sample.noise_norms.dtype == np.float32
    assert sample.law.positive_clusters == (0, 1, 2)


def test_what_cannot_be_a_sample_is_refused(measured, rng):
    x, cluster = measured
    with pytest.raises(InputError, match="got no point in cluster 1"):
        fa.Sample.of_points(x[:3], [0, 2, 2])
    with pytest.raises(InputError, match="cluster must hold whole numbers from 0 to 3"):
        fa.Sample.of_points(x, cluster + 1, centers=np.ones((4, 6)))
    with pytest.raises(InputError, match="cluster must hold one number for each of the 12"):
        fa.Sample.of_points(x, cluster[:3])
    with pytest.raises(InputError, match="cluster must hold whole numbers"):
        fa.Sample.of_points(x, cluster - 1)
    with pytest.raises(InputError, match="cluster must hold whole numbers"):
        fa.Sample.of_points(x, cluster + 0.5)
    with pytest.raises(InputError, match="clusters must be a whole number of at least 2"):
        fa.Sample.of_points(x, np.zeros(12, int))
    with pytest.raises(InputError, match="centers must have 6 columns"):
        fa.Sample.of_points(x, cluster, centers=np.ones((4, 5)))
    sample = fa.Sample.of_points(x, cluster)
    with pytest.raises(InputError, match="fresh points cannot be drawn"):
        sample.fresh(3, rng=rng)
    with pytest.raises(InputError, match="cannot be drawn from a law that is not known"):
        sample.law.sample(3, rng=rng)


def test_the_index_cannot_tell_correlated_centres_apart_until_they_are_centred():
    """What the docstring says: 0.92 for a weight along one of five centres of cosine 0.75."""
    common, own = np.sqrt(0.75), 0.5
    centers = np.hstack([np.full((10, 1), common), own * np.eye(10)])
    sample = fa.Sample.of_points(centers, np.arange(10))
    one = fa.MultiClassNet(centers, 10)
    assert fa.averaging_index(one, sample) == pytest.approx(0.916, abs=0.001)
    features = embedded.centered(sample)
    assert fa.averaging_index(fa.MultiClassNet(features.centers, 10), features) == 0
    sides = [features.centers[:5].sum(axis=0), features.centers[5:].sum(axis=0)]
    assert fa.averaging_index(fa.BinaryNet(sides), features) == pytest.approx(1)


# -- the learning rate -----------------------------------------------------------------------------


def test_at_the_stable_rate_the_loss_never_rises_while_no_activation_changes(rng):
    """Positive points and weights: every neuron sees every point, and the outputs are linear."""
    x = np.abs(rng.standard_normal((40, 8))) + 1
    sample = fa.Sample.of_points(x, np.arange(40) % 4)
    for net in (fa.BinaryNet(np.ones((6, 8))), fa.MultiClassNet(np.ones((8, 8)), 4)):
        rate = fa.stable_learning_rate(net, sample)
        trained = fa.descend(net, sample, learning_rate=rate, steps=300, record=range(301))
        assert trained.active.all()
        assert (np.diff(trained.log_loss) <= 0).all()


def test_the_stable_rate_against_the_gram_matrix(measured, rng):
    x, cluster = measured
    sample = fa.Sample.of_points(x, cluster)
    gram = np.linalg.eigvalsh(x @ x.T)[-1] / 12
    net = fa.MultiClassNet.init(sample, width=2, weight_scale=1, rng=rng)
    assert fa.stable_learning_rate(net, sample) == pytest.approx(2 * 2 / gram)
    with_biases = np.linalg.eigvalsh(x @ x.T + 1)[-1] / 12
    net = fa.BinaryNet.init(sample, width=3, weight_scale=1, bias_scale=1, rng=rng)
    assert fa.stable_learning_rate(net, sample) == pytest.approx(2 * 3 / with_biases)
    nothing = fa.Sample.of_points(np.zeros((4, 2)), [0, 1, 0, 1])
    net = fa.MultiClassNet(np.ones((2, 2)), 2)
    with pytest.raises(InputError, match="a point that is not zero"):
        fa.stable_learning_rate(net, nothing)
    with pytest.raises(InputError, match="net must be a BinaryNet or a MultiClassNet"):
        fa.stable_learning_rate("net", nothing)


def test_training_ends_where_it_pays_no_more(measured, rng):
    sample = fa.Sample.of_points(*measured)
    net = fa.MultiClassNet.init(sample, width=2, weight_scale=1e-3, rng=rng)
    quick = figure2_embeddings.EXPERIMENT.quick
    rate = fa.stable_learning_rate(net, sample)
    for tolerance, most, expected in ((1.0, 1000, 200), (1e-9, 150, 150), (1e-9, 1000, 1000)):
        parameters = replace(quick, tolerance=tolerance, steps=most)
        trained, steps, loss = figure2_embeddings.trained(net, sample, parameters)
        assert steps == expected
        whole = fa.descend(net, sample, learning_rate=rate, steps=steps)
        np.testing.assert_allclose(trained.weights, whole.net.weights, rtol=1e-9)
        assert loss == pytest.approx(whole.loss[-1])

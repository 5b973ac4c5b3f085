"""Samples of the law, and of points that were measured."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from featavg.data.law import MeasuredLaw


def test_a_sample_of_points_has_class_means_and_residuals(measured):
    x, cluster = measured
    sample = fa.Sample.from_points(x, cluster, positive=[1, 2, 3])
    for j in range(4):
        np.testing.assert_allclose(sample.centers[j], x[cluster == j].mean(axis=0))
    np.testing.assert_allclose(
        sample.noise_norms,
        [np.linalg.norm(p - sample.centers[j]) for p, j in zip(x, cluster, strict=True)],
    )
    np.testing.assert_array_equal(sample.y, np.where(cluster == 0, -1, 1))
    assert isinstance(sample.law, MeasuredLaw)
    assert (sample.law.signal, sample.law.noise) == (1, 1)
    assert not hasattr(sample.law, "cosine")
    assert not sample.law.rotation_invariant
    assert not sample.law.follows_definition
    assert repr(sample) == "Sample(12 points, 4 clusters, 6 coordinates, float64)"


def test_lemma_5_1_holds_for_measured_points(measured, rng):
    """w = w(0) + Σ λ μ/|μ|² + Σ σ ξ/|ξ|², though centres are correlated and of unequal norms."""
    x, cluster = measured
    sample = fa.Sample.from_points(x, cluster)
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
    train = fa.Sample.from_points(x, cluster)
    test = fa.Sample.from_points(x[:2] + 1, cluster[:2], centers=train.centers)
    np.testing.assert_array_equal(test.centers, train.centers)
    np.testing.assert_allclose(
        test.noise_norms, np.linalg.norm(x[:2] + 1 - train.centers[cluster[:2]], axis=1)
    )


def test_single_precision_and_more_clusters_than_dimensions(rng):
    x = rng.standard_normal((30, 2)).astype(np.float32)
    sample = fa.Sample.from_points(x, np.arange(30) % 5)
    assert sample.x.dtype == sample.centers.dtype == sample.noise_norms.dtype == np.float32
    assert sample.law.positive_clusters == (0, 1, 2)


def test_what_cannot_be_a_sample_is_refused(measured, rng):
    x, cluster = measured
    with pytest.raises(InputError, match="got no point in cluster 1"):
        fa.Sample.from_points(x[:3], [0, 2, 2])
    with pytest.raises(InputError, match="cluster must hold whole numbers from 0 to 3"):
        fa.Sample.from_points(x, cluster + 1, centers=np.ones((4, 6)))
    with pytest.raises(InputError, match="cluster must hold one number for each of the 12"):
        fa.Sample.from_points(x, cluster[:3])
    with pytest.raises(InputError, match="cluster must hold whole numbers"):
        fa.Sample.from_points(x, cluster - 1)
    with pytest.raises(InputError, match="cluster must hold whole numbers"):
        fa.Sample.from_points(x, cluster + 0.5)
    with pytest.raises(InputError, match="clusters must be a whole number of at least 2"):
        fa.Sample.from_points(x, np.zeros(12, int))
    with pytest.raises(InputError, match="centers must have 6 columns"):
        fa.Sample.from_points(x, cluster, centers=np.ones((4, 5)))
    sample = fa.Sample.from_points(x, cluster)
    with pytest.raises(InputError, match="cannot be drawn because these were measured"):
        sample.fresh(3, rng=rng)
    with pytest.raises(InputError, match="cannot be drawn because these were measured"):
        sample.law.sample(3, rng=rng)


def test_fresh_points_share_the_centres_and_nothing_else(small_train, rng):
    fresh = small_train.fresh(500, rng=rng)
    assert fresh.centers is small_train.centers or np.shares_memory(
        fresh.centers, small_train.centers
    )
    assert fresh.x.shape == (500, 40)
    assert not np.isin(fresh.x[:, 0], small_train.x[:, 0]).any()


def test_points_are_read_only_because_the_gram_matrix_is_kept(small_train):
    assert small_train.gram is small_train.gram
    np.testing.assert_allclose(small_train.gram, small_train.x @ small_train.x.T)
    with pytest.raises(ValueError, match="read-only"):
        small_train.x[0, 0] = 1


def test_bad_samples_are_refused(small_train, rng):
    with pytest.raises(fa.InputError, match="rng must be a numpy Generator.*got 0"):
        small_train.law.sample(10, rng=0)
    with pytest.raises(fa.InputError, match="size must be"):
        small_train.law.sample(0, rng=rng)
    with pytest.raises(fa.InputError, match="dtype must be one of 'float64', 'float32'"):
        small_train.law.sample(10, rng=rng, dtype="float16")
    with pytest.raises(fa.InputError, match=r"would need 8,000.0 GB of memory"):
        fa.MultiCluster(clusters=2, dim=10**12).sample(1, rng=rng, coordinates="ambient")

    def rebuilt(**changes):
        names = ("law", "centers", "x", "y", "cluster", "noise_norms")
        return fa.Sample(**({n: getattr(small_train, n) for n in names} | changes))

    spoilt = small_train.x.copy()
    spoilt[2, 3] = np.nan
    with pytest.raises(fa.InputError, match=r"x must be finite; got nan at index \(2, 3\)"):
        rebuilt(x=spoilt)
    with pytest.raises(fa.InputError, match="y must hold one label for each of the 60 points"):
        rebuilt(y=small_train.y[:-1])
    with pytest.raises(fa.InputError, match="y must be the side of each point's cluster"):
        rebuilt(y=-small_train.y)
    with pytest.raises(fa.InputError, match="centers must have 40 columns"):
        rebuilt(centers=small_train.centers[:, :-1])
    with pytest.raises(fa.InputError, match="centers must have one row for each of the 5"):
        rebuilt(centers=small_train.centers[:-1])
    with pytest.raises(fa.InputError, match="cluster must hold whole numbers from 0 to 4"):
        rebuilt(cluster=small_train.cluster + 5)

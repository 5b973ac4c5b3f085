from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featavg as fa
from featavg.experiments import embedded
from featavg.networks import reference


def test_alignment_is_the_cosine(small_train, rng):
    net = fa.BinaryNet(rng.standard_normal((6, 40)))
    found = fa.alignment(net, small_train.centers)
    assert found.shape == (5, 6)
    for j in range(5):
        for r in range(6):
            mu, w = small_train.centers[j], net.weights[r]
            cosine = mu @ w / np.linalg.norm(mu) / np.linalg.norm(w)
            assert found[j, r] == pytest.approx(cosine)


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_cosines_do_not_depend_on_the_scale(small_train, rng, factor):
    W = rng.standard_normal((4, 40))
    np.testing.assert_allclose(
        fa.alignment(fa.BinaryNet(factor * W), small_train.centers),
        fa.alignment(fa.BinaryNet(W), small_train.centers),
    )


def test_a_zero_weight_has_cosine_zero(small_train):
    net = fa.BinaryNet(np.zeros((2, 40)))
    np.testing.assert_array_equal(fa.alignment(net, small_train.centers), np.zeros((5, 2)))
    assert np.isnan(fa.averaging_index(net, small_train))


def test_equivalent_weights_divide_the_neurons_of_each_side(small_train, rng):
    """Sides of 3 and 2 clusters, 7 neurons each: shares of 3, 2, 2 and of 4, 3."""
    W = rng.standard_normal((14, 40))
    found = fa.equivalent_weights(fa.BinaryNet(W), small_train)
    shares = {0: [0, 1, 2], 3: [3, 4], 4: [5, 6], 1: [7, 8, 9, 10], 2: [11, 12, 13]}
    for cluster, rows in shares.items():
        np.testing.assert_allclose(found[cluster], W[rows].mean(axis=0))


def test_equivalent_weights_of_a_multiclass_network_are_group_means(small_train, rng):
    W = rng.standard_normal((15, 40))
    found = fa.equivalent_weights(fa.MultiClassNet(W, 5, small_train.law.positive), small_train)
    np.testing.assert_allclose(found, [W[3 * j : 3 * j + 3].mean(axis=0) for j in range(5)])


def test_equivalent_weights_of_a_network_with_filler_neurons(small_train):
    """The decoupled network of 3 + 2 clusters has a neuron that is zero."""
    matrix = fa.equivalent_alignment(reference.decoupled(small_train), small_train)
    np.testing.assert_allclose(matrix, np.eye(5), atol=1e-12)


def test_index_of_reference_networks(small_train):
    assert fa.averaging_index(reference.averaging(small_train), small_train) == pytest.approx(1)
    assert fa.averaging_index(reference.decoupled(small_train), small_train) == pytest.approx(0)
    # own cosine 2 for one centre and 1 for the others of 3: (4+1+1)²/(16+1+1) = 2, of 1 to 3
    multi = reference.averaging_multiclass(small_train)
    index = fa.averaging_index_per_neuron(multi, small_train)
    np.testing.assert_allclose(index[[0, 3, 4]], (2 - 1) / 2)
    np.testing.assert_allclose(index[[1, 2]], (25 / 17 - 1) / 1)  # 2 and 1: (4+1)²/(16+1)


def test_index_of_negative_cosines_counts_them_as_absent(small_train):
    mu = small_train.centers
    net = fa.BinaryNet([mu[0] - mu[3], mu[1] + mu[2]])
    index = fa.averaging_index_per_neuron(net, small_train)
    np.testing.assert_allclose(index, [0, 1], atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_index_lies_between_0_and_1_and_ignores_scale(seed, factor):
    rng = np.random.default_rng(seed)
    train = fa.MultiCluster(clusters=6, dim=10, positive=2).sample(3, rng=rng)
    W = rng.standard_normal((8, 10))
    index = fa.averaging_index_per_neuron(fa.BinaryNet(W), train)
    known = index[~np.isnan(index)]
    assert ((known >= -1e-12) & (known <= 1 + 1e-12)).all()
    scaled = fa.averaging_index_per_neuron(fa.BinaryNet(factor * W), train)
    np.testing.assert_allclose(scaled, index, rtol=1e-9, atol=1e-12)


def test_index_of_a_side_with_one_cluster_is_not_defined(rng):
    single = fa.MultiCluster(clusters=2, dim=10).sample(3, rng=rng)
    for _ in range(200):  # whatever rounding makes of 0/0
        net = fa.BinaryNet(rng.standard_normal((2, 10)))
        assert np.isnan(fa.averaging_index_per_neuron(net, single)).all()
    train = fa.MultiCluster(clusters=3, dim=10, positive=1).sample(3, rng=rng)
    index = fa.averaging_index_per_neuron(reference.averaging(train), train)
    np.testing.assert_array_equal(np.isnan(index), [True, False])
    assert fa.averaging_index(reference.averaging(train), train) == pytest.approx(1)


def test_bad_input_is_refused(small_train):
    with pytest.raises(fa.InputError, match="width must be at least 3"):
        fa.equivalent_weights(fa.BinaryNet(np.ones((4, 40))), small_train)
    with pytest.raises(fa.InputError, match="got 4 and 5"):
        fa.equivalent_weights(fa.MultiClassNet(np.ones((4, 40)), 4), small_train)
    with pytest.raises(fa.InputError, match="same coordinates; got 3 and 40"):
        fa.averaging_index(fa.BinaryNet(np.ones((2, 3))), small_train)
    with pytest.raises(fa.InputError, match="y must hold labels in {-1, \\+1}; got 0"):
        fa.clean_accuracy(fa.BinaryNet(np.ones((2, 3))), np.ones((2, 3)), [1, 0])
    net = fa.ShallowNet(np.eye(3), np.zeros(3), np.eye(2, 3), [0, 0])  # with the labels 0 and 1
    with pytest.raises(fa.InputError, match=r"net must have the labels -1 and 1.* got .* 0, 1\."):
        fa.clean_accuracy(net, np.ones((2, 3)), [1, -1])


def test_the_index_cannot_tell_correlated_centres_apart_until_they_are_centred():
    """What the docstring says: 0.92 for a weight along one of five centres of cosine 0.75."""
    common, own = np.sqrt(0.75), 0.5
    centers = np.hstack([np.full((10, 1), common), own * np.eye(10)])
    sample = fa.Sample.from_points(centers, np.arange(10))
    one = fa.MultiClassNet(centers, 10)
    assert fa.averaging_index(one, sample) == pytest.approx(0.916, abs=0.001)
    features = embedded.centered(sample)
    assert fa.averaging_index(fa.MultiClassNet(features.centers, 10), features) == 0
    sides = [features.centers[:5].sum(axis=0), features.centers[5:].sum(axis=0)]
    assert fa.averaging_index(fa.BinaryNet(sides), features) == pytest.approx(1)

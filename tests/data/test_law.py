from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import featavg as fa


@given(
    clusters=st.integers(2, 12),
    extra=st.integers(0, 30),
    position=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_centres_have_norm_root_d_and_the_asked_for_cosine(clusters, extra, position, seed):
    lowest = -1 / (clusters - 1)
    cosine = lowest + position * (1 - lowest)
    law = fa.MultiCluster(clusters=clusters, dim=clusters + extra, cosine=cosine)
    mu = law.sample(1, rng=np.random.default_rng(seed)).centers
    gram = mu @ mu.T / law.dim
    expected = np.where(np.eye(clusters, dtype=bool), 1.0, cosine)
    np.testing.assert_allclose(gram, expected, atol=1e-10)


@pytest.mark.parametrize("cosine", [0.0, 0.00001, 0.001, 0.09])
def test_cosines_of_figure_9(cosine, rng):
    mu = fa.MultiCluster(clusters=10, dim=3072, cosine=cosine).sample(1, rng=rng).centers
    off_diagonal = (mu @ mu.T / 3072)[~np.eye(10, dtype=bool)]
    np.testing.assert_allclose(off_diagonal, cosine, atol=1e-12)


def test_a_simplex_fits_into_one_dimension_less(rng):
    mu = fa.MultiCluster(clusters=5, dim=4, cosine=-0.25).sample(1, rng=rng).centers
    np.testing.assert_allclose(mu.sum(axis=0), 0, atol=1e-12)


def test_points_are_signal_times_centre_plus_noise_times_gaussian(rng):
    law = fa.MultiCluster(clusters=4, dim=50, positive=[1, 2], signal=2.0, noise=0.5)
    sample = law.sample(4000, rng=rng)
    xi = (sample.x - 2.0 * sample.centers[sample.cluster]) / 0.5
    np.testing.assert_allclose(np.linalg.norm(xi, axis=1), sample.noise_norms, rtol=1e-10)
    assert stats.kstest(xi.ravel(), "norm").pvalue > 1e-3
    assert stats.chisquare(np.bincount(sample.cluster, minlength=4)).pvalue > 1e-3
    np.testing.assert_array_equal(sample.y == 1, np.isin(sample.cluster, [1, 2]))


def test_the_orientation_of_the_centres_is_random(rng):
    law = fa.MultiCluster(clusters=2, dim=8)
    first = np.array([law.sample(1, rng=rng).centers[0] for _ in range(500)])
    # a coordinate of a uniform unit vector of dimension d: its square is Beta(1/2, (d-1)/2)
    assert stats.kstest(first[:, 3] ** 2 / 8, stats.beta(0.5, 3.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("orientation", ["axes", "signs"])
@pytest.mark.parametrize("norms", [None, [1.0, 2.0, 0.5, 1.0, 3.0]])
def test_centres_of_a_chosen_orientation_are_orthogonal(orientation, norms, rng):
    law = fa.MultiCluster(5, 24, orientation=orientation, norms=norms)
    train = law.sample(30, rng=rng)
    sizes = np.array(norms or [1.0] * 5)
    np.testing.assert_allclose(train.centers @ train.centers.T, np.diag(24 * sizes**2), atol=1e-12)
    if orientation == "axes":
        expected = np.zeros((5, 24))
        expected[range(5), range(5)] = sizes * np.sqrt(24)
        np.testing.assert_allclose(train.centers, expected, rtol=1e-12)
    else:
        np.testing.assert_allclose(np.abs(train.centers), sizes[:, None] * np.ones(24), rtol=1e-12)
    np.testing.assert_array_equal(train.fresh(3, rng=rng).centers, train.centers)
    assert law.follows_definition == (norms is None)


def test_signs_of_a_coordinate_are_fair_and_independent(rng):
    law = fa.MultiCluster(3, 4096, orientation="signs")
    signs = law.sample(1, rng=rng).centers > 0
    patterns = np.bincount(signs.T @ [1, 2, 4], minlength=8)
    assert (patterns > 0).all()
    # blocks of four coordinates are drawn independently of each other: 1024 of them
    first = np.bincount(signs[:, ::4].T @ [1, 2, 4], minlength=8)
    assert stats.chisquare(first).pvalue > 1e-3
    again = law.sample(1, rng=rng).centers
    assert (again > 0).tolist() != signs.tolist()


def test_a_chosen_orientation_is_refused_where_it_does_not_exist(rng):
    with pytest.raises(fa.InputError, match="dim must be a multiple of 16 .* got dim=3000"):
        fa.MultiCluster(10, 3000, orientation="signs")
    fa.MultiCluster(8, 3000, orientation="signs")
    with pytest.raises(fa.InputError, match="orientation must be one of"):
        fa.MultiCluster(10, 3000, orientation="up")
    with pytest.raises(fa.InputError, match="cosine must be 0 with a chosen orientation"):
        fa.MultiCluster(4, 100, orientation="axes", cosine=0.5)
    law = fa.MultiCluster(4, 1000, orientation="axes")
    assert not law.rotation_invariant
    with pytest.raises(fa.InputError, match="got MultiCluster with orientation='axes', so use"):
        law.sample(10, rng=rng, coordinates="span")
    assert law.sample(10, rng=rng).frame is None


@pytest.mark.parametrize(
    ("orientation", "factor"),
    [
        ("random", np.sqrt(2 / np.pi)),  # of a Gaussian vector and its signs
        ("axes", 1.0),  # three coordinates of the same size
        ("signs", np.sqrt(3 / 4)),  # a sum of three fair signs, mean size 3/2 and mean square 3
    ],
)
def test_sign_descent_depends_on_the_orientation_and_gradient_descent_does_not(
    orientation, factor, rng
):
    law = fa.MultiCluster(3, 8192, noise=0.0, balanced=True, orientation=orientation)
    train = law.sample(3, rng=rng)
    net = fa.BinaryNet(np.zeros((2, 8192)), train_biases=False)
    for rule, expected in ((fa.GradientDescent(), 1.0), (fa.SignDescent(), factor)):
        step = fa.descend(net, train, learning_rate=1e-4, steps=1, rule=rule).net
        cosines = fa.alignment(step, train.centers)[:, 0]
        np.testing.assert_allclose(cosines, law.signs * expected / np.sqrt(3), rtol=0.05)


def test_partition_forms_are_one_law():
    assert fa.MultiCluster(4, 10, positive=2) == fa.MultiCluster(4, 10, positive=[1, 0])
    assert fa.MultiCluster(4, 10) == fa.MultiCluster(4, 10, positive=2)
    assert fa.MultiCluster(5, 10).positive_clusters == (0, 1, 2)
    np.testing.assert_array_equal(fa.MultiCluster(4, 10, positive=[2]).signs, [-1, -1, 1, -1])


def test_single_precision_all_the_way(rng):
    sample = fa.MultiCluster(clusters=3, dim=20).sample(30, rng=rng, dtype="float32")
    assert {a.dtype for a in (sample.x, sample.centers, sample.gram)} == {np.dtype("float32")}
    assert sample.fresh(3, rng=rng).x.dtype == np.float32
    assert sample.gaussian(3, rng=rng).dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clusters": 20, "dim": 10}, "clusters must be at most dim .* clusters=20, dim=10"),
        ({"clusters": 1}, "clusters must be a whole number of at least 2; got 1"),
        ({"clusters": 2.5}, "clusters must be a whole number .* got 2.5"),
        ({"dim": 0}, "dim must be a whole number of at least 1"),
        ({"positive": 0}, "at least one of the 4 clusters on each side.*got 0"),
        ({"positive": 4}, "at least one of the 4 clusters on each side"),
        ({"positive": []}, "at least one of the 4 clusters on each side"),
        ({"positive": [0, 0]}, "must not name a cluster twice"),
        ({"positive": [7]}, "numbered from 0 to 3"),
        ({"positive": 1.5}, "number of positive clusters or a list"),
        ({"noise": -1}, "noise must be at least 0; got -1"),
        ({"noise": float("nan")}, "noise must be a finite number"),
        ({"signal": 0}, "signal must be above 0; got 0"),
        ({"cosine": -0.5}, "cosine must be from -0.333333 to 1"),
        ({"cosine": 1.01}, "cosine must be from"),
        ({"dim": 3, "cosine": 0.1}, "linearly independent.*clusters=4, dim=3"),
    ],
)
def test_bad_laws_are_refused_in_one_sentence(arguments, message):
    with pytest.raises(fa.InputError, match=message) as caught:
        fa.MultiCluster(**({"clusters": 4, "dim": 50} | arguments))
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith(".")

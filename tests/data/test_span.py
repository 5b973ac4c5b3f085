from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import featavg as fa
from featavg.data import span

SEEDS = 250


def statistics(seed, coordinates):
    """Numbers that depend on every part of the sampling, for one seed."""
    rng = np.random.default_rng([seed, coordinates == "span"])
    law = fa.MultiCluster(clusters=3, dim=60, positive=1, cosine=0.1, signal=1.2, noise=0.8)
    train = law.sample(12, rng=rng, coordinates=coordinates, reserve=16)
    test = train.fresh(1, rng=rng)
    net = fa.BinaryNet.init(train, width=2, weight_scale=0.02, bias_scale=0.02, rng=rng)
    weights = net.weights
    run = fa.descend(net, train, learning_rate=0.05, steps=20, record=2)
    noise = train.x - law.signal * train.centers[train.cluster]
    return {
        "noise inner product": noise[0] @ noise[-1],
        "noise norm, first": train.noise_norms[0],
        "noise norm, last": train.noise_norms[-1],
        "noise along a centre": noise[5] @ train.centers[1],
        "fresh noise norm": test.noise_norms[0],
        "weight norm": np.linalg.norm(weights[3]),
        "weights inner product": weights[0] @ weights[3],
        "weight along a point": weights[2] @ train.x[4],
        "trained lambda": run.feature_coefficients[-1, 0, 0],
        "trained weight norm": np.linalg.norm(run.net.weights[0]),
        "test score": run.net.score(test.x)[0],
        "exact radius": fa.exact_radii(run.net, test.x, test.y).upper[0],
    }


def drawn(coordinates):
    rows = [statistics(seed, coordinates) for seed in range(SEEDS)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.fixture(scope="module")
def ambient():
    return drawn("ambient")


@pytest.mark.slow
def test_span_and_ambient_coordinates_have_the_same_law(ambient):
    found = drawn("span")
    for name, values in ambient.items():
        assert stats.ks_2samp(values, found[name]).pvalue > 1e-3, name


@pytest.mark.slow
def test_the_comparison_notices_wrong_degrees_of_freedom(ambient, monkeypatch):
    right = span._chi
    monkeypatch.setattr(span, "_chi", lambda degrees, rng: right(0.9 * degrees, rng))
    found = drawn("span")
    for name in ("noise norm, first", "weight norm"):
        assert stats.ks_2samp(ambient[name], found[name]).pvalue < 1e-3, name


@pytest.mark.slow
def test_centres_and_gram_matrix_in_span_coordinates(rng):
    law = fa.MultiCluster(clusters=4, dim=10**9, cosine=0.2, positive=[0, 2])
    train = law.sample(600, rng=rng, coordinates="span")
    assert train.x.shape == (600, 4 + 600 + span.RESERVE)
    gram = train.centers @ train.centers.T / 1e9
    np.testing.assert_allclose(gram, np.where(np.eye(4, dtype=bool), 1.0, 0.2), atol=1e-12)
    np.testing.assert_allclose(train.gram, train.x @ train.x.T, rtol=1e-10)
    fresh = train.fresh(600, rng=rng)  # as many points, but not the training points
    np.testing.assert_allclose(fresh.gram, fresh.x @ fresh.x.T, rtol=1e-10)


def test_the_dimension_costs_nothing(rng):
    sizes = {
        dim: fa.MultiCluster(clusters=3, dim=dim).sample(50, rng=rng, coordinates="span").x.nbytes
        for dim in (10**4, 10**12)
    }
    assert len(set(sizes.values())) == 1


@pytest.mark.slow
def test_auto_takes_the_span_only_where_ambient_coordinates_are_large(rng):
    law = fa.MultiCluster(clusters=2, dim=2 * 10**6)
    assert law.sample(5, rng=rng).frame is None
    assert law.sample(200, rng=rng).frame is not None
    assert fa.MultiCluster(clusters=2, dim=100).sample(500, rng=rng).frame is None


def test_what_does_not_fit_is_refused(rng):
    with pytest.raises(fa.InputError, match="span coordinates must be fewer than dim; got 166"):
        fa.MultiCluster(clusters=2, dim=100).sample(100, rng=rng, coordinates="span")
    train = fa.MultiCluster(clusters=2, dim=10**6).sample(9, rng=rng, coordinates="span", reserve=6)
    fa.BinaryNet.init(train, width=2, weight_scale=1, bias_scale=1, rng=rng)
    with pytest.raises(fa.InputError, match="room for 6 vectors .* of which 4 are taken"):
        fa.BinaryNet.init(train, width=2, weight_scale=1, bias_scale=1, rng=rng)
    with pytest.raises(fa.InputError, match="coordinates must be one of 'auto'"):
        train.law.sample(3, rng=rng, coordinates="polar")

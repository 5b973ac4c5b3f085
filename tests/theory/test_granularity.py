"""The granularity law against exact radii, integration and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import featavg as fa
from featavg.theory.granularity import FinitePrediction, granularity_radii, margin_at


def group_sums(train, coefficients):
    """Return the network whose weights are sums of the centres of each group."""
    mu = train.centers / np.square(train.centers).sum(axis=1, keepdims=True)
    members = np.arange(len(train.label_signs))[:, None] == train.label_of_cluster
    positive = np.flatnonzero(train.label_signs == 1).tolist()
    return fa.MultiClassNet((members * coefficients) @ mu, len(members), positive, "argmax")


@pytest.mark.parametrize(
    ("text", "norms", "signal"),
    [
        ("5|5", None, 1.0),
        ("1,4|2,3", None, 1.0),
        ("1,1,1|1,2", None, 2.5),
        ("3|1,1", [1, 2, 0.5, 1, 3], 1.0),
        ("1,2|1,3,1", [1, 0.7, 1.4, 2, 1, 0.8, 0.5, 1], 0.6),
    ],
)
def test_the_law_is_the_exact_radius_of_centres(text, norms, signal):
    grouping = fa.Grouping.parse(text)
    k, d = grouping.clusters, 60
    law = fa.MultiCluster(k, d, sum(grouping.positive), signal=signal, noise=0, norms=norms)
    train = law.sample(4, rng=np.random.default_rng(0)).grouped(grouping)
    net = group_sums(train, 3.0)
    radii = fa.exact_radii(net, signal * train.centers, law.signs)
    assert radii.exact.all()
    theory = granularity_radii(grouping, law)[train.label_of_cluster]
    np.testing.assert_allclose(radii.upper, theory, rtol=1e-6)


def test_both_theorems_are_its_ends():
    law = fa.MultiCluster(clusters=8, dim=1000)
    for grouping, q in ((fa.Grouping.coarse(4, 4), 8), (fa.Grouping.fine(4, 4), 2)):
        np.testing.assert_allclose(granularity_radii(grouping, law), np.sqrt(1000 / q))


@pytest.mark.parametrize("labels", [2, 7])
def test_the_margin_is_that_of_gradient_flow(labels):
    times = np.array([0.3, 5.0, 400.0])
    flow = solve_ivp(
        lambda _, m: (labels - 1) / (np.exp(m) + labels - 1),
        (0, times[-1]),
        [0.0],
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    np.testing.assert_allclose(margin_at(times, labels), flow.y[0], rtol=1e-7)


def test_the_median_is_that_of_simulated_points():
    """Draw points, weights with the noise of training points, and take exact radii."""
    grouping = fa.Grouping.parse("1,2|1,1,3")
    counts = np.array([10, 20, 30, 15, 10, 40, 10, 25])
    law = fa.MultiCluster(8, 2000, 3, signal=1.5, noise=0.8, norms=[1, 1.2, 1, 0.8, 1, 1, 1.5, 1])
    prediction = FinitePrediction(grouping, law, counts, time=0.05)
    rng = np.random.default_rng(0)
    train = law.sample(1, rng=rng).grouped(grouping)
    net = group_sums(train, prediction.coefficients() / law.signal)
    squares = np.square(np.linalg.norm(train.centers, axis=1)) * law.signal * counts
    pulls = prediction.coefficients() / law.signal / squares
    noise = rng.standard_normal((counts.sum(), 2000))
    of = np.repeat(np.arange(8), counts)
    members = np.arange(5)[:, None] == train.label_of_cluster[of]
    W = net.weights + (members * pulls[of]) @ (law.noise * noise)
    net = net.with_parameters(W, np.zeros(5))
    test = train.fresh(1500, rng=rng)
    radii = fa.exact_radii(net, test.x, test.y, certificates=False, jobs=1).upper
    found = [np.median(radii[test.labels == g]) for g in range(5)]
    shares = np.bincount(test.cluster, minlength=8)
    np.testing.assert_allclose(found, prediction.medians(shares), rtol=0.015)


def test_without_noise_and_after_a_long_time_it_is_the_law():
    grouping = fa.Grouping.parse("1,2|3")
    law = fa.MultiCluster(6, 500, 3, noise=0, norms=[1, 2, 1, 1, 1, 0.5])
    ratios = [
        FinitePrediction(grouping, law, np.full(6, 9), time).medians()
        / granularity_radii(grouping, law)
        for time in (1.0, 1e250)
    ]
    assert np.abs(ratios[0] - 1).max() > 0.05
    np.testing.assert_allclose(ratios[1], 1, rtol=0.003)


def test_a_bias_helps_the_larger_group():
    grouping, law = fa.Grouping.parse("4|1"), fa.MultiCluster(5, 50, 4, noise=0)
    plain, biased = (
        FinitePrediction(grouping, law, np.full(5, 10), 1.0, biases=b).medians()
        for b in (False, True)
    )
    np.testing.assert_allclose(biased / plain - 1, [3 / 50, -3 / 50], rtol=0.05)


def test_other_laws_are_refused():
    grouping = fa.Grouping.parse("2|2")
    for law in (
        fa.MultiCluster(4, 50, cosine=0.1),
        fa.AnisotropicClusters(4, 3 + 1, spread=[1, 1, 2, 1]),
        fa.XorClusters(50),
    ):
        with pytest.raises(fa.InputError, match="needs orthogonal centres"):
            granularity_radii(grouping, law)
    with pytest.raises(fa.InputError, match="all 3 positive"):
        granularity_radii(grouping, fa.MultiCluster(5, 50))

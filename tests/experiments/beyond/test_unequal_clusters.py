"""The formulas for unequal clusters, against integration, sampling and trained networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import featavg as fa
from featavg.experiments.beyond.unequal_clusters import UnequalClusters

K, D = 6, 400
SIGNS = np.repeat([1, -1], K // 2)
COUNTS = np.array([80.0, 20, 5, 60, 30, 10])
NORMS = np.array([1.0, 0.7, 1.4, 1.1, 0.9, 1.0])


def clusters(counts=COUNTS, norms=NORMS, noise=1.0):
    return UnequalClusters(counts, norms, SIGNS, D, 1.0, noise)


@pytest.mark.parametrize("rivals", [1, K - 1])
def test_coefficients_solve_the_equation_of_gradient_flow(rivals):
    unequal, time = clusters(), 0.3
    share, gain = COUNTS / COUNTS.sum(), unequal.own_noise

    def speed(_, coefficients):
        outputs = coefficients * gain  # of training points
        return share * NORMS**2 * D * rivals / (np.exp(outputs) + rivals)

    solved = solve_ivp(speed, (0, time), np.zeros(K), rtol=1e-10, atol=1e-12).y[:, -1]
    assert unequal.coefficients(time, rivals) == pytest.approx(solved, rel=1e-7)


def test_at_first_shares_count_and_at_last_all_are_alike():
    unequal = clusters(noise=0.0)
    first, last = (unequal.coefficients(time, 1) for time in (1e-9, 1e200))
    assert first / first[0] == pytest.approx(COUNTS * NORMS**2 / COUNTS[0], rel=1e-6)
    assert last / last[0] == pytest.approx(np.ones(K), rel=0.02)
    assert unequal.coarse_radii(last) == pytest.approx(np.sqrt(D / (1 / NORMS**2).sum()), rel=0.02)


def test_equal_clusters_have_the_radii_of_the_paper():
    equal = clusters(np.full(K, 30.0), np.ones(K), 0.0)
    assert equal.coarse_radii(np.full(K, 2.5)) == pytest.approx(np.sqrt(D / K))
    assert equal.fine_radii(np.full(K, 2.5)) == pytest.approx(np.sqrt(D / 2))


def test_weights_against_the_imbalance_make_coefficients_equal():
    unequal = clusters(norms=np.ones(K), noise=0.0)
    learned = unequal.coefficients(2.0, K - 1, COUNTS.sum() / (K * COUNTS))
    assert learned == pytest.approx(np.full(K, learned[0]))


def test_the_median_over_noise_is_that_of_sampling(rng):
    unequal, learned = clusters(), np.array([3.0, 2.5, 1.0, 2.9, 2.8, 2.0])
    sizes = learned / NORMS * np.sqrt(unequal.own_noise / D)
    normal = rng.standard_normal((200_000, K))
    sampled = []
    for j in range(K):
        others = np.flatnonzero(SIGNS[j] != SIGNS)
        ahead = learned[j] + sizes[j] * normal[:, [j]] - sizes[others] * normal[:, others]
        distances = ahead / np.sqrt(sizes[j] ** 2 + sizes[others] ** 2)
        sampled.append(np.median(distances.min(axis=1)))
    assert unequal.fine_radii(learned) == pytest.approx(np.array(sampled), abs=0.015)


def test_trained_networks_without_noise_have_these_radii(rng):
    law = fa.MultiCluster(
        clusters=K, dim=D, noise=0.0, probabilities=COUNTS, norms=NORMS, balanced=True
    )
    train = law.sample(int(COUNTS.sum()), rng=rng)
    unequal, rate, steps = UnequalClusters.of(law, train), 1e-4, 2000
    assert unequal.counts.tolist() == COUNTS.tolist()
    sides = np.stack([train.centers[law.signs == sign].sum(axis=0) for sign in (1, -1)])
    coarse = fa.BinaryNet(1e-9 * sides, np.zeros(2), train_biases=False)
    fine = fa.MultiClassNet(1e-9 * train.centers, K, readout="argmax")
    x, y = train.centers, law.signs
    for net, rivals, formula in (
        (coarse, 1, unequal.coarse_radii),
        (fine, K - 1, unequal.fine_radii),
    ):
        trained = fa.descend(net, train, learning_rate=rate, steps=steps).net
        predicted = formula(unequal.coefficients(rate * steps, rivals))
        assert fa.exact_radii(trained, x, y).upper == pytest.approx(predicted, rel=0.01)

"""The threshold of adversarial training, on curves with a known crossing."""

from __future__ import annotations

import numpy as np
import pytest

from featavg.experiments.beyond import adversarial
from featavg.experiments.beyond.adversarial import SHARES, Parameters


@pytest.fixture
def learner():
    return adversarial._latent(Parameters(dim=500, points=2, test_samples=20), 8, seed=0)


def test_bisection_finds_where_a_curve_crosses_the_middle(learner, monkeypatch):
    def curve(share):
        return 0.5 + 0.4 * share**2  # crosses 0.75 at sqrt(5/8)

    monkeypatch.setattr(adversarial, "_trained", lambda _, __, share: (share, None))
    monkeypatch.setattr(adversarial, "_median_radius", lambda _, __, share: curve(share))
    measured = np.array([curve(share) for share in SHARES])
    threshold, bracket = adversarial._threshold(Parameters(), learner, measured)
    assert adversarial._middle(8) == 0.75
    assert threshold == pytest.approx(np.sqrt(5 / 8), abs=1e-4)
    assert bracket == pytest.approx(0.15 / 8)


def test_curves_that_do_not_cross(learner):
    above, below = np.full(len(SHARES), 0.8), np.full(len(SHARES), 0.7)
    assert adversarial._threshold(Parameters(), learner, above) == (0, 0)
    assert np.isnan(adversarial._threshold(Parameters(), learner, below)).all()


def test_a_network_of_one_decision_has_no_radius(learner):
    net = learner.net.with_parameters(np.abs(learner.net.weights) * 0, learner.net.biases)
    assert adversarial._median_radius(Parameters(), learner, net) == 0

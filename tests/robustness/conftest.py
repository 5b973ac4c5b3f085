from __future__ import annotations

import numpy as np
import pytest

import featavg as fa


@pytest.fixture(scope="session")
def paper():
    """The networks of the paper's setting and 1000 fresh points."""
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    coarse = fa.BinaryNet.init(train, width=5, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    fine = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng)
    nets = [fa.descend(n, train, learning_rate=1e-3, steps=100).net for n in (coarse, fine)]
    return train.fresh(1000, rng=rng), *nets


@pytest.fixture(scope="session")
def trained():
    """Both networks, trained on one sample, and fresh points."""
    rng = np.random.default_rng(3)
    train = fa.MultiCluster(clusters=6, dim=600).sample(200, rng=rng)
    coarse = fa.BinaryNet.init(train, width=3, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    fine = fa.MultiClassNet.init(train, width=2, weight_scale=1e-5, rng=rng)
    nets = [fa.descend(n, train, learning_rate=5e-3, steps=100).net for n in (coarse, fine)]
    return train, train.fresh(100, rng=rng), *nets

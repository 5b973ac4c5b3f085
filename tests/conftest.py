from __future__ import annotations

import numpy as np
import pytest

import featavg as fa


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12345)


@pytest.fixture(scope="session")
def small_train() -> fa.Sample:
    """Odd k, an unbalanced partition that is not the first clusters, scales that are not 1."""
    law = fa.MultiCluster(clusters=5, dim=40, positive=[0, 3, 4], signal=1.5, noise=0.7)
    return law.sample(60, rng=np.random.default_rng(1))

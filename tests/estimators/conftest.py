from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import featavg as fa
from support.classifiers import BOTH


@pytest.fixture(scope="session")
def digits():
    X, digit = load_digits(return_X_y=True)
    X, X_test, digit, digit_test = train_test_split(X, digit, test_size=0.4, random_state=0)
    return X, digit, X_test, digit_test


@pytest.fixture(scope="session")
def law():
    rng = np.random.default_rng(3)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    return train, train.fresh(100, rng=rng)


@pytest.fixture(scope="session")
def on_the_law(law):
    train, _ = law
    return [kind(random_state=0).fit(train.x, train.y) for kind in BOTH]

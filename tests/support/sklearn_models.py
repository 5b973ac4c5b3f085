"""Fitted scikit-learn models, and the check that a `ShallowNet` decides as they do."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import softmax
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from featavg.robustness.models import as_shallow

DIM = 7
NAMES = {2: np.array(["no", "yes"]), 3: np.array(["ant", "bee", "cat"])}


def data(classes=3, *, shift=0.0):
    X, y = make_blobs(90, DIM, centers=classes, cluster_std=4.0, random_state=0)
    return X * np.logspace(-1, 1, DIM) + shift, NAMES[classes][y]


def mlp(**options):
    return MLPClassifier(
        **{"hidden_layer_sizes": (9,), "random_state": 0, "max_iter": 40} | options
    )


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)  # of defaults that will be others
        return model.fit(X, y)


def anywhere(X):
    """Points around the data, and far beyond."""
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((200, X.shape[1])) * X.std(axis=0) * 3
    return X[rng.integers(len(X), size=200)] + noise


def check_same(model, X):
    net, x = as_shallow(model), anywhere(X)
    assert (net.predict(x) == model.predict(x.copy())).all()
    assert len(set(net.predict(x))) == len(net.labels)  # all classes are seen
    outputs = net.outputs(x)
    if hasattr(model, "decision_function"):
        scores = model.decision_function(x.copy())
        mine = outputs[1] - outputs[0] if scores.ndim == 1 else outputs.T
        np.testing.assert_allclose(mine, scores, rtol=1e-10, atol=1e-10 * np.abs(scores).max())
    else:
        mine = softmax(outputs.T, axis=1)
        np.testing.assert_allclose(mine, model.predict_proba(x.copy()), atol=1e-10)
    return net

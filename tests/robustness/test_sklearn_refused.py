"""scikit-learn models that are not shallow networks, which are refused in one sentence."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.decomposition import FastICA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from featavg import InputError
from featavg.robustness.models import as_shallow
from support.sklearn_models import DIM, data, fitted, mlp


class Cautious(LogisticRegression):
    """Says yes only where it is sure."""

    def predict(self, X):
        return np.where(self.decision_function(X) > 3, *self.classes_[::-1])


class Cutting(FunctionTransformer):  # without a function, but not the identity
    def transform(self, X):
        return np.clip(X, -8, 8)


class Clipping(StandardScaler):
    def transform(self, X, copy=None):
        return np.clip(super().transform(X, copy), -1, 1)


def refusal(model):
    with pytest.raises(InputError) as error:
        as_shallow(model)
    sentence = str(error.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_what_decides_otherwise_is_refused():
    X, y = data(2)
    assert "Cautious has its own predict" in refusal(Cautious().fit(X, y))
    model = LogisticRegression().fit(X, y)
    model.predict = lambda X: np.full(len(X), "no")
    assert "LogisticRegression has its own predict" in refusal(model)
    for step in (Clipping(), Cutting()):
        pipeline = fitted(make_pipeline(step, LogisticRegression()), X, y)
        assert f"{type(step).__name__} has its own transform" in refusal(pipeline)


def test_attributes_that_do_not_say_what_is_computed_are_refused(monkeypatch):
    """What a future version of scikit-learn may compute is compared, not only looked up."""
    X, y = data(3)
    model = fitted(make_pipeline(StandardScaler(), mlp()), X, y)
    original = StandardScaler.transform
    monkeypatch.setattr(StandardScaler, "transform", lambda self, X: original(self, X) ** 3)
    assert "'standardscaler' must transform as its attributes say" in refusal(model)
    monkeypatch.undo()
    assert as_shallow(model)
    forward = MLPClassifier._forward_pass_fast
    monkeypatch.setattr(
        MLPClassifier, "_forward_pass_fast", lambda *a, **k: forward(*a, **k)[:, ::-1]
    )
    assert "the scores of MLPClassifier are others" in refusal(model[-1])
    monkeypatch.undo()
    monkeypatch.setattr(MLPClassifier, "predict", lambda self, X: np.full(len(X), "ant"))
    assert "the predictions of MLPClassifier are others" in refusal(model[-1])


REFUSED = {
    "two layers": (lambda X, y: fitted(mlp(hidden_layer_sizes=(5, 4)), X, y), "2, of 5, 4 neurons"),
    "tanh": (lambda X, y: fitted(mlp(activation="tanh"), X, y), "'identity'; .* has 'tanh'"),
    "one class": (lambda X, y: fitted(mlp(), X, np.full(90, "a")), "at least two classes; .*has 1"),
    "many labels, mlp": (
        lambda X, y: fitted(mlp(), *many_labels()),
        "this MLPClassifier gives sev",
    ),
    "many labels, linear": (
        lambda X, y: RidgeClassifier().fit(*many_labels()),
        "one label for eac",
    ),
    "not fitted": (lambda X, y: mlp(), "be fitted first; this MLPClassifier has no coefs_"),
    "linear, not fitted": (lambda X, y: LinearSVC(), "fitted first; this LinearSVC has no coef_"),
    "regressor": (lambda X, y: MLPRegressor(), "model must be a network of one .*MLPRegressor"),
    "forest": (lambda X, y: RandomForestClassifier(5).fit(X, y), "of affine steps .*got a Random"),
    "kernel": (lambda X, y: SVC(kernel="linear").fit(X, y), "; got a SVC"),
    "no end": (lambda X, y: Pipeline([("s", StandardScaler()), ("e", "passthrough")]), "be fitted"),
    "scaler": (lambda X, y: make_pipeline(StandardScaler()).fit(X), "; got a StandardScaler"),
    "passthrough": (lambda X, y: make_pipeline("passthrough"), "; got 'passthrough'"),
}


def many_labels():
    return make_multilabel_classification(60, DIM, n_classes=3, random_state=0)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_models(case):
    make, reason = REFUSED[case]
    assert re.search(reason, refusal(make(*data(3))))


@pytest.mark.parametrize(
    ("step", "got"),
    [
        (Normalizer(), "got Normalizer"),
        (QuantileTransformer(n_quantiles=9), "got QuantileTransformer"),
        (PolynomialFeatures(), "got PolynomialFeatures"),
        (FunctionTransformer(np.cbrt), "a FunctionTransformer with a function"),
        (FastICA(3, random_state=0), "got FastICA"),
        (MinMaxScaler(clip=True), "is not with clip=True; got MinMaxScaler"),
    ],
    ids=str,
)
def test_steps_that_are_not_affine_are_refused_by_name(step, got):
    X, y = data(3)
    sentence = refusal(fitted(Pipeline([("own name", step), ("end", LogisticRegression())]), X, y))
    assert "the step 'own name' must be" in sentence
    assert got in sentence


def test_a_pipeline_that_is_not_fitted():
    X, y = data(3)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    assert "'standardscaler' must be fitted first" in refusal(model)
    model[0].fit(X)
    assert "LogisticRegression has no coef_" in refusal(model)
    model[-1].fit(X[:, :4], y)
    assert "must return the 4 coordinates" in refusal(model)

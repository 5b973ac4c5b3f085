"""Radii of scikit-learn models are those of a `ShallowNet` that decides as they do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import SparseRandomProjection
from sklearn.svm import LinearSVC

import featavg as fa
from featavg import InputError
from featavg.networks.shallow import ShallowNet
from featavg.robustness.models import as_shallow
from support.sklearn_models import DIM, check_same, data, fitted, mlp


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_mlp(classes, activation):
    X, y = data(classes)
    net = check_same(fitted(mlp(activation=activation), X, y), X)
    assert len(net.weights) == (9 if activation == "relu" else 0)
    assert set(net.labels) == set(y)


def test_the_outputs_of_an_mlp_are_those_of_its_layers():
    X, y = data(3)
    model = fitted(mlp(), X, y)
    hidden = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0)
    outputs = hidden @ model.coefs_[1] + model.intercepts_[1]
    np.testing.assert_allclose(as_shallow(model).outputs(X).T, outputs, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("kind", [object, str, np.int8, bool])
def test_labels_of_any_kind(kind):
    X, y = data(2)
    labels = y.astype(kind) if kind in (object, str) else (y == "yes").astype(kind)
    net = check_same(fitted(mlp(), X, labels), X)
    assert set(net.predict(X)) == set(labels)


def test_mlp_without_a_hidden_layer_is_linear():
    X, y = data(3)
    assert not len(check_same(fitted(mlp(hidden_layer_sizes=()), X, y), X).weights)


def test_an_mlp_of_single_precision():
    X, y = data(3)
    model = fitted(mlp(), X.astype(np.float32), y)
    assert model.coefs_[0].dtype == np.float32
    net = as_shallow(model)
    assert net.weights.dtype == np.float64
    assert (net.predict(X) == model.predict(X)).all()


LINEAR = [
    LogisticRegression(max_iter=20),
    LogisticRegression(max_iter=20, fit_intercept=False),
    LogisticRegressionCV(Cs=2, cv=3, max_iter=5),
    LinearSVC(fit_intercept=False),
    LinearSVC(),
    SGDClassifier(random_state=0),
    SGDClassifier(loss="log_loss", average=True, random_state=0),
    RidgeClassifier(),
    RidgeClassifier(fit_intercept=False),
    RidgeClassifierCV(),
    Perceptron(random_state=0),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", LINEAR, ids=str)
def test_linear_models(model, classes):
    X, y = data(classes)
    net = check_same(fitted(model, X - X.mean(axis=0), y), X - X.mean(axis=0))
    assert net.weights.shape == (0, DIM)


def test_sparse_coefficients():
    X, y = data(3)
    check_same(LogisticRegression().fit(X / 10, y).sparsify(), X / 10)


STEPS = [
    [StandardScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(with_std=False)],
    [StandardScaler(with_mean=False, with_std=False)],
    [StandardScaler(copy=False)],
    [MinMaxScaler((-1, 1))],
    [MaxAbsScaler()],
    [RobustScaler()],
    [RobustScaler(with_centering=False)],
    [RobustScaler(with_scaling=False)],
    [PCA(4)],
    [PCA(4, whiten=True)],
    [IncrementalPCA(3)],
    [TruncatedSVD(5)],
    [SparseRandomProjection(5, random_state=0)],
    [SelectKBest(k=4)],
    [VarianceThreshold(1.0)],
    ["passthrough", FunctionTransformer()],
    [StandardScaler(), "passthrough", PCA(5), VarianceThreshold(), MinMaxScaler()],
    [make_pipeline(StandardScaler(), PCA(5)), MaxAbsScaler()],
]


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("last", [RidgeClassifier(), Perceptron()], ids=str)
def test_affine_steps_are_folded_in(steps, last):
    X, y = data(3, shift=5.0)
    model = fitted(make_pipeline(*steps, last), X.copy(), y)
    assert check_same(model, X).dim == DIM


@pytest.mark.parametrize("classes", [2, 3])
def test_an_mlp_after_a_scaler_and_a_projection(classes):
    X, y = data(classes, shift=1000.0)
    model = fitted(make_pipeline(StandardScaler(), PCA(5, whiten=True), mlp()), X, y)
    net = check_same(model, X)
    assert net.weights.shape == (9, DIM)


def test_a_pipeline_at_the_end_of_a_pipeline():
    X, y = data(3)
    check_same(fitted(make_pipeline(MinMaxScaler(), make_pipeline(PCA(6), mlp())), X, y), X)


def test_a_projection_of_single_precision():
    X, y = data(3, shift=100.0)
    model = fitted(make_pipeline(PCA(4), LogisticRegression()), X.astype(np.float32), y)
    assert (as_shallow(model).predict(X) == model.predict(X)).all()


def test_a_shallow_net_and_its_like_may_end_a_pipeline():
    class Own(ClassifierMixin, BaseEstimator):
        def to_shallow(self):
            return ShallowNet([[1.0, 2.0]], [0.5], [[1.0]], [-2.0])

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return self.to_shallow().predict(X)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2)) * [1, 50] + 7
    model = make_pipeline(StandardScaler(), Own()).fit(X, np.arange(50) % 2)
    assert (as_shallow(model).predict(X) == model[-1].predict(model[0].transform(X))).all()
    assert set(as_shallow(model).predict(X)) == {0, 1}


def test_a_model_of_a_frame_gives_no_warning():
    X, y = data(2)
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    scaler = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, LogisticRegression()).fit(frame, y)
    assert (as_shallow(model).predict(X) == model.predict(frame)).all()


def test_a_frame_with_other_columns_is_refused():
    """As an array it would be other points; scikit-learn's own predict refuses it as well."""
    X, y = data(2)
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, y)
    radii = fa.exact_radii(model, frame[:5])
    assert (radii.upper == fa.exact_radii(model, X[:5]).upper).all()
    assert (fa.certified_radius(model, frame[:5]) == radii.lower).all()
    swapped = frame[list("gfedcba")][:5]
    for use in (
        lambda: fa.exact_radii(model, swapped),
        lambda: fa.certified_radius(model, swapped),
        lambda: radii.verify(model, swapped),
    ):
        with pytest.raises(InputError, match=r"in their order \(a, b, .* \(7\)\); got g, f"):
            use()


@pytest.mark.parametrize("first", ["passthrough", None, make_pipeline(None, MinMaxScaler())])
def test_columns_are_checked_behind_a_step_that_passes_points_through(first):
    X, y = data(2)
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    model = make_pipeline(first, StandardScaler(), LogisticRegression()).fit(frame, y)
    assert fa.exact_radii(model, frame[:5]).exact.all()
    with pytest.raises(InputError, match="X must have the columns that the model was fitted to"):
        fa.exact_radii(model, frame[list("gfedcba")][:5])


def test_the_model_is_not_changed_and_points_are_not_drawn_from_the_global_state():
    X, y = data(3)
    model = fitted(make_pipeline(StandardScaler(copy=False), mlp()), X.copy(), y)
    before = model.predict_proba(X.copy())
    np.random.seed(3)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    as_shallow(model)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    assert (model.predict_proba(X.copy()) == before).all()


class Talkative(LogisticRegression):
    """Overrides nothing that decides."""

    def describe(self):
        return "a model"


def test_a_subclass_that_changes_nothing_is_accepted():
    X, y = data(2)
    check_same(Talkative().fit(X / 10, y), X / 10)


def test_a_model_of_sparse_points():
    X, y = data(3)
    rows = sparse.csr_matrix(np.maximum(X, 0))
    model = fitted(make_pipeline(MaxAbsScaler(), TruncatedSVD(4), LogisticRegression()), rows, y)
    check_same(model, np.maximum(X, 0))

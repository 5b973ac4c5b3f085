from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs, make_multilabel_classification
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import SparseRandomProjection
from sklearn.svm import SVC, LinearSVC

import featavg as fa
from featavg import InputError
from featavg.networks.shallow import ShallowNet
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


class Talkative(LogisticRegression):
    """Overrides nothing that decides."""

    def describe(self):
        return "a model"


def test_a_subclass_that_changes_nothing_is_accepted():
    X, y = data(2)
    check_same(Talkative().fit(X / 10, y), X / 10)


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


def test_a_model_of_sparse_points():
    X, y = data(3)
    rows = sparse.csr_matrix(np.maximum(X, 0))
    model = fitted(make_pipeline(MaxAbsScaler(), TruncatedSVD(4), LogisticRegression()), rows, y)
    check_same(model, np.maximum(X, 0))

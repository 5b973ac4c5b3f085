"""Weights of points and classes: repeated points, refusals, and what they are for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, recall_score
from sklearn.model_selection import train_test_split

import featavg as fa
from featavg.estimators import DecoupledClassifier, load
from featavg.estimators.weights import PointWeights
from support.classifiers import BOTH, QUIET

X, Y = load_iris(return_X_y=True)
# so few points would be held out that all are used for training and for choosing when to stop
UNSPLIT = {"random_state": 0, "validation_fraction": 0.01}


def weights_of(codes, class_weight=None, sample_weight=None):
    codes = np.asarray(codes)
    given = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, float)
    return PointWeights.of(codes, np.unique(codes), class_weight, given)


@QUIET
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("scale", "class_weight"), [("norm", None), ("standard", "balanced"), (None, {0: 3.0, 2: 0.5})]
)
def test_whole_weights_are_repeated_points(kind, scale, class_weight):
    rng = np.random.default_rng(0)
    points, y = (X - X.mean(axis=0))[::3], Y[::3]  # so few that radii of all are measured
    times = rng.integers(0, 4, size=len(y))
    model = {"scale": scale, "class_weight": class_weight, **UNSPLIT}
    subclass = {"subclass": y} if kind is DecoupledClassifier else {}
    repeated = {name: values.repeat(times) for name, values in subclass.items()}
    one = kind(**model).fit(points, y, sample_weight=times, **subclass)
    other = kind(**model).fit(points.repeat(times, axis=0), y.repeat(times), **repeated)
    for method in ("decision_function", "predict_proba", "predict"):
        expected = getattr(other, method)(points)
        np.testing.assert_allclose(getattr(one, method)(points), expected, rtol=1e-6, atol=1e-9)
    for name in ("accuracy", "radius", "standard_error"):
        ours, theirs = getattr(one.frontier_, name), getattr(other.frontier_, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@QUIET
@pytest.mark.parametrize("kind", BOTH)
def test_points_of_weight_zero_do_not_count(kind):
    rng = np.random.default_rng(0)
    kept = rng.random(len(X)) < 0.7
    with_noise = np.where(kept[:, None], X, 1e3 * rng.standard_normal(X.shape))
    one = kind(random_state=0, max_iter=30).fit(with_noise, Y, sample_weight=kept)
    other = kind(random_state=0, max_iter=30).fit(X[kept], Y[kept])
    assert other.frontier_.held_out
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    if kind is DecoupledClassifier:
        assert (one.subclasses_.labels[kept] == other.subclasses_.labels).all()
        assert (one.subclasses_.labels[~kept] == -1).all()


@QUIET
@pytest.mark.parametrize("kind", BOTH)
def test_a_common_factor_does_not_matter(kind):
    w = np.random.default_rng(0).uniform(0.2, 3, size=len(X))
    fits = [kind(random_state=0, max_iter=30).fit(X, Y, sample_weight=f * w) for f in (1, 1000.0)]
    one, other = (model.decision_function(X) for model in fits)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


@QUIET
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 5.0, 2: 0.2}, "balanced"])
def test_the_accuracy_of_the_frontier_is_weighted(kind, class_weight):
    points, y = X[20:], Y[20:]
    model = kind(class_weight=class_weight, max_iter=20, **UNSPLIT).fit(points, y)
    each = class_weight
    if class_weight == "balanced":
        each = dict(enumerate(len(y) / (3 * np.bincount(y))))
    w = np.array([each[c] for c in y])
    expected = accuracy_score(y, model.predict(points), sample_weight=w)
    frontier = model.frontier_
    assert frontier.accuracy[frontier.chosen] == pytest.approx(expected)
    assert frontier.effective_points == pytest.approx(w.sum() ** 2 / np.square(w).sum())


def test_effective_points():
    assert weights_of([0, 0, 1, 1]).effective_points == 4
    assert weights_of([0, 0, 1, 1], sample_weight=[3, 3, 3, 3]).effective_points == 12
    assert weights_of([0, 0, 1, 1], sample_weight=[0.5] * 4).effective_points == 4
    kish = weights_of([0, 0, 1, 1], sample_weight=[0.5, 1, 1, 1.5]).effective_points
    assert kish == pytest.approx(4**2 / 4.5)
    # of repeated points with class weights: as if they were repeated
    times = np.array([3, 1, 2])
    short = weights_of([0, 1, 1], {0: 2.0, 1: 0.5}, times)
    long = weights_of(np.repeat([0, 1, 1], times), {0: 2.0, 1: 0.5})
    assert short.effective_points == pytest.approx(long.effective_points)


def test_medians_and_shares_are_those_of_repeated_points():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 9))
        values, times = rng.integers(0, 5, size=n) / 3, rng.integers(1, 5, size=n)
        weights = PointWeights(times / times.mean(), times.astype(float))
        assert weights.median(values) == pytest.approx(np.median(values.repeat(times)))
        is_so = rng.random(n) < 0.5
        assert weights.share(is_so) == pytest.approx(is_so.repeat(times).mean())
        assert weights.share(np.ones(n, dtype=bool)) == 1


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize("kind", BOTH)
def test_a_rare_class_is_found_when_classes_are_balanced(kind):
    """5 % of the points, with overlap: nearly as many as logistic regression finds."""
    recalls = {name: [] for name in ("linear", "plain", "balanced")}
    for seed in range(3):
        x, y = make_classification(2000, 20, weights=[0.95], class_sep=0.8, random_state=seed)
        x, x_test, y, y_test = train_test_split(x, y, stratify=y, random_state=0)
        for name, model in (
            ("linear", LogisticRegression(class_weight="balanced")),
            ("plain", kind(random_state=0)),
            ("balanced", kind(random_state=0, class_weight="balanced")),
        ):
            recalls[name].append(recall_score(y_test, model.fit(x, y).predict(x_test)))
        assert recalls["balanced"][-1] > recalls["linear"][-1] - 0.1
    assert np.mean(recalls["balanced"]) > np.mean(recalls["linear"]) - 0.03
    assert np.mean(recalls["plain"]) < 0.5  # so there was something to mend


@QUIET
def test_class_weights_are_saved(tmp_path):
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    model = DecoupledClassifier(2, class_weight={"setosa": 2.0}, max_iter=5).fit(X, names)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.class_weight == {"setosa": 2.0}
    assert again.frontier_.effective_points == model.frontier_.effective_points


@pytest.mark.parametrize("kind", BOTH)
def test_bad_weights_are_refused_in_words(kind):
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        kind().fit(X, Y, sample_weight=np.where(Y, 1, -1))
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        kind().fit(X, Y, sample_weight=np.where(Y, 1, np.nan))
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(2,\)"):
        kind().fit(X, Y, sample_weight=[1, 1])
    with pytest.raises(fa.InputError, match="points of positive weight .*; got none of 0."):
        kind().fit(X, Y, sample_weight=Y)
    with pytest.raises(fa.InputError, match="points of positive weight .*; got none of 1."):
        kind(class_weight={1: 0}).fit(X, Y)
    with pytest.raises(fa.InputError, match="class_weight must be 'balanced', a mapping"):
        kind(class_weight="equal").fit(X, Y)
    with pytest.raises(fa.InputError, match="class_weight must be at least 0"):
        kind(class_weight={1: -1}).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight|classes"):
        kind(class_weight={7: 1}).fit(X, Y)


@QUIET
@pytest.mark.parametrize("kind", BOTH)
def test_sparse_points_are_refused_in_words(kind):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        kind().fit(sparse.csr_array(X), Y)
    model = kind(max_iter=5).fit(X, Y)
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        model.predict_radius(sparse.csr_array(X))

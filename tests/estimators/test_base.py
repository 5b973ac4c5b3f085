"""What both classifiers do, as scikit-learn asks for it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import featavg as fa
from featavg.estimators import AveragingClassifier, DecoupledClassifier
from support.classifiers import BOTH, QUIET


@pytest.mark.slow
@QUIET  # the seed is not fixed, and some checks have a few points of noise
@parametrize_with_checks([AveragingClassifier(), DecoupledClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize("model", [AveragingClassifier(), DecoupledClassifier()])
def test_radius_is_in_units_of_the_input(model, digits):
    X, digit, X_test, _ = digits
    model = clone(model).set_params(random_state=0, max_iter=30)
    radius = model.fit(X, digit >= 5).predict_radius(X_test[:20])
    moved = clone(model).fit(1000 * X + 50, digit >= 5).predict_radius(1000 * X_test[:20] + 50)
    assert moved == pytest.approx(1000 * radius, rel=1e-3)


def models_to_attack(digits, law):
    X, digit, X_test, _ = digits
    y = digit >= 5
    train, test = law
    yield AveragingClassifier(random_state=0, max_iter=60).fit(X, y), X_test[:20]
    yield AveragingClassifier(2, random_state=0, max_iter=20).fit(X, digit % 3), X_test[:10]
    # radii of the probability readout take long, and so does choosing a step by them
    for readout, train_points, points in (("argmax", len(X), 20), ("probability", 100, 6)):
        few = DecoupledClassifier(3, readout=readout, random_state=0, max_iter=10)
        some = slice(train_points)
        yield few.fit(X[some], y[some]), X_test[:points]
        yield clone(few).fit(X[some], digit[some] % 3), X_test[: points // 2]
    yield DecoupledClassifier(5, random_state=0, max_iter=20).fit(train.x, train.y), test.x[:10]


def binary_contests(head, c):
    """Return binary networks and the label of class c; c wins where it wins all of them."""
    if head.net.has_one_output:
        return [(head.net, 1 if c == 1 else -1)]
    if head.readout == "probability":
        return head.contests(c)
    own = np.flatnonzero(head.class_of == c).tolist()
    return [(head.net.with_positive(own), 1)]


@pytest.mark.slow
@QUIET
def test_no_attack_beats_the_radius(digits, law):
    rng = np.random.default_rng(0)
    for model, x in models_to_attack(digits, law):
        radius = model.certify(x, n_jobs=1).lower
        scaled = model.scaling_.apply(x)
        predicted = model.head_.predict(scaled)
        shortest = np.full(len(x), np.inf)
        for c in np.unique(predicted):
            own = np.flatnonzero(predicted == c)
            for net, sign in binary_contests(model.head_, int(c)):
                label = np.full(len(own), sign)
                found = fa.minimal_norm(net, scaled[own], label)
                shortest[own] = np.minimum(shortest[own], found.upper / model.scaling_.factor)
                for i in own[:3]:
                    inside = 0.999999 * radius[i] * model.scaling_.factor
                    attack = fa.pgd(
                        net,
                        scaled[[i]],
                        [sign],
                        radius=float(inside),
                        rng=rng,
                        restarts=3,
                    )
                    assert not attack.success.any()
        assert (shortest >= radius * (1 - 1e-6)).all()


@pytest.mark.slow
@QUIET
def test_attacks_in_input_space_change_what_is_predicted_only_beyond_the_radius(digits):
    """Not through the network's own view: steps in the space of X, judged by `predict`."""
    X, digit, X_test, _ = digits
    rng = np.random.default_rng(0)
    for model in (AveragingClassifier(random_state=0), DecoupledClassifier(6, random_state=0)):
        model.fit(X, digit >= 5)
        x = X_test[:100]
        predicted, radius = model.predict(x), model.predict_radius(x, n_jobs=1)
        others = X[model.predict(X) != predicted[0]]
        turned = 0
        for share in (0.9999, 1.5):
            for start in range(20):
                toward = rng.standard_normal(x.shape) if start < 5 else others[start] - x
                toward *= (share * radius / np.linalg.norm(toward, axis=1))[:, None]
                changed = model.predict(x + toward) != predicted
                if share < 1:
                    assert not changed.any()
                turned += changed.sum()
        assert turned > 0  # the attack is able to turn something


@QUIET
def test_radius_is_exact_for_the_argmax_readout(digits):
    """Just beyond the radius there is a perturbation that changes the prediction."""
    X, digit, X_test, _ = digits
    model = DecoupledClassifier(3, random_state=0).fit(X, digit >= 5)
    x = X_test[:40]
    radius, predicted = model.predict_radius(x, n_jobs=1), model.predict(x)
    scaled, scaling = model.head_.net, model.scaling_
    weights = scaled.weights * scaling.factor  # the network that takes points as they were given
    net = scaled.with_parameters(weights, scaled.biases - weights @ scaling.shift)
    found = fa.exact_radii(net, x, np.where(net.predict(x) == 1, 1, -1), jobs=1)
    assert found.upper == pytest.approx(radius, rel=1e-6)
    assert (model.predict(x + found.perturbations * (1 + 1e-6)) != predicted).all()


@pytest.mark.slow
@QUIET
def test_processes_are_counted_as_scikit_learn_does(digits):
    X, digit, X_test, _ = digits
    model = DecoupledClassifier(3, random_state=0).fit(X, digit >= 5)
    one, all_cores = (model.predict_radius(X_test[:10], n_jobs=n) for n in (1, -1))
    np.testing.assert_array_equal(one, all_cores)


@QUIET
def test_lower_radii_are_certified_and_near(digits):
    X, digit, X_test, _ = digits
    model = DecoupledClassifier(6, random_state=0).fit(X, digit >= 5)
    x = model.scaling_.apply(X_test[:100])
    predicted = model.head_.predict(x)
    exact = model.head_.radii(x, predicted).upper
    quick = model.head_.lower_radii(x, predicted, max_nodes=100)
    assert (quick <= exact * (1 + 1e-9)).all()
    assert np.median(quick / exact) > 0.9


@QUIET
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    X, y = load_iris(return_X_y=True)
    names = ["a", "b", "c", "d"]
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate(names)})
    labels = frames.Series([("setosa", "versicolor", "virginica")[i] for i in y])
    model = DecoupledClassifier(random_state=0).fit(frame, labels)
    assert list(model.feature_names_in_) == names
    plain = DecoupledClassifier(random_state=0).fit(X, np.asarray(labels))
    assert (model.predict(frame) == plain.predict(X)).all()
    assert model.score(frame, labels) > 0.85
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])


@pytest.mark.slow
@QUIET
def test_pipeline_search_and_scores():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), AveragingClassifier(random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85
    grid = {"averagingclassifier__robustness": [0.0, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    fine = GridSearchCV(DecoupledClassifier(random_state=0), {"width": [1, 2]}, cv=2)
    fine.fit(X, y == 0, subclass=y)
    assert fine.best_estimator_.subclasses_.counts == {False: 2, True: 1}


@pytest.mark.parametrize("kind", BOTH)
def test_bad_input_is_refused_in_words(kind):
    X = np.random.default_rng(0).standard_normal((20, 4))
    y = [0, 1] * 10
    with pytest.raises(ValueError, match="Input X contains NaN"):
        kind().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="contains only one class"):
        kind().fit(X, [0] * 20)
    with pytest.raises(ValueError, match="class"):
        kind().fit(X[:1], [0])
    with pytest.raises(ValueError, match="Unknown label type"):
        kind().fit(X, np.array([0, "a"] * 10, dtype=object))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        kind().fit(X, np.linspace(0, 1, 20))
    for method in ("predict", "predict_proba", "decision_function", "predict_radius"):
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(X)
    with pytest.raises(NotFittedError):
        DecoupledClassifier().predict_subclass(X)
    for name, value in {
        "width": 0,
        "robustness": -1,
        "learning_rate": "fast",
        "max_iter": 0.5,
        "validation_fraction": 1.0,
        "init_scale": 0,
    }.items():
        with pytest.raises(fa.InputError, match=name):
            kind(**{name: value}).fit(X, y)


@QUIET
@pytest.mark.parametrize("kind", BOTH)
def test_constant_columns_and_points_are_no_trouble(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(40), np.full(40, 7.0), np.zeros(40)])
    y = (X[:, 0] > 0).astype(int)
    assert kind(random_state=0).fit(X, y).score(X, y) > 0.9
    same = kind(random_state=0).fit(np.ones((20, 3)), [0, 1] * 10)
    assert np.isfinite(same.predict_proba(np.ones((2, 3)))).all()

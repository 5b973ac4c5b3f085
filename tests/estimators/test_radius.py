"""The classifier that is trained on its own certified radius."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import featavg as fa
from featavg.estimators import RadiusClassifier, load

X, Y = load_iris(return_X_y=True)
QUICK = {"max_iter": 150, "random_state": 0}


@pytest.mark.slow
@parametrize_with_checks([RadiusClassifier(max_iter=60)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_coarse_labels_are_enough_on_the_law(law, on_the_law):
    """Within 4 % of the radius of fine labels, where cross-entropy has half of it."""
    train, test = law
    model = RadiusClassifier(random_state=0).fit(train.x, train.y)
    assert model.score(test.x, test.y) == 1
    radius = np.median(model.predict_radius(test.x))
    assert radius > 0.96 * np.sqrt(3072 / 2)
    averaging = on_the_law[0]
    assert radius > 2 * np.median(averaging.predict_radius(test.x))
    # pieces are known up to a common vector: each has one centre of its class, and of the others
    # equally little
    inner = model.head_.weights @ train.centers.T
    own = inner.argmax(axis=1)
    for piece, c in enumerate(model.head_.class_of):
        is_positive = np.isin(np.arange(10), train.law.positive_clusters)
        side = np.flatnonzero(is_positive == (c == 1))
        others = np.setdiff1d(side, own[piece])
        assert inner[piece, others].max() < 0.1 * inner[piece, own[piece]]
        assert np.ptp(inner[piece, others]) < 0.1 * inner[piece, own[piece]]


@pytest.mark.slow
def test_no_attack_beats_the_radius(digits):
    """Steps along the gradients of all pairs of pieces, judged by `predict`."""
    data, digit, x, _ = digits
    rng = np.random.default_rng(0)
    # with 128 features, as "auto" may have, the search does not always end at the exact radius
    for classes, options in (
        (digit >= 5, {"features": None, "prototypes": False}),
        (digit >= 5, {"features": None, "prototypes": True}),
        (digit % 3, {"features": None}),
        (digit >= 5, {"features": 16}),
    ):
        model = RadiusClassifier(pieces=6, **QUICK, **options).fit(data, classes)
        points = x[:12]
        predicted = model.predict(points)
        closed = model.predict_radius(points, exact=False)
        exact = model.certify(points, n_jobs=1)
        assert (closed <= exact.lower * (1 + 1e-9)).all()
        assert exact.exact.all()
        assert (model.predict(points + exact.perturbations) != predicted).all()
        others = data[rng.permutation(len(data))[:40]]
        for toward in (*(others - points[:1]), *rng.standard_normal((20, x.shape[1]))):
            step = np.tile(toward, (len(points), 1))
            step *= (0.99999 * exact.lower / np.linalg.norm(step, axis=1))[:, None]
            assert (model.predict(points + step) == predicted).all()
        shallow = fa.exact_radii(model, points, certificates=False, jobs=1)
        assert shallow.lower == pytest.approx(model.predict_radius(points, n_jobs=1), rel=1e-5)


@pytest.mark.slow
def test_no_attack_beats_the_bounds_of_the_default_shape(digits):
    """Its search may end before the exact radius: the bounds must hold wherever it ends."""
    data, digit, x, _ = digits
    rng, points = np.random.default_rng(0), x[:12]
    model = RadiusClassifier(pieces=6, **QUICK).fit(data, digit >= 5)
    predicted = model.predict(points)
    found = model.certify(points, n_jobs=1, max_nodes=20)
    assert (found.lower <= found.upper).all()
    assert (model.predict_radius(points, exact=False) <= found.upper).all()
    assert (model.predict(points + found.perturbations) != predicted).all()
    for toward in (*found.perturbations, *(data[rng.permutation(len(data))[:40]] - points[:1])):
        step = np.tile(toward, (len(points), 1))
        reach = 0.99999 * np.maximum(found.lower, model.predict_radius(points, exact=False))
        step *= (reach / np.linalg.norm(step, axis=1))[:, None]
        assert (model.predict(points + step) == predicted).all()


def test_robustness_moves_along_the_frontier():
    """Of one shape: which shape is chosen depends on `robustness` too."""
    shape = {"pieces": 4, "features": None}
    kinds = [RadiusClassifier(robustness=r, **shape, **QUICK).fit(X, Y) for r in (0.0, 4.0)]
    accurate, robust = (model.frontier_ for model in kinds)
    assert accurate.knob == "margin"
    assert accurate.accuracy[accurate.chosen] == accurate.accuracy.max()
    assert robust.radius[robust.chosen] >= accurate.radius[accurate.chosen]
    assert kinds[1].margin_ == robust.values[robust.chosen]


def test_a_given_margin_is_in_units_of_the_input():
    one = RadiusClassifier(margin=0.5, pieces=2, **QUICK).fit(X, Y)
    scaled = RadiusClassifier(margin=500.0, pieces=2, **QUICK).fit(1000 * X, Y)
    assert scaled.margin_ == pytest.approx(1000 * one.margin_)
    assert scaled.predict_radius(1000 * X[::10]) == pytest.approx(
        1000 * one.predict_radius(X[::10]), rel=1e-4
    )


def test_features_of_very_different_scales():
    """Unscaled wine: a warning, or features scaled one by one; radii in the units of X."""
    x, y = load_wine(return_X_y=True)
    train, test, y_train, y_test = train_test_split(x, y, stratify=y, random_state=0)
    with pytest.warns(fa.FeatureScaleWarning, match="scale"):
        RadiusClassifier(**QUICK).fit(train, y_train)
    model = RadiusClassifier(scale="standard", **QUICK).fit(train, y_train)
    assert model.score(test, y_test) > 0.95
    radii = model.certify(test[:20], n_jobs=1)
    assert np.linalg.norm(radii.perturbations, axis=1) == pytest.approx(radii.upper)
    turned = model.predict(test[:20] + radii.perturbations * (1 + 1e-6))
    assert (turned != model.predict(test[:20])).all()


@pytest.mark.slow
def test_rare_classes_are_found_when_classes_are_balanced():
    recalls = []
    for seed in range(3):
        x, y = make_classification(2000, 20, weights=[0.95], class_sep=0.8, random_state=seed)
        x, x_test, y, y_test = train_test_split(x, y, stratify=y, random_state=seed)
        options = {"class_weight": "balanced"}
        rare = y_test == 1
        linear = LogisticRegression(**options).fit(x, y).predict(x_test)[rare].mean()
        ours = RadiusClassifier(**options, random_state=0).fit(x, y).predict(x_test)[rare].mean()
        recalls.append((ours, linear))
    ours, linear = np.mean(recalls, axis=0)
    assert ours > linear - 0.05


def test_probabilities_are_calibrated():
    """They are no worse than those of a logistic regression, in a problem with overlap."""
    x, y = make_classification(1500, 10, class_sep=0.5, flip_y=0.1, random_state=1)
    x, x_test, y, y_test = train_test_split(x, y, random_state=0)
    model = RadiusClassifier(**QUICK).fit(x, y)
    linear = LogisticRegression().fit(x, y)
    assert log_loss(y_test, model.predict_proba(x_test)) < 1.05 * log_loss(
        y_test, linear.predict_proba(x_test)
    )


@pytest.mark.parametrize("number", [1, 2])
def test_a_few_known_subclasses_are_used(number):
    rng = np.random.default_rng(2)
    train = fa.MultiCluster(clusters=4, dim=200).sample(200, rng=rng)
    few = np.full(200, np.nan)
    for cluster in range(4):
        few[np.flatnonzero(train.cluster == cluster)[:number]] = cluster
    model = RadiusClassifier(pieces=2, features=None, **QUICK).fit(train.x, train.y, subclass=few)
    # piece 0 of each class is that of the subclass that comes first
    owner = (model.head_.weights @ train.centers.T).argmax(axis=1)
    assert sorted(owner.tolist()) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="inconsistent numbers"):
        RadiusClassifier(**QUICK).fit(train.x, train.y, subclass=few[:5])


@pytest.mark.parametrize("missing", [float("nan"), None, pd.NA, ""])
def test_unknown_subclasses_among_names_are_not_names(missing):
    rng = np.random.default_rng(2)
    train = fa.MultiCluster(clusters=4, dim=20).sample(80, rng=rng)
    names = [f"cluster {c}" if i % 2 else missing for i, c in enumerate(train.cluster)]
    data = QUICK | {"pieces": 2, "features": None}
    one, other = (
        RadiusClassifier(**data).fit(train.x, train.y, subclass=given).head_
        for given in (names, np.where(np.arange(80) % 2, train.cluster, np.nan))
    )
    assert one.weights.shape == (4, 20)
    assert (one.weights == other.weights).all()
    with pytest.raises(fa.InputError, match="must not have missing values"):
        fa.DecoupledClassifier().fit(train.x, train.y, subclass=names)


def test_a_saved_classifier_is_the_same(tmp_path):
    for options in ({"features": None}, {"features": 8}, {"prototypes": True}):
        model = RadiusClassifier(pieces=2, **options, **QUICK).fit(X, Y)
        model.save(tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        assert isinstance(again, RadiusClassifier)
        assert (again.predict_proba(X) == model.predict_proba(X)).all()
        assert (again.predict_radius(X[::15]) == model.predict_radius(X[::15])).all()
        assert repr(again.frontier_) == repr(model.frontier_)
        assert again.margin_ == model.margin_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pieces": 0}, "pieces must be"),
        ({"pieces": "many"}, "pieces must be"),
        ({"features": 3}, "even number"),
        ({"prototypes": "never"}, "prototypes must be"),
        ({"prototypes": 2}, "prototypes must be"),
        ({"margin": -1.0}, "margin must be"),
        ({"margin": "large"}, "margin must be"),
        ({"robustness": -1}, "robustness must be"),
        ({"validation_fraction": 1.0}, "below 1"),
        ({"scale": "max"}, "scale must be"),
        ({"class_weight": "even"}, "class_weight must be"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(options, message):
    with pytest.raises(fa.InputError, match=message):
        RadiusClassifier(**options).fit(X, Y)


@pytest.mark.parametrize("scale", ["norm", "standard", None])
@pytest.mark.parametrize("x", [np.zeros((5, 2)), np.zeros((300, 3)), np.full((40, 3), 0.1)])
def test_points_that_are_all_the_same_are_refused(x, scale):
    """There is nothing to train on: zeros ended in an error of linear algebra."""
    message = rf"X must have points that differ; got {len(x)} points that are all the same\.$"
    with pytest.raises(fa.InputError, match=message):
        RadiusClassifier(scale=scale, **QUICK).fit(x, np.arange(len(x)) % 2)


@pytest.mark.parametrize("scale", ["norm", "standard", None])
@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_sizes_whose_squares_are_out_of_range_are_refused(size, scale):
    """An AssertionError said that the best path is as robust as itself, which NaN is not."""
    with pytest.raises(fa.InputError, match=r"X must have a spread from 1e-\d+ to 1e\+\d+ .*; got"):
        RadiusClassifier(scale=scale, **QUICK).fit(size * X, Y)


def test_a_size_within_the_range_changes_nothing_but_the_units():
    options = QUICK | {"pieces": 2, "features": None}
    one, other = (RadiusClassifier(**options).fit(s * X, Y) for s in (1.0, 2.0**300))
    assert (one.predict(X) == other.predict(2.0**300 * X)).all()
    assert other.margin_ == 2.0**300 * one.margin_


def test_many_classes_and_few_points():
    rng = np.random.default_rng(0)
    x = StandardScaler().fit_transform(rng.standard_normal((60, 5)))
    model = RadiusClassifier(**QUICK).fit(x, np.arange(60) % 20)
    assert model.predict_proba(x).shape == (60, 20)
    assert (model.predict_radius(x, n_jobs=1) >= 0).all()


def test_radii_through_a_pipeline_are_in_units_of_its_input():
    x, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(6), RadiusClassifier(**QUICK)).fit(x, y)
    points = x[::18]
    radii = fa.certified_radius(model, points, n_jobs=1)
    found = fa.exact_radii(model, points, jobs=1)
    assert radii == pytest.approx(found.lower)
    assert (model.predict(points + found.perturbations) != model.predict(points)).all()
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = rng.standard_normal(points.shape)
        step *= (0.9999 * radii / np.linalg.norm(step, axis=1))[:, None]
        assert (model.predict(points + step) == model.predict(points)).all()

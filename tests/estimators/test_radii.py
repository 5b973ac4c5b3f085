"""Radii of the classifiers: which are exact, and what is said where they are not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError

import featavg as fa
from featavg.estimators import AveragingClassifier, DecoupledClassifier
from featavg.estimators.heads import Head
from featavg.estimators.scaling import Scaling
from support.classifiers import BOTH, QUIET
from support.shallow_oracles import brute_force, nearest

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def silent_head(classes=3, readout="argmax"):
    """Return a head of three groups that are silent around the origin, as far as 1 from it."""
    net = fa.MultiClassNet(
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]],
        classes=3,
        positive=[1],
        readout=readout,
        biases=[-1.0, -1.0, -1.0],
    )
    return Head(net, np.arange(3) % classes)


def by_exhaustion(net, x, labels):
    sides = [(net.labels == label, net.labels != label) for label in labels]
    return np.array([brute_force(net, p, *s) for p, s in zip(x, sides, strict=True)])


def test_a_silent_region_belongs_to_the_first_class():
    """By hand: class 0 is left where relu(x2 - 1) or relu(-x1 - 1) becomes the largest output."""
    x = np.array([[0.0, 0.0], [-0.5, 0.2], [0.5, 0.5], [0.0, 3.0], [0.0, 0.9]])
    head = silent_head()
    assert head.predict(x).tolist() == [0, 0, 0, 1, 0]
    radii = head.radii(x, head.predict(x))
    assert radii.exact.all()
    assert radii.lower == pytest.approx([1.0, 0.5, 0.5, 2.0, 0.1])
    assert (head.predict(x + radii.perturbations) != head.predict(x)).all()
    # silence is not a reason for class 1, and class 2 joined with class 0 leaves one way out
    assert head.radii(x[:1], np.array([1])).upper == pytest.approx(0)
    assert silent_head(2).radii(x, np.array([0, 0, 0, 1, 0])).lower == pytest.approx(
        [1.0, 0.8, 0.5, 2.0, 0.1]
    )


@QUIET
def test_silent_points_of_a_fitted_classifier_have_a_radius():
    """At some of these points every output is 0; the prediction is constant around them."""
    rng = np.random.default_rng(1)
    points, y = rng.standard_normal((400, 2)), rng.integers(3, size=400)
    model = AveragingClassifier(1, random_state=0, max_iter=60).fit(points, y)
    outputs = model.head_.net.outputs(model.scaling_.apply(points))
    silent = points[(outputs == 0).all(axis=0)]
    assert len(silent) > 10
    assert (model.predict(silent) == 0).all()
    radii = model.certify(silent, n_jobs=1)
    assert radii.exact.all()
    assert (radii.lower > 0).all()
    W, z = model.to_shallow().weights, model.head_.net.preactivations(model.scaling_.apply(silent))
    for found, (a, b, c) in zip(radii.lower, z.T, strict=True):
        # one of the later classes becomes positive, and larger than the first one
        ways = [
            nearest(np.array([-W[j], W[0] - W[j]]), np.array([ahead, ahead - a]))
            for j, ahead in ((1, b), (2, c))
        ]
        assert found == pytest.approx(min(ways), rel=1e-6)


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize(
    "model",
    [
        AveragingClassifier(3, random_state=0, max_iter=20),
        AveragingClassifier(2, random_state=0, max_iter=20),
        DecoupledClassifier(2, random_state=0, max_iter=20),
    ],
)
@pytest.mark.parametrize("names", [NAMES, NAMES[[0, 1, 1]], NAMES.astype(object), np.arange(3)])
def test_radii_are_those_of_the_network_in_units_of_the_input(model, names):
    y = names[Y]
    model.fit(X, y)
    net = model.to_shallow()
    assert (net.predict(X) == model.predict(X)).all()
    x = X[::10]
    radii = model.certify(x, n_jobs=1)
    assert radii.exact.all()
    expected = by_exhaustion(net, x, model.predict(x))
    assert radii.lower == pytest.approx(expected, rel=1e-6)
    assert fa.exact_radii(model, x, jobs=1).lower == pytest.approx(expected, rel=1e-6)
    np.testing.assert_array_equal(model.predict_radius(x, n_jobs=1), radii.lower)
    moved = x + radii.perturbations * (1 + 1e-6)
    assert (model.predict(moved) != model.predict(x)).all()
    assert np.linalg.norm(radii.perturbations, axis=1) == pytest.approx(radii.upper, rel=1e-4)
    assert radii.verify(model, x).holds


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize("model", [AveragingClassifier(1, max_iter=9), DecoupledClassifier(2)])
def test_with_labels_misclassified_points_have_the_radius_zero(model):
    y = NAMES[Y]
    model.set_params(random_state=0).fit(X, y)
    wrong = model.predict(X) != y
    assert 0 < wrong.sum() < 75
    radii = model.certify(X, y, n_jobs=1)
    assert (radii.upper[wrong] == 0).all()
    np.testing.assert_array_equal(radii.lower[~wrong], model.certify(X[~wrong], n_jobs=1).lower)
    np.testing.assert_allclose(fa.exact_radii(model, X, y).lower, radii.lower, rtol=1e-6)


@QUIET
@pytest.mark.parametrize("kind", BOTH)
def test_bad_input_is_refused_in_words(kind):
    model = kind(random_state=0, max_iter=5)
    for method in (model.certify, model.predict_radius):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(NotFittedError):
        model.to_shallow()
    model.fit(X, NAMES[Y])
    with pytest.raises(fa.InputError, match=r"\('setosa', .*\); got 'rose'\."):
        model.certify(X[:2], ["setosa", "rose"])
    with pytest.raises(fa.InputError, match="one class for each of the 2 points; got 3"):
        model.certify(X[:2], NAMES)
    with pytest.raises(fa.InputError, match="time_limit must be"):
        model.predict_radius(X[:2], time_limit=0)
    with pytest.raises(fa.InputError, match="max_nodes must be"):
        model.certify(X[:2], max_nodes=0)


def wide_model():
    """Return a classifier of 60 neurons whose initial weights survive training, and points."""
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    net = fa.BinaryNet.init(train, width=30, weight_scale=1e-3, bias_scale=1e-3, rng=rng)
    net = fa.descend(net, train, learning_rate=1e-3, steps=100).net
    model = AveragingClassifier(1, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.x[:50], train.y[:50])
    model.head_, model.scaling_ = Head(net, np.arange(2)), Scaling(np.zeros(3072), 1.0)
    return model, train.fresh(4, rng=rng).x


@pytest.mark.slow
def test_wide_networks_have_radii_that_are_exact_or_said_not_to_be():
    """Here 9.50 was returned without a word, where an attack changes the prediction at 15.98."""
    model, x = wide_model()
    net = model.head_.net
    attack = fa.minimal_norm(net, x, net.predict(x)).upper
    radii = model.certify(x, n_jobs=1)
    assert (radii.lower <= attack * (1 + 1e-9)).all()
    assert (radii.lower > 0.99 * attack).all()
    if radii.exact.all():
        assert (model.predict_radius(x, n_jobs=1) == radii.lower).all()  # without a warning
    else:
        with pytest.warns(fa.CertificationWarning):
            model.predict_radius(x, n_jobs=1)


@pytest.mark.slow
def test_radii_that_are_only_bounds_are_announced():
    model, x = wide_model()
    exact = model.certify(x, n_jobs=1)
    short = model.certify(x, n_jobs=1, time_limit=1e-6)
    assert not short.exact.any()
    with pytest.warns(fa.CertificationWarning) as caught:
        lower = model.predict_radius(x, n_jobs=1, time_limit=1e-6)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert f"{len(x)} of {len(x)} radii are lower bounds only, up to " in str(caught[0].message)
    assert (lower <= exact.upper * (1 + 1e-9)).all()
    assert (short.upper >= exact.lower * (1 - 1e-9)).all()
    np.testing.assert_array_equal(lower < exact.lower * (1 - 1e-6), np.full(len(x), True))


@pytest.mark.slow
@QUIET
def test_the_probability_readout_has_a_bracket():
    y = NAMES[Y]
    model = DecoupledClassifier(2, random_state=0, max_iter=9).fit(X, y)
    model.head_ = replace(model.head_, net=model.head_.net.with_readout("probability"))
    x = X[::15]
    radii = model.certify(x, n_jobs=1)
    assert (radii.lower <= radii.upper).all()
    moved = x + radii.perturbations * (1 + 1e-6)
    assert (model.predict(moved) != model.predict(x)).all()
    assert (radii.gap < 1e-3).all()  # too little to warn of
    np.testing.assert_array_equal(model.predict_radius(x, n_jobs=1), radii.lower)
    with pytest.raises(fa.InputError, match="got the readout 'probability'"):
        model.to_shallow()
    with pytest.raises(fa.InputError, match="only with the argmax readout"):
        fa.exact_radii(model, x)


def test_where_classes_are_as_probable_the_first_one_is_predicted():
    """By hand: all outputs are 0 within 1 of the origin; then a later class is more probable."""
    head = silent_head(readout="probability")
    x = np.array([[0.0, 0.0], [-0.5, 0.2], [0.0, 3.0], [0.0, 0.9]])
    assert head.predict(x).tolist() == [0, 0, 1, 0]
    radii = head.radii(x, head.predict(x))
    assert radii.upper == pytest.approx([1.0, 0.5, 2.0, 0.1], rel=1e-3)
    assert (head.predict(x + radii.perturbations) != head.predict(x)).all()
    assert (head.radii(x[:2], np.array([1, 2])).upper == 0).all()


def test_silent_points_of_the_probability_readout_have_a_lower_bound():
    radii = silent_head(readout="probability").radii(np.zeros((1, 2)), np.array([0]))
    assert radii.lower == pytest.approx([1.0], rel=0.5)


@pytest.mark.slow
@QUIET
def test_no_certified_radius_of_the_probability_readout_is_zero():
    points, y = make_blobs(200, 2, centers=3, cluster_std=4, random_state=0)
    model = DecoupledClassifier(2, random_state=0, max_iter=100).fit(points, y)
    model.head_ = replace(model.head_, net=model.head_.net.with_readout("probability"))
    radii = model.certify(points[:40], n_jobs=1)
    assert (radii.upper > 1e-3).all()
    assert (radii.lower > 0).all()

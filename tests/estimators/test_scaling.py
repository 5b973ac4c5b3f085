"""Scaling of points: factors, radii in the units of the input, and the warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import featavg as fa
from featavg.estimators import AveragingClassifier, DecoupledClassifier, load
from featavg.estimators.heads import Head
from featavg.estimators.scaling import Scaling
from support.classifiers import BOTH, QUIET
from support.shallow_oracles import brute_force

X, Y = load_iris(return_X_y=True)


def uneven(rng, points=50):
    """Return points whose columns have very different scales, one of them constant."""
    return rng.standard_normal((points, 4)) * [1, 1e-3, 0, 1e6] + [0, 5, 7, -1e6]


@pytest.mark.parametrize("scale", ["norm", "standard"])
def test_scaled_points_have_mean_0_and_the_mean_squared_norm_of_the_paper(scale, rng):
    x = uneven(rng)
    scaled = Scaling.of(x, scale).apply(x)
    assert np.abs(scaled.mean(axis=0)).max() < 1e-9
    assert np.square(scaled).sum(axis=1).mean() == pytest.approx(4)


def test_standard_is_that_of_scikit_learn(rng):
    x = uneven(rng)
    scaling, theirs = Scaling.of(x, "standard"), StandardScaler().fit(x)
    np.testing.assert_allclose(scaling.shift, theirs.mean_, rtol=1e-12)
    # the same, but for the common factor that makes up for the constant column
    np.testing.assert_allclose(scaling.factor, np.sqrt(4 / 3) / theirs.scale_, rtol=1e-9)


@pytest.mark.parametrize("scale", ["norm", "standard"])
def test_whole_weights_are_repeated_points(scale, rng):
    x, times = uneven(rng), rng.integers(1, 5, size=50)
    weighted = Scaling.of(x, scale, times / 7)
    repeated = Scaling.of(x.repeat(times, axis=0), scale)
    np.testing.assert_allclose(weighted.shift, repeated.shift, rtol=1e-9)
    np.testing.assert_allclose(weighted.factor, repeated.factor, rtol=1e-9)


@pytest.mark.parametrize("scale", ["norm", "standard", None])
def test_undo_and_affine_are_those_of_apply(scale, rng):
    x = uneven(rng)
    scaling = Scaling.of(x, scale)
    np.testing.assert_allclose(scaling.undo(scaling.apply(x)), x, rtol=1e-9)
    factors, offset = scaling.affine
    np.testing.assert_allclose(factors * x + offset, scaling.apply(x), atol=1e-8)


def test_extreme_and_equal_points_have_factors_that_are_numbers():
    for x in (np.full((5, 2), 3.0), np.zeros((5, 2)), 1e150 * np.eye(5), 1e-150 * np.eye(5)):
        for scale in ("norm", "standard"):
            scaled = Scaling.of(x, scale).apply(x)
            assert np.isfinite(scaled).all()
    assert (Scaling.of(X, None).apply(X) == X).all()


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf, "2", np.ones(3), [1.0, 0.0]])
def test_bad_factors_are_refused(factor):
    with pytest.raises(fa.InputError, match="factor must be"):
        Scaling(np.zeros(2), factor)


@pytest.mark.parametrize("has_biases", [True, False])
@pytest.mark.parametrize("activation", [fa.ReLU(), fa.LeakyReLU(0.1), fa.Softplus()])
def test_folding_a_scaling_changes_no_output(has_biases, activation, rng):
    x = uneven(rng)
    scaling = Scaling.of(x, "standard")
    biases = rng.standard_normal(4) if has_biases else None
    weights = rng.standard_normal((4, 4))
    nets = [
        fa.BinaryNet(weights, biases, activation=activation),
        fa.MultiClassNet(weights, 2, 1, "argmax", biases, activation=activation),
    ]
    for net in nets:
        head = Head(net, np.arange(2))
        folded, scaled = head.after(scaling), scaling.apply(x)
        np.testing.assert_allclose(folded.decision(x), head.decision(scaled), atol=1e-6)
        assert (folded.predict(x) == head.predict(scaled)).all()


def test_folding_refuses_activations_that_look_at_norms():
    net = fa.BinaryNet(np.eye(2), activation=fa.ReLUPower(2, normalized=True))
    with pytest.raises(fa.InputError, match="does not look at the norms of the weights; got"):
        Head(net, np.arange(2)).after(Scaling(np.zeros(2), 2.0))


@QUIET
@pytest.mark.parametrize(
    "model",
    [
        AveragingClassifier(2, random_state=0, max_iter=20),
        DecoupledClassifier(2, random_state=0, max_iter=20),
    ],
)
def test_radii_are_in_the_units_of_features_that_are_scaled_one_by_one(model):
    """By exhaustion."""
    unit = np.array([1.0, 20.0, 0.05, 1.0])
    model = clone(model).set_params(scale="standard").fit(X * unit, Y)
    x = (X * unit)[::15]
    radii = model.certify(x, n_jobs=1)
    net, own = model.to_shallow(), model.predict(x)
    expected = [
        brute_force(net, p, net.labels == c, net.labels != c) for p, c in zip(x, own, strict=True)
    ]
    assert radii.lower == pytest.approx(expected, rel=1e-6)
    assert radii.verify(model, x).holds
    moved = x + radii.perturbations * (1 + 1e-6)
    assert (model.predict(moved) != own).all()


@QUIET
@pytest.mark.parametrize("scale", ["norm", "standard", None])
def test_quick_radii_are_lower_bounds(scale):
    for kind in BOTH:
        model = kind(2, random_state=0, max_iter=20, scale=scale).fit(X, Y)
        x = X[::15]
        quick, exact = model.predict_radius(x, exact=False), model.predict_radius(x, n_jobs=1)
        assert (quick <= exact * (1 + 1e-9)).all()
        assert (quick[exact > 0] > 0).all()
    with pytest.raises(fa.InputError, match="exact must be"):
        model.predict_radius(x, exact="yes")


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize("readout", ["argmax", "probability"])
@pytest.mark.parametrize("scale", ["norm", "standard", None])
def test_what_is_read_is_what_was_written(scale, readout, tmp_path):
    model = DecoupledClassifier(2, scale=scale, readout=readout, random_state=0, max_iter=9)
    model.fit(X, Y).save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.scale == scale
    assert np.shape(again.scaling_.factor) == ((4,) if scale == "standard" else ())
    for method in ("predict_proba", "decision_function"):
        assert (getattr(again, method)(X) == getattr(model, method)(X)).all()
    assert (again.certify(X[::15]).lower == model.certify(X[::15]).lower).all()


def fitting_warnings(model, x, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, y)
    return [one for one in caught if one.category is fa.FeatureScaleWarning]


@pytest.mark.parametrize("kind", BOTH)
def test_different_scales_are_announced_once_with_the_cure(kind):
    wine, cultivar = load_wine(return_X_y=True)
    for scale in ("norm", None):
        (one,) = fitting_warnings(kind(1, scale=scale, max_iter=5), wine, cultivar)
        assert str(one.message).startswith("1 of 13 features has 99.8 % of the variance")
        assert 'scale="standard"' in str(one.message)
        assert one.filename == __file__
    assert not fitting_warnings(kind(1, scale="standard", max_iter=5), wine, cultivar)


def test_points_of_one_scale_are_no_reason_for_a_warning(law):
    digits, digit = load_digits(return_X_y=True)
    train, _ = law
    for x, y in ((digits, digit), (X, Y), (train.x, train.y), (X[:, :1], Y)):
        assert not fitting_warnings(AveragingClassifier(1, max_iter=3), x, y)


def test_the_cure_helps():
    wine, cultivar = load_wine(return_X_y=True)
    scores = []
    for scale in ("norm", "standard"):
        model = AveragingClassifier(random_state=0, scale=scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores.append(model.fit(wine[::2], cultivar[::2]).score(wine[1::2], cultivar[1::2]))
    assert scores[0] < 0.8
    assert scores[1] > 0.93


@pytest.mark.parametrize("scale", ["minmax", 2, True])
def test_unknown_scales_are_refused(scale):
    with pytest.raises(fa.InputError, match="scale must be"):
        AveragingClassifier(scale=scale).fit(X, Y)

"""Boundaries much further away than the point is long, and perturbations that do not turn."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.estimators.certified import warn_of_bounds
from featavg.robustness.exact.nodes import Found
from featavg.robustness.exact.search import ContestSearch

FAR_AWAY = [10.0**exponent for exponent in range(5, 10)]


def logistic_regression(coefficients, intercept):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.classes_ = np.array([0, 1])
    model.coef_, model.intercept_ = np.atleast_2d(coefficients), np.array([intercept])
    model.n_features_in_ = model.coef_.shape[1]
    return model


def test_a_linear_classifier_of_scikit_learn_with_a_far_boundary():
    model, x = logistic_regression([1e-3, -2e-3], 2e4), np.array([[0.01, -0.01]])
    expected = abs(model.decision_function(x)[0]) / np.linalg.norm(model.coef_)
    radii = fa.exact_radii(model, x)
    assert radii.upper[0] == pytest.approx(expected, rel=1e-12)
    assert radii.lower[0] == pytest.approx(expected, rel=1e-9)
    assert radii.exact.all()
    assert radii.verify(model, x).holds
    # warnings are errors here
    assert fa.certified_radius(model, x)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("intercept", FAR_AWAY)
def test_linear_classifiers_with_a_large_intercept(intercept):
    rng = np.random.default_rng(int(np.log10(intercept)))
    for _ in range(60):
        dim = int(rng.integers(1, 6))
        w, x = rng.standard_normal(dim), rng.standard_normal(dim)
        net = fa.ShallowNet(
            np.zeros((0, dim)), [], np.zeros((2, 0)), [intercept, 0.0], linear=[w, 0 * w]
        )
        expected = abs(w @ x + intercept) / np.linalg.norm(w)
        radii = fa.exact_radii(net, x[None])
        assert radii.exact.all()
        assert radii.upper[0] == pytest.approx(expected, rel=1e-9)
        assert radii.upper[0] >= expected * (1 - 1e-9)
        assert radii.lower[0] <= expected * (1 + 1e-12)


@pytest.mark.parametrize("bias", FAR_AWAY)
def test_perturbations_of_small_networks_with_a_large_output_bias_turn_the_decision(bias):
    rng = np.random.default_rng(int(np.log10(bias)))
    finite = 0
    for _ in range(30):
        dim = int(rng.integers(1, 4))
        net = fa.ShallowNet(
            rng.standard_normal((4, dim)),
            rng.standard_normal(4),
            rng.standard_normal((2, 4)),
            [bias, 0.0],
        )
        x = rng.standard_normal((1, dim))
        radii = fa.exact_radii(net, x)
        assert radii.exact.all()
        if np.isinf(radii.upper[0]):
            continue
        finite += 1
        assert net.predict(x + radii.perturbations)[0] != net.predict(x)[0]
        length = np.linalg.norm(radii.perturbations)
        assert length == pytest.approx(radii.upper[0], rel=1e-5)
        assert radii.verify(net, x).holds
    assert finite > 10


def test_a_point_of_the_search_that_does_not_turn_is_not_reported(monkeypatch):
    """The search may fail by rounding; the radius is then not known, and nobody is told it is."""
    net = fa.BinaryNet([[1.0, 0.0], [0.0, 1.0]])
    too_near = np.array([-0.5, 0.5])

    def run(search, budget):
        radius = float(np.linalg.norm(too_near))
        return Found(0.5, radius, too_near)

    monkeypatch.setattr(ContestSearch, "run", run)
    radii = fa.exact_radii(net, [[3.0, 1.0]], jobs=1)
    assert radii.upper[0] == np.inf
    assert radii.lower[0] == 0.5
    assert not radii.perturbations.any()
    assert not radii.exact.any()
    assert radii.gap[0] == 1


def test_a_perturbation_that_was_not_seen_to_turn_leaves_a_gap():
    one = np.ones(1)
    radii = fa.Radii(one, one, np.ones((1, 1)), "l2", np.array([False]))
    assert radii.gap[0] == 1
    assert repr(radii) == "Radii(1 points, 0 exact, median radius from 1 to inf)"
    with pytest.warns(fa.CertificationWarning, match="bounds only, for 1 no perturbation is known"):
        warn_of_bounds(radii, stacklevel=1)
    turned = fa.Radii(one, one, np.ones((1, 1)), "l2", np.array([True]))
    assert turned.gap[0] == 0
    assert repr(turned) == "Radii(1 points, 1 exact, median radius 1)"

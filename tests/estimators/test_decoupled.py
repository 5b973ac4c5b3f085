"""The decoupled classifier next to the averaging one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from featavg.estimators import AveragingClassifier, DecoupledClassifier
from support.classifiers import BOTH, QUIET


def test_is_twice_as_robust_on_the_law(on_the_law, law):
    _, test = law
    averaging, decoupled = (np.median(model.predict_radius(test.x)) for model in on_the_law)
    assert averaging == pytest.approx(np.sqrt(3072 / 10), rel=0.1)
    assert decoupled == pytest.approx(np.sqrt(3072 / 2), rel=0.1)
    assert decoupled >= 2 * averaging
    assert all(model.score(test.x, test.y) == 1 for model in on_the_law)


@pytest.mark.slow
@QUIET
def test_in_few_dimensions_no_class_is_left_without_a_neuron():
    """A lone neuron that is off at all points of its class would never learn."""
    rng = np.random.default_rng(9)
    centers = 6 * rng.standard_normal((2, 5))
    y = np.repeat([0, 1], 10)
    x = centers[y] + rng.standard_normal((20, 5))
    for kind in BOTH:
        assert all(kind(1, random_state=seed).fit(x, y).score(x, y) == 1 for seed in range(20))


@pytest.mark.slow
def test_digits_without_annotation(digits):
    X, digit, X_test, digit_test = digits
    y, y_test = digit >= 5, digit_test >= 5
    averaging = AveragingClassifier(random_state=0).fit(X, y)
    decoupled = DecoupledClassifier(random_state=0).fit(X, y)
    assert decoupled.score(X_test, y_test) > 0.94
    radii = [np.median(model.predict_radius(X_test[:200])) for model in (averaging, decoupled)]
    assert radii[1] > 1.3 * radii[0]


def test_warns_when_accuracy_was_still_rising(digits):
    X, digit, *_ = digits
    with pytest.warns(ConvergenceWarning, match="Maximum iterations \\(3\\) reached"):
        AveragingClassifier(max_iter=3).fit(X, digit >= 5)

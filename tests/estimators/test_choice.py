"""The number of subclasses: when a larger one is chosen than that of the clear clusters."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.estimators import DecoupledClassifier, Frontier, Subclasses
from featavg.estimators.choice import choose_subclasses
from featavg.estimators.fitting import Plan, Split
from support.classifiers import QUIET

PLAN = Plan(1, 1e-5, "argmax", None, 300, robustness=1.0)
SPLIT = Split(np.arange(400), np.arange(400, 500), held_out=True)


class Found:
    """A search whose clear clusters are two in each class, with the highest strength."""

    smallest_class = 250
    most = 250
    rng = np.random.default_rng(0)

    def find(self, number="auto", *, largest=10):
        strength = {}
        if number == "auto":
            number, strength = 2, {c: np.array([1.0, 0.99, 0.3]) for c in (0, 1)}
        class_of = np.repeat([0, 1], number)
        labels = np.arange(500) % len(class_of)
        names = tuple(range(number)) * 2
        return Subclasses({0: number, 1: number}, labels, class_of, names, strength)


def chosen(frontier_of, **options):
    """Return the number chosen where `number` subclasses have this accuracy and radius."""

    def measure(found, split, plan):
        accuracy, radius = frontier_of[len(found.class_of) // 2]
        return Frontier(np.array([5]), np.array([accuracy]), np.array([radius]), 100, 100)

    options = {"wanted": "auto", "largest": 12} | options
    found = choose_subclasses(Found(), SPLIT, measure, PLAN, **options)
    return found.counts[0], bool(found.strength)


def test_more_than_the_clear_clusters_if_that_is_more_robust():
    """Two very clear clusters may have parts: it was settled at two, without a look at six."""
    assert chosen({2: (0.9, 4.46), 6: (0.9, 6.44), 12: (0.9, 6.5)}) == (6, True)
    assert chosen({2: (0.9, 4.46), 6: (0.9, 5.0), 12: (0.9, 6.5)}) == (12, True)


def test_the_clear_clusters_if_more_gain_nothing():
    assert chosen({2: (1.0, 30.0), 6: (1.0, 31.0), 12: (1.0, 28.0)}) == (2, True)


def test_not_at_the_cost_of_accuracy_beyond_a_standard_error():
    # of 0.9 on 100 points it is 0.03
    assert chosen({2: (0.9, 4.0), 6: (0.875, 6.0), 12: (0.8, 9.0)}) == (6, True)
    assert chosen({2: (0.9, 4.0), 6: (0.86, 6.0), 12: (0.8, 9.0)}) == (2, True)


def test_given_numbers_and_small_classes_are_left_as_they_are():
    assert chosen({}, wanted=3) == (3, False)
    assert chosen({}, largest=2) == (2, True)
    every = Split(np.arange(500), np.arange(500), held_out=False)
    found = choose_subclasses(Found(), every, pytest.fail, PLAN, wanted="auto", largest=12)
    assert found.counts == {0: 2, 1: 2}


@QUIET
def test_digits_have_more_subclasses_than_are_clear(digits):
    X, digit, X_test, digit_test = digits
    y, y_test = digit % 2, digit_test % 2
    radii = {}
    for number in ("auto", 2):
        model = DecoupledClassifier(number, random_state=0).fit(X, y)
        right = model.predict(X_test) == y_test
        radii[number] = np.median(model.predict_radius(X_test, exact=False) * right)
        if number == "auto":
            assert min(model.subclasses_.counts.values()) >= 6
    assert radii["auto"] > 1.15 * radii[2]


@pytest.mark.parametrize("seed", range(3))
def test_the_law_has_its_clusters_and_no_more(seed):
    law = fa.MultiCluster(clusters=8, dim=1000)
    train = law.sample(600, rng=np.random.default_rng(seed))
    model = DecoupledClassifier(random_state=seed).fit(train.x, train.y)
    assert model.subclasses_.counts == {-1: 4, 1: 4}


@pytest.mark.parametrize("columns", [1, 3])
def test_no_class_has_more_subclasses_than_distinct_points(columns):
    """One-hot columns: six subclasses of three distinct points were tried, and refused."""
    rng = np.random.default_rng(0)
    x, y = np.eye(3)[rng.integers(0, 3, 300)][:, :columns], rng.integers(0, 2, 300)
    found = DecoupledClassifier(random_state=0).fit(x, y).subclasses_
    assert max(found.counts.values()) <= len(np.unique(x, axis=0))

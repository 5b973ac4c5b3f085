from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.estimators import DecoupledClassifier
from featavg.estimators.subclasses import cluster
from support.classifiers import QUIET


def test_finds_the_subclasses_of_the_law_by_itself(on_the_law, law):
    _, decoupled = on_the_law
    train, test = law
    assert decoupled.subclasses_.counts == {-1: 5, 1: 5}
    pairs = set(zip(decoupled.subclasses_.labels, train.cluster, strict=True))
    assert len(pairs) == 10  # its subclasses are the clusters
    seen = set(zip(decoupled.predict_subclass(test.x), test.cluster, strict=True))
    assert len(seen) == 10


@QUIET
def test_given_subclasses_are_used(digits):
    X, digit, X_test, digit_test = digits
    model = DecoupledClassifier(random_state=0).fit(X, digit >= 5, subclass=digit)
    assert model.subclasses_.names == tuple(range(10))
    assert (model.subclasses_.labels == digit).all()
    assert (model.predict_subclass(X_test) == digit_test).mean() > 0.8
    assert model.score(X_test, digit_test >= 5) > 0.9
    assert repr(model.subclasses_) == "Subclasses(5 + 5, given)"


@QUIET
def test_one_name_in_two_classes_is_two_subclasses():
    X = np.random.default_rng(0).standard_normal((40, 3))
    model = DecoupledClassifier(max_iter=5).fit(X, [0, 1] * 20, subclass=["a", "a", "b", "b"] * 10)
    assert model.subclasses_.names == ("a", "b", "a", "b")
    assert model.subclasses_.class_of.tolist() == [0, 0, 1, 1]


@QUIET
def test_numbers_of_subclasses_can_be_given(digits):
    X, digit, *_ = digits
    y = np.where(digit < 5, "low", "high")
    same = DecoupledClassifier(3, max_iter=10).fit(X, y)
    assert same.subclasses_.counts == {"high": 3, "low": 3}
    mapped = DecoupledClassifier({"low": 2}, max_iter=10).fit(X, y)
    assert mapped.subclasses_.counts["low"] == 2
    assert list(mapped.subclasses_.strength) == ["high"]


def test_a_class_without_subclasses_has_one():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30))
    X[:200, 0] += 12
    model = DecoupledClassifier(random_state=0).fit(X, np.repeat([0, 1], 200))
    assert model.subclasses_.counts == {0: 1, 1: 1}


def test_halves_may_lack_some_of_the_distinct_points():
    """Rows of two ones are rare: k-means warned that a half has fewer of them than clusters."""
    rng = np.random.default_rng(1)
    x = (rng.random((300, 3)) < 0.1).astype(float)
    means, labels, strength = cluster(x, None, largest=8, rng=rng)
    assert len(strength) == len(np.unique(x, axis=0))
    assert set(labels) == set(range(len(means)))


def test_bad_subclasses_are_refused_in_words():
    X = np.random.default_rng(0).standard_normal((20, 4))
    y = [0, 1] * 10
    for value, words in {
        30: "at most the number of distinct points of each class; got 30 subclasses for a class of",
        "many": "'auto', a whole number or a mapping",
        0: "whole number of at least 1",
    }.items():
        with pytest.raises(fa.InputError, match=words):
            DecoupledClassifier(value).fit(X, y)
    with pytest.raises(fa.InputError, match=r"must name classes of y, \[0, 1\]; got 7"):
        DecoupledClassifier({7: 2}).fit(X, y)
    with pytest.raises(fa.InputError, match="readout must be one of"):
        DecoupledClassifier(readout="sum").fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        DecoupledClassifier().fit(X, y, subclass=[0, 1])
    with pytest.raises(fa.InputError, match="missing values"):
        DecoupledClassifier().fit(X, y, subclass=[np.nan] * 20)

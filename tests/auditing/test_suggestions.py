from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import featavg as fa
from featavg.networks.multiclass import MultiClassNet

UNEQUAL = fa.MultiCluster(clusters=6, dim=300, probabilities=[0.3, 0.15, 0.05, 0.3, 0.15, 0.05])


@pytest.fixture(scope="module")
def digits():
    """Real images by parity, and a classifier of them; the digits are hidden."""
    x, digit = load_digits(return_X_y=True)
    return x, digit, fa.DecoupledClassifier(random_state=0).fit(x, digit % 2)


def median_radius(train, test, chosen):
    """Return the median exact radius of a network that has these fine labels, and sides alone."""
    labels = np.full(len(train), -1)
    labels[chosen] = train.cluster[chosen]
    start = 1e-5 * np.random.default_rng(0).standard_normal((6, train.x.shape[1]))
    net = MultiClassNet(start, 6, 3, readout="argmax")
    loss = fa.SuppliedLabels(labels, 3)
    run = fa.descend(net, train, learning_rate=0.05, steps=200, loss=loss)
    return np.median(fa.exact_radii(run.net, test.x, test.y, certificates=False, jobs=1).lower)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_labels_that_are_suggested_are_worth_more_than_random_ones(seed):
    """With two for each cluster, three of which are rare: in every seed."""
    rng = np.random.default_rng(seed)
    train = UNEQUAL.sample(300, rng=rng)
    test = train.fresh(60, rng=rng)
    model = fa.DecoupledClassifier(random_state=seed).fit(train.x, train.y)
    chosen = fa.suggest_labels(model, train.x, train.y, 12, random_state=seed)
    random = [rng.choice(300, 12, replace=False) for _ in range(3)]
    assert set(train.cluster[chosen]) == set(range(6))
    suggested = median_radius(train, test, chosen)
    assert suggested > np.mean([median_radius(train, test, some) for some in random])
    assert suggested > 0.85 * np.sqrt(300 / 2)


@pytest.mark.parametrize("budget", [10, 18, 36])
def test_real_subclasses_are_met_more_often_than_by_chance(digits, budget):
    x, digit, model = digits
    chosen = fa.suggest_labels(model, x, digit % 2, budget, random_state=0)
    assert len(set(chosen)) == budget
    rng = np.random.default_rng(0)
    by_chance = [len(set(digit[rng.choice(len(x), budget, replace=False)])) for _ in range(100)]
    assert len(set(digit[chosen])) > np.mean(by_chance)


def test_every_subclass_has_its_turn_the_weakest_first(digits):
    x, digit, model = digits
    y = digit % 2
    number = len(model.subclasses_.names)
    chosen = fa.suggest_labels(model, x, y, 2 * number + 3, random_state=0)
    outputs = model.head_.net.outputs(model.scaling_.apply(x))
    outputs[model.subclasses_.class_of[:, None] != y[None, :]] = -np.inf
    subclass = outputs.argmax(axis=0)
    radii = np.where(model.predict(x) == y, model.predict_radius(x, exact=False), 0)
    medians = np.array([np.median(radii[subclass == j]) for j in range(number)])
    order = np.argsort(medians).tolist()
    assert subclass[chosen].tolist() == [*order, *order, *order[:3]]


def test_the_same_seed_gives_the_same_points(digits):
    x, digit, model = digits
    first, again, frame = (
        fa.suggest_labels(model, given, digit % 2, 30, random_state=3)
        for given in (x, x, x.tolist())
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, frame)


def test_other_classifiers_have_their_subclasses_looked_for(few_points):
    x, y = few_points.x, few_points.y
    model = fa.AveragingClassifier(random_state=0).fit(x, y)
    chosen = fa.suggest_labels(model, x, y, 4, random_state=0)
    assert sorted(few_points.cluster[chosen]) == [0, 1, 2, 3]


def test_more_than_there_are_and_points_that_are_equal():
    x = np.repeat([[0.0, 0], [0, 1], [5, 5], [5, 6]], 5, axis=0)
    y = np.repeat(["u", "v"], 10)
    model = fa.DecoupledClassifier(2, max_iter=50, random_state=0).fit(x, y)
    chosen = fa.suggest_labels(model, x, y, 100, random_state=0)
    assert sorted(chosen) == list(range(20))
    assert sorted(fa.suggest_labels(model, x, y, 4, random_state=0) // 5) == [0, 1, 2, 3]
    assert len(fa.suggest_labels(model, x, y, 1, random_state=0)) == 1


def test_points_that_are_repeated_in_more_coordinates_than_points():
    sample = fa.MultiCluster(clusters=6, dim=300).sample(120, rng=np.random.default_rng(0))
    model = fa.DecoupledClassifier(random_state=0).fit(sample.x, sample.y)
    for seed in range(5):
        few = np.random.default_rng(seed).permutation(120)[:12]
        x, y = np.repeat(sample.x[few], 5, axis=0), np.repeat(sample.y[few], 5)
        chosen = fa.suggest_labels(model, x, y, 30, random_state=0)
        assert len(set(chosen)) == 30
        assert set(chosen[:12] // 5) == set(range(12))  # equal points come last
        nearly = x * (1 + 1e-15 * np.random.default_rng(seed).standard_normal(x.shape))
        assert len(set(fa.suggest_labels(model, nearly, y, 30, random_state=0))) == 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "budget must be a whole number of at least 1; got 0"),
        ({"model": LogisticRegression()}, "model must be an Averaging.*; got LogisticRegression"),
        ({"y": np.zeros(3)}, "y must have one class for each of the 1797 points; got 3"),
        ({"y": np.full(1797, 7)}, "classes that the model was fitted to; got 7"),
        ({"X": np.full((2, 64), np.nan)}, "NaN"),
    ],
)
def test_bad_input(changes, message, digits):
    x, digit, model = digits
    arguments = {"model": model, "X": x, "y": digit % 2, "budget": 5} | changes
    with pytest.raises(ValueError, match=message):
        fa.suggest_labels(**arguments)

"""Points and labels are taken as they are given, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import featavg as fa

MANY = 30  # of so many classes NumPy compares numbers with texts as texts


def one_hot(labels):
    return fa.ShallowNet(
        np.eye(len(labels)),
        np.zeros(len(labels)),
        np.eye(len(labels)),
        np.zeros(len(labels)),
        labels=labels,
    )


NUMBERS, TEXTS = list(range(MANY)), [str(i) for i in range(MANY)]


@pytest.mark.parametrize(("known", "given"), [(NUMBERS, TEXTS), (TEXTS, NUMBERS)])
def test_numbers_are_not_taken_for_their_texts(known, given):
    net, X = one_hot(known), 3 * np.eye(MANY)[:10]
    assert (fa.exact_radii(net, X, known[:10]).upper > 1).all()
    with pytest.raises(fa.InputError, match="y must hold labels of the model"):
        fa.exact_radii(net, X, given[:10])


def test_lists_of_numbers_and_texts_keep_both():
    net = one_hot(np.array([1, "1", 2.5], dtype=object))
    radii = fa.exact_radii(net, 3 * np.eye(3), [1, "1", 2.5])
    assert (radii.upper > 1).all()


def test_suggestions_do_not_take_numbers_for_their_texts(rng):
    x = np.repeat(10 * np.eye(MANY), 4, axis=0) + rng.standard_normal((4 * MANY, MANY))
    y = np.repeat(TEXTS, 4)
    model = fa.AveragingClassifier(random_state=0).fit(x, y)
    assert len(fa.suggest_labels(model, x, y, budget=3, random_state=0)) == 3
    with pytest.raises(fa.InputError, match="y must have classes that the model was fitted to"):
        fa.suggest_labels(model, x, y.astype(int), budget=3, random_state=0)


def masked(values, which=0):
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[which] = True
    return np.ma.array(values, mask=mask)


def test_masked_values_are_refused_and_masks_without_any_are_not(six_clusters):
    x, y, clusters = six_clusters.x, six_clusters.y, six_clusters.cluster
    model = LogisticRegression().fit(x, y)
    decoupled = fa.DecoupledClassifier(random_state=0)
    fitted = fa.DecoupledClassifier(random_state=0).fit(x, y)
    calls = (
        lambda: fa.exact_radii(model, masked(x[:2])),
        lambda: fa.exact_radii(model, x[:2], masked(y[:2])),
        lambda: decoupled.fit(masked(x), y),
        lambda: decoupled.fit(x, masked(y)),
        lambda: decoupled.fit(x, y, subclass=masked(clusters)),
        lambda: fa.RadiusClassifier(random_state=0).fit(x, y, subclass=masked(clusters)),
        lambda: fitted.predict(masked(x)),
        lambda: fa.suggest_labels(fitted, x, masked(y), budget=2),
        lambda: fa.audit(x, masked(y)),
        lambda: fa.Sample.from_points(masked(x), y > 0),
    )
    for call in calls:
        with pytest.raises(fa.InputError, match="must not have masked values; got 1: fill"):
            call()
    unmasked = np.ma.array(x[:2], mask=False)
    expected = fa.exact_radii(model, x[:2])
    assert np.array_equal(fa.exact_radii(model, unmasked).upper, expected.upper)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_whole_numbers_that_double_precision_lacks_are_refused(kind):
    net = one_hot([0, 1])
    with pytest.raises(fa.InputError, match="double precision has exactly; got 9007199254740993"):
        fa.exact_radii(net, np.array([[2**53 + 1, 2**53]], dtype=kind))
    even = fa.exact_radii(net, np.array([[2**53 + 2, 0]], dtype=kind))
    assert even.upper == pytest.approx([(2**53 + 2) / np.sqrt(2)])


@pytest.fixture
def span():
    rng = np.random.default_rng(0)
    return fa.MultiCluster(clusters=4, dim=300).sample(20, rng=rng, coordinates="span")


def test_networks_of_span_coordinates_stay_marked(span):
    rng = np.random.default_rng(1)
    start = fa.BinaryNet.init(span, width=2, weight_scale=1e-3, bias_scale=1e-3, rng=rng)
    by_hand = fa.BinaryNet(start.weights, start.biases)
    for net in (start, by_hand):
        trained = fa.descend(net, span, learning_rate=0.01, steps=5).net
        for marked in (
            trained,
            trained.to_shallow(),
            trained.to_shallow().after_affine(np.ones(trained.dim), np.zeros(trained.dim)),
        ):
            assert np.isfinite(fa.exact_radii(marked, span.x).upper).all()
            with pytest.raises(fa.InputError, match="need the coordinates of the law"):
                fa.exact_radii(marked, span.x, norm="linf")
            with pytest.raises(fa.InputError, match="need the coordinates of the law"):
                fa.exact_radii(marked, span.x, bounds=(-99, 99))


def test_a_network_of_the_span_is_not_trained_on_points_of_the_law(span):
    rng = np.random.default_rng(1)
    net = fa.BinaryNet.init(span, width=2, weight_scale=1e-3, bias_scale=1e-3, rng=rng)
    other = fa.MultiCluster(clusters=4, dim=net.dim).sample(20, rng=rng)
    with pytest.raises(fa.InputError, match="got a network in those of the span, and a sample"):
        fa.descend(net, other, learning_rate=0.01, steps=1)

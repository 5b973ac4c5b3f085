"""The radius of any shallow network, against exhaustion, a mixed-integer program and attacks."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.robustness.exact.verify import leaves
from support.shallow_oracles import brute_force, near_duplicates, random_shallow, sides


def digits(classes=10):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, y if classes == 10 else (y >= 5).astype(int)


def mlp(hidden, X, y, **options):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MLPClassifier(hidden, max_iter=60, **{"random_state": 0} | options).fit(X, y)


# --- against other ways to compute it


@pytest.mark.slow
@pytest.mark.parametrize("leak", [0.0, 0.1, 2.0])
def test_any_second_layer_agrees_with_brute_force(leak):
    rng = np.random.default_rng(int(10 * leak))
    for _ in range(120):
        neurons, dim, outputs = (int(rng.integers(*r)) for r in ((1, 8), (1, 5), (1, 5)))
        net = random_shallow(rng, neurons, dim, outputs, leak)
        x = rng.standard_normal(dim)
        radii = fa.exact_radii(net, x[None], jobs=1)
        assert radii.exact.all()
        assert radii.upper[0] == pytest.approx(brute_force(net, x, *sides(net, x)), rel=1e-6)


@pytest.mark.slow
def test_forty_networks_agree_with_a_mixed_integer_program():
    """Binary and of many classes, random and trained, up to 40 coordinates and 20 neurons."""
    pytest.importorskip("pyscipopt")
    from miqp import miqp_radius

    rng = np.random.default_rng(0)
    X, y = digits()
    chosen = np.argsort(-X.std(axis=0))[:40]
    compared = trial = 0
    while compared < 40:
        trial += 1
        hidden, dim = int(rng.integers(4, 21)), int(rng.integers(5, 41))
        if trial % 2:
            labels = y if trial % 4 == 1 else y % 2
            model = mlp(hidden, X[:600, chosen[:dim]], labels[:600], random_state=trial)
            net = fa.ShallowNet(
                model.coefs_[0].T, model.intercepts_[0], model.coefs_[1].T, model.intercepts_[1]
            )
            x = X[600 + trial, chosen[:dim]]
        else:
            net = random_shallow(rng, hidden // 2, dim, int(rng.integers(1, 5)))
            x = rng.standard_normal(dim)
        radii = fa.exact_radii(net, x[None], jobs=1)
        if np.isinf(radii.upper[0]):
            continue
        within = 1.05 * float(radii.upper[0])
        expected = miqp_radius(net, x, *sides(net, x), within=within)
        assert radii.exact.all()
        assert radii.upper[0] == pytest.approx(expected, rel=1e-6)
        compared += 1


def test_targets_and_labels_agree_with_brute_force():
    rng = np.random.default_rng(5)
    for _ in range(40):
        net = random_shallow(rng, 5, 3, 4)
        x = rng.standard_normal(3)
        label = int(net.predict(x[None])[0])
        target = int(rng.choice([k for k in range(4) if k != label]))
        radii = fa.exact_radii(net, x[None], target=target, jobs=1)
        own = net.labels != target
        assert radii.upper[0] == pytest.approx(brute_force(net, x, own, ~own), rel=1e-6)
        moved = net.predict(x[None] + radii.perturbations)
        assert np.isinf(radii.upper[0]) or moved[0] == target
        assert radii.upper[0] >= fa.exact_radii(net, x[None], jobs=1).upper[0] * (1 - 1e-9)
        wrong = fa.exact_radii(net, x[None], [target], jobs=1)
        assert wrong.upper[0] == wrong.lower[0] == 0


def test_several_outputs_with_one_label_are_one_class():
    """Three outputs, the last two of one label: it takes the other one to turn the decision."""
    W = np.eye(3)
    net = fa.ShallowNet(W, np.zeros(3), np.eye(3), np.zeros(3), labels=["a", "b", "b"])
    radii = fa.exact_radii(net, [[1.0, 2.0, 3.0]], ["b"])
    # a has to overtake both outputs of b: from (1, 2, 3) to x1 = x2 = x3
    assert radii.upper[0] == pytest.approx(np.sqrt(2), rel=1e-6)
    two = fa.exact_radii(fa.ShallowNet(W, np.zeros(3), np.eye(3), np.zeros(3)), [[1.0, 2.0, 3.0]])
    assert two.upper[0] == pytest.approx(np.sqrt(0.5), rel=1e-6)


def test_linear_classifiers_have_the_distance_to_the_nearest_boundary():
    rng = np.random.default_rng(1)
    S, c, X = rng.standard_normal((4, 6)), rng.standard_normal(4), rng.standard_normal((20, 6))
    net = fa.ShallowNet(np.zeros((0, 6)), [], np.zeros((4, 0)), c, linear=S)
    f, own = S @ X.T + c[:, None], net.winners(X)
    for i, j in enumerate(own):
        others = [k for k in range(4) if k != j]
        ahead = f[j, i] - f[others, i]
        expected = (ahead / np.linalg.norm(S[j] - S[others], axis=1)).min()
        assert fa.exact_radii(net, X[i : i + 1]).upper[0] == pytest.approx(expected, rel=1e-7)


# --- models of other libraries


def test_a_pipeline_has_its_radius_in_raw_units():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = digits(2)
    X = X[:, X.std(axis=0) > 0.05]
    scaler = StandardScaler().fit(X[:500])
    inner = mlp(10, scaler.transform(X[:500]), y[:500])
    model = make_pipeline(scaler, inner)
    net = fa.ShallowNet(
        inner.coefs_[0].T / scaler.scale_,
        inner.intercepts_[0] - (inner.coefs_[0].T / scaler.scale_) @ scaler.mean_,
        inner.coefs_[1].T,
        inner.intercepts_[1],
    )
    points = X[600:620]
    radii = fa.exact_radii(model, points)
    np.testing.assert_allclose(radii.upper, fa.exact_radii(net, points).upper, rtol=1e-9)
    turned = model.predict(points + radii.perturbations) != model.predict(points)
    assert turned.all()
    rng = np.random.default_rng(0)
    for _ in range(200):
        step = rng.standard_normal(points.shape)
        step *= (radii.lower / np.linalg.norm(step, axis=1))[:, None] * (1 - 1e-9)
        np.testing.assert_array_equal(model.predict(points + step), model.predict(points))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 10])
def test_wide_scikit_learn_networks_are_exact(classes):
    X, y = digits(classes)
    model = mlp(200, X[:1000], y[:1000])
    radii = fa.exact_radii(model, X[1000:1040], y[1000:1040], time_limit=60)
    assert radii.exact.mean() >= 0.9
    assert (radii.gap < 0.05).all()
    assert radii.verify(model, X[1000:1040]).holds


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scale", "steps"), [(30, 1e-3, 100), (20, 1e-2, 1000)])
def test_initial_weights_that_survive_training_do_not_widen_the_bounds(width, scale, steps):
    """Branch and bound alone leaves a gap of a half: 9.5 where an attack needs 15.98."""
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    net = fa.BinaryNet.init(train, width=width, weight_scale=scale, bias_scale=scale, rng=rng)
    net = fa.descend(net, train, learning_rate=1e-3, steps=steps).net
    test = train.fresh(4, rng=rng)
    radii = fa.exact_radii(net, test.x, test.y, max_nodes=2000, jobs=1)
    assert (radii.gap <= 0.005).all()
    assert (fa.minimal_norm(net, test.x, test.y).upper >= radii.lower).all()


# --- proofs


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [800, pytest.param(5000, marks=pytest.mark.long)])
def test_nothing_is_refuted_and_no_attack_wins_on_fuzzed_points(wanted):
    """Random networks of all kinds, and neurons that nearly cancel, at scales from 0.01 to 100."""
    rng = np.random.default_rng(0)
    points = near = 0
    while points < wanted:
        if rng.random() < 0.3:
            net, near = near_duplicates(rng), near + 10
        else:
            shape = (int(rng.integers(*r)) for r in ((1, 13), (1, 7), (1, 5)))
            net = random_shallow(rng, *shape, leak=float(rng.choice([0.0, 0.1])))
        X = rng.standard_normal((10, net.dim)) * rng.choice([0.01, 1.0, 100.0])
        radii = fa.exact_radii(net, X, max_nodes=500, jobs=1)
        assert radii.verify(net, X).holds
        assert (radii.lower <= radii.upper).all()
        _no_random_step_wins(net, X, radii, rng)
        points += len(X)
    assert near >= wanted / 5


def _no_random_step_wins(net, X, radii, rng):
    labels = net.predict(X)
    reach = np.where(np.isfinite(radii.lower), radii.lower, 1e3)
    for _ in range(5):
        step = rng.standard_normal(X.shape)
        step *= (reach * rng.random() ** 0.2 / np.linalg.norm(step, axis=1))[:, None]
        moved = X + step
        for i in np.flatnonzero(net.predict(moved) != labels):
            own = net.labels == labels[i]
            nearer = np.linalg.norm(moved[i] - X[i]) < radii.lower[i] * (1 - 1e-12)
            assert not (nearer and leaves(net, moved[i], own, ~own))


@pytest.mark.slow
def test_neurons_that_nearly_cancel_are_not_called_exact_where_they_are_not():
    rng = np.random.default_rng(3)
    inexact = 0
    for _ in range(120):
        net = near_duplicates(rng)
        X = rng.standard_normal((1, net.dim))
        radii = fa.exact_radii(net, X, max_nodes=200, jobs=1)
        inexact += not radii.exact[0]
        if radii.exact[0] and 0 < radii.upper[0] < np.inf:
            own = net.labels == net.predict(X)[0]
            assert leaves(net, (X + radii.perturbations)[0], own, ~own)
    assert inexact > 0


def test_a_silent_point_is_not_at_the_boundary():
    """All groups of three classes are silent around the point: the first class, up to a kink."""
    net = fa.ShallowNet(np.eye(3), -np.ones(3), np.eye(3), np.zeros(3))
    radii = fa.exact_radii(net, [[0.0, 0.0, 0.0]])
    assert radii.exact.all()
    assert radii.upper[0] == pytest.approx(1.0, rel=1e-6)  # the second output has to rise above 0


@pytest.mark.slow
def test_every_perturbation_turns_the_decision_also_at_corners():
    """About 1 in 500 random points: the cone of the turned decision misses the radial direction."""
    rng = np.random.default_rng(11)
    turned = finite = 0
    for _ in range(400):
        net = random_shallow(rng, int(rng.integers(2, 9)), int(rng.integers(1, 4)), 2)
        X = rng.standard_normal((3, net.dim))
        radii = fa.exact_radii(net, X, jobs=1)
        there = np.isfinite(radii.upper) & (radii.upper > 0)
        finite += there.sum()
        moved = net.predict(X + radii.perturbations)
        turned += (moved != net.predict(X))[there].sum()
    assert turned == finite


def test_limits_leave_a_bracket_that_holds():
    rng = np.random.default_rng(3)
    net = random_shallow(rng, 14, 6, 2)
    X = rng.standard_normal((10, 6))
    exact = fa.exact_radii(net, X, jobs=1)
    assert exact.exact.all()
    for options in ({"max_nodes": 1}, {"time_limit": 1e-9}):
        rough = fa.exact_radii(net, X, jobs=1, **options)
        assert not rough.exact.all()
        assert (rough.lower <= exact.upper * (1 + 1e-9)).all()
        assert (rough.upper >= exact.lower * (1 - 1e-9)).all()
        assert rough.verify(net, X).holds


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [7]}, "y must hold labels of the model"),
        ({"y": np.array(["a"], dtype=object)}, "y must hold labels of the model .*; got 'a'"),
        ({"y": [7], "target": 0}, "y must hold labels of the model"),
        ({"y": [[0]]}, "y must hold one label for each of the 1 points"),
        ({"target": 9}, "target must be a label of the model; got 9"),
        ({"target": [0]}, r"target must be one label, the same for all points; got \[0\]"),
        ({"bounds": (0, 1)}, "bounds must be two numbers that hold every coordinate"),
        ({"time_limit": 0}, "time_limit must be above 0"),
        ({"norm": "l7"}, "norm must be"),
        ({"max_nodes": 0}, "max_nodes must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_refused(options, message):
    net = fa.ShallowNet(np.eye(2), [0, 0], [[1, -1]], [0])
    y = options.pop("y", None)
    with pytest.raises(fa.InputError, match=message):
        fa.exact_radii(net, [[-3.0, 1.0]], y, **options)


def test_lists_of_different_lengths_are_no_points():
    net = fa.ShallowNet(np.eye(2), [0, 0], [[1, -1]], [0])
    with pytest.raises(fa.InputError, match="X must be an array of numbers"):
        fa.exact_radii(net, [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("labels", [[1, 1], [np.nan, 1.0], [None, 1]])
def test_labels_of_outputs_are_several_and_none_is_missing(labels):
    with pytest.raises(fa.InputError, match="labels must hold at least two different ones"):
        fa.ShallowNet(np.eye(2), [0, 0], np.eye(2), [0, 0], labels=labels)


def test_a_point_that_is_not_of_its_label_has_the_radius_0_for_any_target():
    net, X = fa.ShallowNet(np.eye(3), [0] * 3, np.eye(3), [0] * 3), [[3.0, 1.0, 2.0]]
    for y, target, radius in (([1], 2, 0), ([0], 2, np.sqrt(0.5)), ([0], 1, np.sqrt(2))):
        radii = fa.exact_radii(net, X, y, target=target)
        assert radii.upper == pytest.approx([radius])
        assert radii.verify(net, X).holds


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_what_no_point_of_a_box_can_turn_is_verified(norm):
    """relu(x1) - relu(x2) + 3 is above 0 in the unit square; the other one is not."""
    for offset, is_turned in ((3.0, False), (0.5, True)):
        net = fa.ShallowNet(np.eye(2), [0, 0], [[1, -1]], [offset])
        radii = fa.exact_radii(net, [[0.2, 0.1]], bounds=(0, 1), norm=norm)
        assert np.isfinite(radii.upper[0]) == is_turned
        assert (radii.exact & radii.verify(net, [[0.2, 0.1]]).turned).all()
        assert radii.verify(net, [[0.2, 0.1]]).holds


def test_results_without_proofs_cannot_be_verified():
    net = fa.ShallowNet(np.eye(2), [0, 0], [[1, -1]], [0])
    X = [[3.0, 1.0]]
    with pytest.raises(fa.InputError, match="these radii have no proofs to check"):
        fa.exact_radii(net, X, certificates=False).verify(net, X)
    with pytest.raises(fa.InputError, match="X must hold the 1 points of the radii; got 2"):
        fa.exact_radii(net, X).verify(net, X * 2)
    other = fa.ShallowNet(np.eye(2), [0, 0], np.eye(2), [0, 0])
    with pytest.raises(fa.InputError, match="must be the one whose radii these are, of 3 neurons"):
        fa.exact_radii(fa.ShallowNet(np.ones((3, 2)), [0] * 3, [[1, 1, -1]], [1]), X).verify(
            other, X
        )


@pytest.mark.slow
def test_auto_is_exact_where_it_can_be_and_certified_where_not(paper):
    test, coarse, fine = paper
    x, y, radii = test.x[:30], test.y[:30], [10, 17.5, 25, 38, 45]
    for net, method in (
        (coarse, "exact"),
        (fine.with_readout("argmax"), "exact"),
        (fine, "bracket"),
    ):
        curve = fa.robust_curve(net, x, y, radii=radii)
        assert curve.method == method
        if method == "exact":
            np.testing.assert_array_equal(curve.accuracy, curve.certified)
    with pytest.raises(fa.InputError, match="'exact' is not available for the probability"):
        fa.robust_curve(fine, x, y, radii=radii, method="exact")


def test_verify_checks_the_norm_of_perturbations(rng):
    net = fa.BinaryNet(rng.standard_normal((4, 3)))
    x = rng.standard_normal((5, 3))
    radii = fa.exact_radii(net, x)
    nearer = replace(radii, lower=radii.lower / 2, upper=radii.upper / 2)
    refuted = nearer.verify(net, x).refuted
    np.testing.assert_array_equal(
        refuted, np.flatnonzero((radii.upper > 0) & (radii.upper < np.inf))
    )


@pytest.mark.parametrize("width", [1e-11, 4e-13, 1e-13])
def test_slivers_wider_than_rounding_are_not_taken_for_draws(width):
    """The second output is ahead between 1 and 1 + width only."""
    net = fa.ShallowNet([[1.0], [1.0]], [-1.0, -1 - width], [[0.0, 0.0], [1.0, -3.0]], [0.0, 0.0])
    assert net.predict([[1 + width]]) == [1]
    radii = fa.exact_radii(net, [[0.0]])
    assert radii.lower[0] <= 1 + width


def test_a_radius_of_zero_by_cancellation_is_not_exact():
    """Weights of 1e12 cancel to slopes of 1, and the decision turns at a distance of 40."""
    K, slope = 1e12, 0.05
    net = fa.ShallowNet(
        [[1.0, 0.0], [K + 1, 0.0], [K - 1, slope]],
        [10.0, 10 * K + 1, 10 * K + 1],
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [K, 0.0, 0.0]],
        np.zeros(3),
    )
    radii = fa.exact_radii(net, [[0.0, 0.0]], [0], target=2)
    assert radii.lower[0] <= 40.02
    assert not radii.exact[0] or radii.upper[0] > 39

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import featavg as fa
from featavg.networks import reference
from support.oracles import argmax_heads, binary_heads, brute_force_radius
from support.zoo import (
    SEEDS,
    assert_closed,
    check_perturbations,
    odd_networks,
    random_binary,
    random_multi,
    random_net,
)

# --- against brute force


@pytest.mark.slow
def test_binary_radii_equal_brute_force_over_all_activation_patterns():
    rng = np.random.default_rng(0)
    infinite = 0
    for _ in range(200):
        net = random_binary(rng)
        x = rng.standard_normal((1, net.dim))
        y = net.predict(x)
        radii = fa.exact_radii(net, x, y)
        heads = binary_heads(net.width, y[0])
        expected = brute_force_radius(net.weights, net.biases, heads, x[0], y[0])
        assert_closed(radii)
        assert radii.upper[0] == pytest.approx(expected, rel=1e-6)
        infinite += np.isinf(expected)
        check_perturbations(net, x, y, radii, thin_sets=True)
    assert infinite > 0


@pytest.mark.slow
def test_argmax_radii_equal_brute_force_over_all_activation_patterns():
    rng = np.random.default_rng(1)
    for _ in range(150):
        net = random_multi(rng, "argmax")
        x = rng.standard_normal((1, net.dim))
        y = net.predict(x)
        radii = fa.exact_radii(net, x, y)
        expected = brute_force_radius(net.weights, net.biases, argmax_heads(net, y[0]), x[0], y[0])
        assert_closed(radii)
        assert radii.upper[0] == pytest.approx(expected, rel=1e-6)
        check_perturbations(net, x, y, radii, thin_sets=True)


@pytest.mark.slow
def test_networks_that_are_not_in_general_position():
    rng = np.random.default_rng(4)
    for _ in range(20):
        for style, net, x in odd_networks(rng):
            y = net.predict(x)
            if 0 < abs(net.score(x)[0]) < 1e-13 * np.abs(net.weights).sum() * np.abs(x).sum():
                continue  # neurons of both sides cancel, and rounding has decided
            radii = fa.exact_radii(net, x, y)
            binary = isinstance(net, fa.BinaryNet)
            heads = binary_heads(net.width, y[0]) if binary else argmax_heads(net, y[0])
            expected = brute_force_radius(net.weights, net.biases, heads, x[0], y[0])
            everywhere = np.abs(net.score(10 * rng.standard_normal((500, net.dim))))
            if y[0] == -1 and everywhere.max() < 1e-12:  # zero, up to rounding the oracle trusts in
                expected = np.inf
            assert_closed(radii)
            assert radii.upper[0] == pytest.approx(expected, rel=1e-6, abs=1e-9), style
            check_perturbations(net, x, y, radii, thin_sets=True)


# --- by hand


def test_reference_networks_without_noise(rng):
    """f_FA is sqrt(d/k) from its boundary at a centre; f_FD sqrt(d)/2 where silence is -1.

    At a positive centre f_FD is d/2 and falls by sqrt(d) a unit of radius against its own centre,
    to silence, which is the decision -1. At a negative one it has to become positive: equal
    neurons on both sides are reached half the way between the centres, at sqrt(d/2).
    """
    train = fa.MultiCluster(clusters=6, dim=144, noise=0).sample(40, rng=rng)
    averaging = fa.exact_radii(reference.averaging(train), train.x, train.y)
    np.testing.assert_allclose(averaging.upper, np.sqrt(144 / 6), rtol=1e-6)
    decoupled = fa.exact_radii(reference.decoupled(train), train.x, train.y)
    expected = np.where(train.y == 1, np.sqrt(144) / 2, np.sqrt(144 / 2))
    np.testing.assert_allclose(decoupled.upper, expected, rtol=1e-6)


def test_silence_counts_as_minus_one():
    """One neuron a side, apart from each other: between them the network is silent."""
    net = fa.BinaryNet([[1.0], [-1.0]], [-1.0, -1.0])  # relu(x - 1) - relu(-x - 1)
    radii = fa.exact_radii(net, [[3.0], [-3.0], [0.0]], [1, -1, -1])
    np.testing.assert_allclose(radii.upper, [2.0, 4.0, 1.0], rtol=1e-6)


def test_a_side_that_cannot_win_has_infinite_radii_on_the_other():
    net = fa.BinaryNet([[0.0, 0.0], [1.0, 1.0]], [-1.0, 0.0])  # -relu(x1 + x2): never positive
    radii = fa.exact_radii(net, [[1.0, 1.0], [-1.0, -1.0]], [-1, -1])
    assert np.isinf(radii.lower).all()
    assert np.isinf(radii.upper).all()
    assert radii.exact.all()
    assert "median radius inf" in repr(radii)
    curve = fa.robust_curve(net, [[1.0, 1.0]], [-1], radii=[1e9])
    assert curve.accuracy[0] == curve.certified[0] == 1


def test_a_way_out_much_further_than_the_kinks_is_found():
    """By hand: silence in x1 is reached only at x1 = -1e-3, but f <= 0 needs x1 = 10.001."""
    small = 1e-6
    net = fa.BinaryNet([[0, 1], [0, -1], [small, 0], [0, 0]], [1e-3 * small, 0, -10 * small, -1])
    radii = fa.exact_radii(net, [[0.0, 0.0]], [1])
    expected = brute_force_radius(net.weights, net.biases, binary_heads(2, 1), np.zeros(2), 1)
    assert radii.upper[0] == pytest.approx(expected, rel=1e-6)


def test_single_precision_networks_have_perturbations_that_turn_them():
    rng = np.random.default_rng(7)
    W, x = rng.standard_normal((10, 800)), rng.standard_normal((50, 800))
    net = fa.BinaryNet(W.astype(np.float32))
    x = x.astype(np.float32)
    y = net.predict(x)
    radii = fa.exact_radii(net, x, y)
    twin = fa.exact_radii(fa.BinaryNet(net.weights.astype(np.float64)), x.astype(np.float64), y)
    np.testing.assert_allclose(radii.upper, twin.upper, rtol=1e-6)
    check_perturbations(fa.BinaryNet(net.weights.astype(np.float64)), x, y, radii)


@pytest.mark.parametrize("net", [None, "net", np.ones((2, 2))])
def test_what_is_no_network_is_refused(net):
    with pytest.raises(fa.InputError, match="model must be"):
        fa.exact_radii(net, [[1.0]], [1])


def test_scales_that_floats_cannot_hold_are_refused():
    tiny = fa.ShallowNet([[1e200]], [0.0], [[1.0]], [0.0], linear=[[1e-200]])
    with pytest.raises(fa.InputError, match="the linear of this network are too small"):
        fa.exact_radii(tiny, [[1.0]])
    with pytest.raises(fa.InputError, match="pre-activations must have a size"):
        fa.exact_radii(fa.BinaryNet(np.eye(2)), [[2e-200, 1e-200]], [1])


def test_equal_neurons_on_both_sides_never_make_a_positive_score():
    net = fa.BinaryNet([[1.0, 2.0], [1.0, 2.0]])
    assert np.isinf(fa.exact_radii(net, [[1.0, 1.0]], [-1]).upper[0])


def test_wrong_points_have_radius_zero(rng):
    net = fa.BinaryNet([[1.0, 0.0], [0.0, 1.0]])
    radii = fa.exact_radii(net, [[1.0, 2.0], [2.0, 1.0]], [1, 1])
    np.testing.assert_array_equal(radii.upper == 0, [True, False])
    np.testing.assert_array_equal(radii.lower == 0, [True, False])
    assert not radii.perturbations[0].any()


@pytest.mark.parametrize("readout", ["binary", "argmax"])
@pytest.mark.parametrize("factor", [1e-6, 1e6, 1e-200, 1e200])
def test_radii_do_not_depend_on_the_scale_of_the_network(readout, factor):
    rng = np.random.default_rng(5)
    W, b, x = rng.standard_normal((8, 5)), rng.standard_normal(8), rng.standard_normal((30, 5))
    if readout == "binary":
        net, twin = fa.BinaryNet(W, b), fa.BinaryNet(factor * W, factor * b)
    else:
        net, twin = (fa.MultiClassNet(s * W, 4, readout="argmax") for s in (1, factor))
    y = net.predict(x)
    np.testing.assert_allclose(
        fa.exact_radii(twin, x, y).upper, fa.exact_radii(net, x, y).upper, rtol=1e-6
    )


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_radii_scale_with_the_inputs(factor):
    rng = np.random.default_rng(6)
    W, b, x = rng.standard_normal((8, 5)), rng.standard_normal(8), rng.standard_normal((30, 5))
    net, twin = fa.BinaryNet(W, b), fa.BinaryNet(W / factor, b)
    y = net.predict(x)
    np.testing.assert_allclose(
        fa.exact_radii(twin, factor * x, y).upper,
        factor * fa.exact_radii(net, x, y).upper,
        rtol=1e-6,
    )


# --- no attack wins


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_no_attack_beats_exact_or_certified_radii_of_random_networks(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng)
    x = rng.standard_normal((12, net.dim))
    y = net.predict(x)
    radii = fa.exact_radii(net, x, y)
    assert (radii.lower <= radii.upper).all()
    attack = fa.minimal_norm(net, x, y)
    assert (attack.upper >= radii.lower * (1 - 1e-6)).all()
    grid = np.linspace(0, 3, 13)
    curve = fa.robust_curve(net, x, y, radii=grid)
    assert (np.diff(curve.accuracy) <= 0).all()
    assert (np.diff(curve.certified) <= 0).all()
    assert (curve.certified <= curve.accuracy).all()
    for objective in ("readout", "cross-entropy"):
        pgd = fa.robust_curve(
            net, x, y, radii=grid, method="pgd", rng=rng, restarts=3, objective=objective
        )
        assert (pgd.broken_at >= radii.lower * (1 - 1e-6)).all()
        assert (pgd.accuracy >= curve.certified).all()


@pytest.mark.vision
@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_the_attack_library_does_not_beat_random_networks(seed):
    from support.minimal_norm_library import library_norms

    rng = np.random.default_rng(seed)
    net = random_net(rng)
    x = rng.standard_normal((12, net.dim))
    y = net.predict(x)
    radii = fa.exact_radii(net, x, y)
    for norms in library_norms(net, x, y, steps=50).values():
        assert (norms >= radii.lower * (1 - 1e-6)).all()


@pytest.mark.vision
@pytest.mark.parametrize("which", ["coarse", "argmax", "probability"])
def test_no_attack_beats_trained_networks(paper, which):
    from support.minimal_norm_library import library_norms

    test, coarse, fine = paper
    net = coarse if which == "coarse" else fine.with_readout(which)
    x, y = test.x[:60], test.y[:60]
    radii = fa.exact_radii(net, x, y)
    norms = library_norms(net, x, y)
    norms["ours"] = fa.minimal_norm(net, x, y).upper
    for found in norms.values():
        assert (found >= radii.lower * (1 - 1e-6)).all()
    # and they come near, so the comparison means something
    assert np.median(np.min(list(norms.values()), axis=0) / radii.lower) < 1.02
    for radius in (0.9 * np.median(radii.lower), np.median(radii.lower)):
        pgd = fa.pgd(net, x, y, radius=radius, rng=np.random.default_rng(0), restarts=5)
        assert not pgd.success[radii.lower > radius].any()


# --- the paper's setting


@pytest.mark.slow
def test_median_radii_at_the_papers_setting(paper):
    test, coarse, fine = paper
    for net, predicted in (
        (coarse, np.sqrt(3072 / 10)),
        (fine.with_readout("argmax"), np.sqrt(3072 / 2)),
    ):
        radii = fa.exact_radii(net, test.x, test.y)
        assert radii.exact.all()
        assert np.median(radii.upper) == pytest.approx(predicted, rel=0.05)
        check_perturbations(net, test.x, test.y, radii)
    bracket = fa.exact_radii(fine, test.x, test.y)
    assert np.median(bracket.gap) <= 0.05
    check_perturbations(fine, test.x, test.y, bracket)


@pytest.mark.slow
def test_fifteen_neurons_a_side_are_exact_too():
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=10, dim=500).sample(300, rng=rng)
    net = fa.BinaryNet.init(train, width=15, weight_scale=1e-2, bias_scale=1e-2, rng=rng)
    net = fa.descend(net, train, learning_rate=5e-3, steps=200).net
    test = train.fresh(20, rng=rng)
    radii = fa.exact_radii(net, test.x, test.y)
    assert radii.exact.all()
    assert (fa.minimal_norm(net, test.x, test.y).upper >= radii.upper * (1 - 1e-6)).all()


@pytest.mark.slow
def test_processes_do_not_change_the_answer(paper):
    test, coarse, _ = paper
    one, two = (fa.exact_radii(coarse, test.x[:70], test.y[:70], jobs=j) for j in (1, 2))
    np.testing.assert_array_equal(one.upper, two.upper)
    np.testing.assert_array_equal(one.perturbations, two.perturbations)


def test_a_search_that_is_cut_short_still_has_true_bounds():
    rng = np.random.default_rng(3)
    net = fa.BinaryNet(rng.standard_normal((16, 6)), rng.standard_normal(16))
    x = rng.standard_normal((20, 6))
    y = net.predict(x)
    exact, rough = fa.exact_radii(net, x, y), fa.exact_radii(net, x, y, max_nodes=1)
    assert exact.exact.all()
    assert not rough.exact.all()
    assert (rough.lower <= exact.lower * (1 + 1e-9)).all()
    assert (rough.upper >= exact.upper * (1 - 1e-9)).all()

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import featavg as fa
from featavg.networks import reference
from support.zoo import random_problem


def test_the_averaging_network_falls_at_exactly_root_d_over_k(rng):
    """By hand: without noise f_FA = d at a centre and falls by sqrt(kd) a unit of radius."""
    law = fa.MultiCluster(clusters=5, dim=100, noise=0)
    train = law.sample(50, rng=rng)
    radius = np.sqrt(100 / 5)
    curve = fa.robust_curve(
        reference.averaging(train),
        train.x,
        train.y,
        method="direction",
        radii=[0, 0.999 * radius, 1.001 * radius],
        direction=fa.averaged_direction(train),
    )
    np.testing.assert_array_equal(curve.accuracy, [1, 1, 0])
    pgd = fa.robust_curve(
        reference.averaging(train),
        train.x,
        train.y,
        radii=[0.999 * radius, 1.05 * radius],
        rng=rng,
        method="pgd",
        restarts=5,
    )
    assert pgd.accuracy[0] == 1
    assert pgd.accuracy[1] < 0.2


def test_the_decoupled_network_survives_what_breaks_the_averaging_one(rng):
    """Theorem D.3 gives sqrt(d)/3; with noise, at d = 3072 and k = 10."""
    train = fa.MultiCluster(clusters=10, dim=3072).sample(300, rng=rng)
    radii = [np.sqrt(3072) / 3]
    direction = fa.averaged_direction(train)
    accuracy = []
    for net in (reference.decoupled(train), reference.averaging(train)):
        pgd = fa.robust_curve(net, train.x, train.y, radii=radii, method="pgd", rng=rng)
        line = fa.robust_curve(
            net, train.x, train.y, radii=radii, method="direction", direction=direction
        )
        accuracy.append(fa.worst(pgd, line).accuracy[0])
    assert accuracy[0] == 1.0
    assert accuracy[1] < 0.3


def test_direction_attack_and_direction_curve_are_the_same_attack(trained):
    train, test, coarse, fine = trained
    direction = fa.averaged_direction(train)
    for net in (coarse, fine, fine.with_readout("argmax")):
        for radius in (5.0, 12.0, 30.0):
            attack = fa.direction_attack(net, test.x, test.y, radius=radius, direction=direction)
            curve = fa.robust_curve(
                net, test.x, test.y, radii=[radius], method="direction", direction=direction
            )
            np.testing.assert_array_equal(curve.broken_at <= radius, attack.success)
            moved = net.predict(test.x + attack.perturbations)
            np.testing.assert_array_equal((moved != test.y), attack.success)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_curve_never_rises_in_whatever_order_the_radii_come(seed):
    net, x, y, rng = random_problem(seed)
    radii = rng.permutation(np.linspace(0, 3, 7))
    direction = rng.standard_normal(net.dim)
    curves = [
        fa.robust_curve(net, x, y, radii=radii, method="pgd", rng=rng, steps=10),
        fa.robust_curve(net, x, y, radii=radii, method="direction", direction=direction),
    ]
    curves.append(fa.worst(*curves))
    for curve in curves:
        accuracy = curve.accuracy[np.argsort(radii)]
        assert (np.diff(accuracy) <= 0).all()
        assert accuracy[0] == fa.clean_accuracy(net, x, y)
        assert (curves[-1].accuracy <= curve.accuracy).all()


def test_attacking_the_cross_entropy_overstates_robustness(trained):
    """Attack what you claim: the readout is broken far earlier than its own loss suggests."""
    _, test, _, fine = trained
    radii = np.linspace(0, 30, 16)
    half = {
        objective: fa.robust_curve(
            fine,
            test.x,
            test.y,
            radii=radii,
            rng=np.random.default_rng(0),
            method="pgd",
            objective=objective,
            fine_labels=test.cluster,
        ).half_radius
        for objective in ("readout", "cross-entropy")
    }
    assert half["readout"] < 0.9 * half["cross-entropy"]


def test_half_radius_of_curves_that_never_get_there():
    def curve(broken_at):
        return fa.RobustCurve(
            np.array([1.0, 2.0]), np.array(broken_at), np.zeros(2), "pgd", "readout"
        )

    assert curve([np.inf, np.inf]).half_radius == np.inf
    assert curve([0.0, 0.0]).half_radius == 1.0
    assert "half radius" in repr(curve([1.0, 2.0]))

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import featavg as fa
from featavg.networks import reference
from featavg.robustness.attacks import Pgd


@pytest.fixture(scope="module")
def trained():
    """Both networks, trained on one sample, and fresh points."""
    rng = np.random.default_rng(3)
    train = fa.MultiCluster(clusters=6, dim=600).sample(200, rng=rng)
    coarse = fa.BinaryNet.init(train, width=3, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    fine = fa.MultiClassNet.init(train, width=2, weight_scale=1e-5, rng=rng)
    nets = [fa.descend(n, train, learning_rate=5e-3, steps=100).net for n in (coarse, fine)]
    return train, train.fresh(100, rng=rng), *nets


def random_problem(seed):
    rng = np.random.default_rng(seed)
    dim, points = int(rng.integers(1, 12)), 15
    if rng.random() < 0.5:
        width = int(rng.integers(1, 5))
        net = fa.BinaryNet(rng.standard_normal((2 * width, dim)), rng.standard_normal(2 * width))
    else:
        net = fa.MultiClassNet(
            rng.standard_normal((8, dim)),
            classes=4,
            positive=[0, 2],
            readout=str(rng.choice(["probability", "argmax"])),
        )
    return net, rng.standard_normal((points, dim)), rng.choice([-1, 1], points), rng


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["readout", "cross-entropy"]))
def test_what_pgd_reports_broken_is_broken_within_the_radius(seed, objective):
    net, x, y, rng = random_problem(seed)
    attack = fa.pgd(net, x, y, radius=0.7, rng=rng, restarts=2, objective=objective)
    moved = net.predict(x + attack.perturbations)
    wrong_before = net.predict(x) != y
    np.testing.assert_array_equal((moved != y)[attack.success], True)
    assert (np.linalg.norm(attack.perturbations, axis=1) <= 0.7 * (1 + 1e-12)).all()
    assert attack.success[wrong_before].all()
    assert not attack.perturbations[wrong_before | ~attack.success].any()


def test_pgd_never_beats_and_nearly_reaches_the_distance_to_a_known_boundary(rng):
    """relu(x1) - relu(x2) has the boundary x1 = x2 where both are positive."""
    net = fa.BinaryNet([[1.0, 0.0], [0.0, 1.0]])
    x = rng.uniform(10, 20, (200, 2))
    y = net.predict(x)
    distance = np.abs(x[:, 0] - x[:, 1]) / np.sqrt(2)
    for radius in (0.5, 1.0, 3.0):
        broken = fa.pgd(net, x, y, radius=radius, rng=rng).success
        assert not broken[distance > radius].any()
        assert broken[distance < 0.99 * radius].all()


@pytest.mark.parametrize("objective", ["readout", "cross-entropy"])
@pytest.mark.parametrize("which", ["binary", "probability", "argmax"])
def test_pgd_in_the_span_takes_the_same_steps_as_autograd_in_all_dimensions(
    trained, which, objective, monkeypatch
):
    _, test, coarse, fine = trained
    net = coarse if which == "binary" else fine.with_readout(which)
    # where some of the points break and others do not
    radius = 10.5 if which == "binary" else 17.5 if objective == "readout" else 22.0
    x, y, steps = test.x[:20], test.y[:20], 10
    attacker = Pgd(net, x, y, steps, 1, objective, test.cluster[:20])
    u, outside = attacker._start(radius, 20, np.random.default_rng(0))

    # the same start in all dimensions, with the rest along a direction outside of the span
    basis = attacker.view.span.basis
    away = np.random.default_rng(1).standard_normal(600)
    away -= basis @ (basis.T @ away)
    rho = torch.tensor((basis @ u).T + np.outer(outside, away / np.linalg.norm(away)))
    W, b, A = (torch.tensor(a) for a in (net.weights, net.biases, net.second_layer))
    signs = torch.tensor(y)

    def outputs(rho):
        return torch.relu((torch.tensor(x) + rho) @ W.T + b) @ A.T

    def lowered(f):
        if which == "binary":
            return signs * f[:, 0]
        if objective == "cross-entropy":
            own = torch.tensor(test.cluster[:20])
            return -torch.nn.functional.cross_entropy(f, own, reduction="none")
        plus = torch.tensor(net.class_signs == 1)
        f_plus, f_minus = f[:, plus], f[:, ~plus]
        if which == "argmax":
            return signs * (f_plus.amax(1) - f_minus.amax(1))
        return signs * (f_plus.logsumexp(1) - f_minus.logsumexp(1))

    broken, found = np.zeros(20, dtype=bool), np.zeros((20, 600))
    for step in range(steps + 1):
        rho.requires_grad_()
        value = lowered(outputs(rho))
        decision = net.decision(outputs(rho).detach().numpy().T)
        new = ((decision > 0) != (y == 1)) & ~broken
        found[new] = rho.detach().numpy()[new] @ basis @ basis.T
        broken |= new
        if step == steps:
            break
        (gradient,) = torch.autograd.grad(value.sum(), rho)
        length = gradient.norm(dim=1, keepdim=True)
        rho = rho.detach() - 2.5 * radius / steps * gradient / length
        rho = rho * torch.clamp(radius / rho.norm(dim=1, keepdim=True), max=1)

    monkeypatch.setattr(attacker, "_start", lambda *_: (u.copy(), outside.copy()))
    success, coordinates = attacker.run(radius, np.random.default_rng(0))
    np.testing.assert_array_equal(success, broken)
    np.testing.assert_allclose(attacker.view.span.embed(coordinates), found, atol=1e-8)
    assert 0 < success.sum() < 20


def test_random_starts_are_uniform_in_the_ball(trained):
    _, test, coarse, _ = trained
    attacker = Pgd(coarse, test.x, test.y, 10, 1, "readout", None)
    u, outside = attacker._start(2.0, 4000, np.random.default_rng(0))
    norm = np.hypot(np.linalg.norm(u, axis=0), outside)
    assert stats.kstest((norm / 2) ** 600, "uniform").pvalue > 1e-3
    # the squared share of a 6-dimensional subspace of 600 dimensions is Beta(3, 297)
    share = (np.linalg.norm(u, axis=0) / norm) ** 2
    assert stats.kstest(share, stats.beta(3, 297).cdf).pvalue > 1e-3


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


def test_a_saturated_loss_does_not_hide_the_attack():
    """The cross-entropy of a network with huge outputs is 0, its direction is not."""
    net = fa.BinaryNet(1e3 * np.eye(2))
    multi = fa.MultiClassNet(1e3 * np.eye(2), classes=2, positive=1)
    for attacked in (net, multi):
        attack = fa.pgd(
            attacked,
            [[3.0, 1.0]],
            [1],
            radius=1.5,
            rng=np.random.default_rng(0),
            objective="cross-entropy",
        )
        assert attack.success.all()


def test_half_radius_of_curves_that_never_get_there():
    def curve(broken_at):
        return fa.RobustCurve(
            np.array([1.0, 2.0]), np.array(broken_at), np.zeros(2), "pgd", "readout"
        )

    assert curve([np.inf, np.inf]).half_radius == np.inf
    assert curve([0.0, 0.0]).half_radius == 1.0
    assert "half radius" in repr(curve([1.0, 2.0]))


def test_bad_input_is_refused(trained, rng):
    _, test, coarse, fine = trained
    x, y = test.x, test.y
    bad = x.copy()
    bad[0, 0] = np.nan
    for call, message in [
        (lambda: fa.pgd(coarse, bad, y, radius=1, rng=rng), r"x must be finite; got nan at"),
        (lambda: fa.pgd(coarse, x[:, :3], y, radius=1, rng=rng), "x must have 600 columns"),
        (lambda: fa.pgd(coarse, x, y[:3], radius=1, rng=rng), "one label for each of the 100"),
        (lambda: fa.pgd(coarse, x, y, radius=-1, rng=rng), "radius must be at least 0; got -1"),
        (lambda: fa.pgd(coarse, x, y, radius=1, rng=None), "rng must be a numpy Generator"),
        (lambda: fa.pgd(coarse, x, y, radius=1, rng=rng, steps=0), "steps must be"),
        (
            lambda: fa.pgd(fine, x, y, radius=1, rng=rng, objective="loss"),
            "objective must be one of 'readout', 'cross-entropy'",
        ),
        (
            lambda: fa.pgd(fine, x, y, radius=1, rng=rng, fine_labels=np.full(100, 6)),
            "fine_labels must hold whole numbers from 0 to 5",
        ),
        (lambda: fa.robust_curve(coarse, x, y, radii=[1], method="pgd"), "'pgd' needs rng"),
        (lambda: fa.robust_curve(coarse, x, y, radii=[-1], rng=rng), "radii must be at least 0"),
        (
            lambda: fa.robust_curve(coarse, x, y, radii=[1], method="guess"),
            "method must be one of",
        ),
        (
            lambda: fa.robust_curve(coarse, x, y, radii=[1], method="direction"),
            "needs a direction",
        ),
        (
            lambda: fa.direction_attack(coarse, x, y, radius=1, direction=np.zeros(600)),
            "direction must not be zero",
        ),
        (lambda: fa.worst(), "at least one curve"),
        (lambda: fa.robust_curve(coarse, x, y, radii=["a"]), "radii must hold real numbers"),
        (lambda: fa.robust_curve(coarse, x, [[1], [1, 2]], radii=[1]), "y must hold real numbers"),
        (
            lambda: fa.robust_curve(coarse, x, y, radii=[1], objective="loss", method="direction"),
            "objective must be one of",
        ),
        (
            lambda: fa.averaged_direction(
                fa.MultiCluster(clusters=2, dim=3, cosine=1).sample(1, rng=rng)
            ),
            "the averaged direction is zero",
        ),
    ]:
        with pytest.raises(fa.InputError, match=message):
            call()

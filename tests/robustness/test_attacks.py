from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import featavg as fa
from featavg.robustness.attacks import Pgd
from support.zoo import random_problem


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


@pytest.mark.vision
@pytest.mark.parametrize("objective", ["readout", "cross-entropy"])
@pytest.mark.parametrize("which", ["binary", "probability", "argmax"])
def test_pgd_in_the_span_takes_the_same_steps_as_autograd_in_all_dimensions(
    trained, which, objective, monkeypatch
):
    import torch

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
        plus = torch.tensor(net.output_signs == 1)
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

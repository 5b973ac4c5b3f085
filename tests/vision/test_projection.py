"""Projections onto the ball, the box and half spaces."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

from featavg.vision.projection import nearest_in_half_space, project_to_ball, stretch_to_norm

pytestmark = pytest.mark.usefixtures("one_thread")


def slow_projection(v, x, radius):
    """The same by a general solver, and by bisection."""
    found = minimize(
        lambda d: 0.5 * ((d - v) ** 2).sum(),
        np.zeros_like(v),
        jac=lambda d: d - v,
        method="SLSQP",
        bounds=[(-a, 1 - a) for a in x],
        constraints=NonlinearConstraint(lambda d: d @ d, -np.inf, radius**2, jac=lambda d: 2 * d),
        options={"ftol": 1e-14, "maxiter": 500},
    )
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        inside = np.linalg.norm((middle * v).clip(-x, 1 - x)) <= radius
        low, high = (middle, high) if inside else (low, middle)
    return found.x, (high * v).clip(-x, 1 - x)


@pytest.mark.parametrize("radius", [0.05, 0.5, 1.0, 3.0])
def test_projection_against_a_general_solver(radius, rng):
    for scale in (0.1, 1.0, 20.0):
        x = rng.random(8) * (rng.random(8) > 0.3)  # some pixels are black
        v = scale * rng.standard_normal(8)
        v[0] = 0
        ours = project_to_ball(torch.tensor(v[None]), torch.tensor(x[None]), radius)[0].numpy()
        solver, bisected = slow_projection(v, x, radius)
        assert ours == pytest.approx(bisected, abs=1e-12)
        assert ours == pytest.approx(solver, abs=2e-5 * scale)
        # shrinking first and clipping after that is no nearer
        usual = (v * min(1, radius / np.linalg.norm(v))).clip(-x, 1 - x)
        assert np.linalg.norm(ours - v) <= np.linalg.norm(usual - v) + 1e-12


def test_projection_of_many_images_at_once(rng):
    x = torch.from_numpy(rng.random((50, 3, 8, 8)).round(1)).float()
    v = torch.from_numpy(rng.standard_normal((50, 3, 8, 8)) * rng.random((50, 1, 1, 1)) * 3).float()
    radius = torch.from_numpy(rng.random(50) * 4)
    d = project_to_ball(v, x, radius)
    assert d.dtype == x.dtype
    assert (d.flatten(1).double().norm(dim=1) <= radius * (1 + 1e-6)).all()
    assert ((x + d >= -1e-7) & (x + d <= 1 + 1e-7)).all()
    twice = project_to_ball(d, x, radius * (1 + 1e-6))
    torch.testing.assert_close(twice, d)
    zero = project_to_ball(torch.zeros_like(v), x, radius)
    assert (zero == 0).all()
    assert (project_to_ball(v, x, 0.0) == 0).all()


def test_stretching_keeps_the_norm_until_a_corner(rng):
    x = torch.from_numpy(rng.random((20, 30)))
    v = torch.from_numpy(rng.standard_normal((20, 30)))
    for radius in (1e-3, 0.5, 1.5):
        norms = stretch_to_norm(v, x, radius).norm(dim=1)
        torch.testing.assert_close(norms, torch.full_like(norms, radius))
    corner = torch.where(v > 0, 1 - x, -x)
    torch.testing.assert_close(stretch_to_norm(v, x, 100.0), corner)


def test_nearest_point_of_a_half_space_against_a_general_solver(rng):
    for level in (0.1, 0.6, 1.5):
        x, n = rng.random(8), rng.standard_normal(8)
        given = torch.tensor(n[None]), torch.tensor(x[None]), torch.tensor([level])
        ours = nearest_in_half_space(*given)[0].numpy()
        reach = np.where(n > 0, 1 - x, -x) @ n
        if reach < level:
            assert ours == pytest.approx(np.where(n > 0, 1 - x, -x))
            continue
        solver = minimize(
            lambda d: 0.5 * d @ d,
            np.zeros(8),
            jac=lambda d: d,
            method="SLSQP",
            bounds=[(-a, 1 - a) for a in x],
            constraints=LinearConstraint(n[None], level, np.inf),
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert n @ ours == pytest.approx(level)
        assert ours == pytest.approx(solver.x, abs=1e-6)

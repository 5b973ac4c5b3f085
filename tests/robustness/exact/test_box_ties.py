"""Contests that are drawn where the box ends: draws that are lost, and proofs of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import featavg as fa
from featavg.robustness.exact.verify import exact_outputs

NORMS = pytest.mark.parametrize("norm", ["l2", "linf"])


def linear_net(slopes, biases):
    outputs, dim = np.shape(slopes)
    return fa.ShallowNet(np.zeros((0, dim)), [], np.zeros((outputs, 0)), biases, linear=slopes)


def integer_net(rng, dim):
    """Return a network of small whole numbers, in which ties are common, and a binary point."""
    neurons = int(rng.integers(0, 4))
    net = fa.ShallowNet(
        rng.integers(-2, 3, (neurons, dim)).astype(float),
        rng.integers(-2, 3, neurons).astype(float),
        rng.integers(-2, 3, (3, neurons)).astype(float),
        rng.integers(-2, 3, 3).astype(float),
        linear=rng.integers(-1, 2, (3, dim)).astype(float),
    )
    return net, rng.integers(0, 2, (1, dim)).astype(float)


def winner(net, t):
    """Return which output decides at a rational number, in rational arithmetic."""
    hidden = [
        max(Fraction(float(w)) * t + Fraction(float(b)), Fraction(0))
        for w, b in zip(net.weights[:, 0], net.biases, strict=True)
    ]
    outputs = [
        sum((Fraction(float(q)) * h for q, h in zip(a, hidden, strict=True)), Fraction(float(c)))
        + Fraction(float(s)) * t
        for a, c, s in zip(net.second_layer, net.output_biases, net.linear[:, 0], strict=True)
    ]
    return outputs.index(max(outputs)), outputs


def rational_radius(net, x):
    """Return how near to x in [0, 1] another output decides, by going through all pieces."""
    kinks = {Fraction(0), Fraction(1)}
    kinks |= {
        -Fraction(float(b)) / Fraction(float(w))
        for w, b in zip(net.weights[:, 0], net.biases, strict=True)
        if w
    }
    ends = sorted(t for t in kinks if 0 <= t <= 1)
    crossings = set(ends)
    for left, right in pairwise(ends):
        (_, f), (_, g) = winner(net, left), winner(net, right)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            here, there = f[i] - f[j], g[i] - g[j]
            if here * there < 0:
                crossings.add(left + (right - left) * here / (here - there))
    points = sorted(crossings)
    own, _ = winner(net, x)
    turned = [abs(t - x) for t in points if winner(net, t)[0] != own]
    for left, right in pairwise(points):
        if winner(net, (left + right) / 2)[0] != own:
            turned += [abs(left - x), abs(right - x)]
    return float(min(turned, default=np.inf))


@NORMS
def test_a_draw_at_the_end_of_the_box_is_proved(norm):
    """The last output draws with the second at x = 1; the first overtakes at x = 0 only."""
    net = linear_net([[-1.0], [0.0], [1.0]], [1.0, 1.0, 0.0])
    radii = fa.exact_radii(net, [[1.0]], bounds=(0, 1), norm=norm)
    assert radii.upper[0] == 1
    assert radii.lower[0] == pytest.approx(1, rel=1e-9)
    assert radii.exact.all()
    verification = radii.verify(net, [[1.0]])
    assert verification.holds
    assert verification.proved[0] == pytest.approx(1, rel=1e-9)


@NORMS
def test_a_win_just_before_the_end_of_the_box_is_no_draw(norm):
    """A win that takes most of the box is not a draw, however short it is."""
    for before in (3e-9, 1e-10, 1e-12):
        net = linear_net([[0.0], [1.0]], [1 - before, 0.0])
        assert net.predict([[1.0]])[0] == 1
        radii = fa.exact_radii(net, [[0.5]], bounds=(0, 1), norm=norm)
        assert radii.lower[0] <= 0.5


@NORMS
def test_integer_networks_in_one_dimension_agree_with_rational_arithmetic(norm):
    rng = np.random.default_rng(0)
    infinite = 0
    for _ in range(150):
        net, x = integer_net(rng, 1)
        start = Fraction(float(x[0, 0]))
        assert winner(net, start)[1] == exact_outputs(net, x[0])
        expected = rational_radius(net, start)
        infinite += np.isinf(expected)
        radii = fa.exact_radii(net, x, bounds=(0, 1), norm=norm)
        assert radii.lower[0] <= expected * (1 + 1e-9)
        assert radii.upper[0] >= expected * (1 - 1e-9)
        if radii.exact[0]:
            assert radii.upper[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert radii.verify(net, x).holds
    assert infinite > 10


@NORMS
def test_binary_pixels_of_integer_networks_are_verified(norm):
    rng = np.random.default_rng(1)
    for _ in range(100):
        dim = int(rng.integers(2, 5))
        net, x = integer_net(rng, dim)
        radii = fa.exact_radii(net, x, bounds=(0, 1), norm=norm)
        assert radii.verify(net, x).holds
        # no point of a grid within the lower bound decides otherwise
        grid = np.array(list(product([0.0, 0.25, 0.5, 0.75, 1.0], repeat=dim)))
        order = np.inf if norm == "linf" else 2
        near = np.linalg.norm(grid - x, ord=order, axis=1) < radii.lower[0] * (1 - 1e-9)
        assert not (near & (net.predict(grid) != net.predict(x)[0])).any()


@NORMS
def test_a_lower_bound_that_is_too_large_is_refuted_at_the_end_of_a_box(norm):
    net = linear_net([[-1.0], [0.0], [1.0]], [1.0, 1.0, 0.0])
    radii = fa.exact_radii(net, [[1.0]], bounds=(0, 1), norm=norm)
    assert replace(radii, lower=radii.lower * 1.001).verify(net, [[1.0]]).refuted.tolist() == [0]
    # a proof that nothing turns the decision, for a network that is turned at the end of the box
    level, ahead = linear_net([[0.0], [1.0]], [1.0, 0.0]), linear_net([[0.0], [1.0]], [1 - 1e-9, 0])
    never = fa.exact_radii(level, [[0.5]], bounds=(0, 1), norm=norm)
    assert np.isinf(never.lower[0])
    assert never.verify(level, [[0.5]]).holds
    assert ahead.predict([[1.0]])[0] == 1
    assert never.verify(ahead, [[0.5]]).refuted.tolist() == [0]

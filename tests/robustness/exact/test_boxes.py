"""The maximum norm and boxes, against brute force, a mixed-integer solver and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import featavg as fa
from featavg.networks.shallow import ShallowNet
from support.oracles import least_boxed_norm, least_maximum

BOX = (-1.0, 1.0)


def random_shallow(rng, dim, neurons, outputs):
    """Return a network with random weights, and a point in the box."""
    W, b = rng.standard_normal((neurons, dim)), rng.standard_normal(neurons)
    A, c = rng.standard_normal((outputs, neurons)), 0.5 * rng.standard_normal(outputs)
    return ShallowNet(W, b, A, c), rng.uniform(-1, 1, dim)


def brute_force(net, x, norm, bounds):
    """Return the radius, over all activation patterns and all other outputs."""
    solve = least_maximum if norm == "linf" else least_boxed_norm
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    z, own = net.weights @ x + net.biases, int(net.winners(x[None])[0])
    best = np.inf
    for pattern in itertools.product([0.0, 1.0], repeat=len(z)):
        on = np.array(pattern)
        sides = np.where(on > 0, -1.0, 1.0)[:, None] * net.weights
        room = np.where(on > 0, z, -z)
        for other in range(len(net.labels)):
            if other != own:
                gain = (net.second_layer[other] - net.second_layer[own]) * on
                lead = gain @ z + net.output_biases[other] - net.output_biases[own]
                A = np.vstack([sides, -gain @ net.weights])
                best = min(best, solve(A, np.r_[room, lead], low - x, high - x))
    return best


def check(net, x, radii, norm, bounds):
    """Check that a perturbation turns the decision within the box, and nothing nearer does."""
    own = net.predict(x[None])[0]
    lower, upper, v = radii.lower[0], radii.upper[0], radii.perturbations[0]
    size = (lambda u: np.abs(u).max(axis=-1)) if norm == "linf" else np.linalg.norm
    if np.isfinite(upper):
        assert net.predict((x + v)[None])[0] != own
        assert upper * (1 - 1e-9) <= size(v) <= upper * (1 + 2e-5)
        if bounds is not None:
            assert bounds[0] <= (x + v).min()
            assert (x + v).max() <= bounds[1]
    attacked = ball_points(net, x, norm, bounds, min(lower, 100.0))
    assert (net.predict(attacked) == own).all()


def ball_points(net, x, norm, bounds, radius, count=400):
    """Return points of the ball and the box: random ones, corners, and a few steps of descent."""
    rng = np.random.default_rng(0)
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    own = int(net.winners(x[None])[0])

    def inside(u):
        if norm == "linf":
            u = np.clip(u, -radius, radius)
        else:
            length = np.linalg.norm(u, axis=1, keepdims=True)
            u = u * np.minimum(1, radius / np.maximum(length, 1e-300))
        return (np.clip(x + u, low, high) - x) * (1 - 1e-9)

    u = inside(2 * radius * rng.uniform(-1, 1, (count, len(x))))
    other = rng.choice([k for k in range(len(net.labels)) if k != own], count)
    seen = [u]
    for _ in range(30):
        on = (x + u) @ net.weights.T + net.biases > 0
        gain = net.second_layer[other] - net.second_layer[own]
        gradient = (gain * on) @ net.weights
        step = np.sign(gradient) if norm == "linf" else gradient
        step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300)
        u = inside(u + 0.3 * radius * step * np.sqrt(len(x) if norm == "linf" else 1))
        seen.append(u)
    return x + np.concatenate(seen)


# --- against brute force

CASES = [("linf", None), ("linf", BOX), ("l2", BOX)]


@pytest.mark.parametrize(("norm", "bounds"), CASES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_radii_equal_brute_force_over_all_activation_patterns(norm, bounds, outputs):
    rng = np.random.default_rng(10 * outputs)
    infinite = 0
    for trial in range(12):
        net, x = random_shallow(rng, 1 + trial % 4, 1 + trial % 6, outputs)
        radii = fa.exact_radii(net, x[None], norm=norm, bounds=bounds)
        expected = brute_force(net, x, norm, bounds)
        assert radii.norm == norm
        assert radii.exact.all()
        assert radii.upper[0] == pytest.approx(expected, rel=1e-6)
        assert radii.lower[0] == pytest.approx(expected, rel=1e-6)
        infinite += np.isinf(expected)
        check(net, x, radii, norm, bounds)
    assert infinite < 12


@pytest.mark.slow
@pytest.mark.parametrize(("norm", "bounds"), CASES)
def test_more_radii_equal_brute_force(norm, bounds):
    rng = np.random.default_rng(1)
    infinite = 0
    for trial in range(60):
        net, x = random_shallow(rng, 1 + trial % 4, 1 + trial % 7, 1 + 2 * (trial % 2))
        if trial % 5 == 0:  # some coordinates are at a bound
            x = np.where(rng.random(len(x)) < 0.5, np.sign(x), x)
        radii = fa.exact_radii(net, x[None], norm=norm, bounds=bounds)
        expected = brute_force(net, x, norm, bounds)
        assert radii.exact.all()
        assert radii.upper[0] == pytest.approx(expected, rel=1e-6)
        infinite += np.isinf(expected)
        check(net, x, radii, norm, bounds)
    assert infinite > 0


def test_leaky_relu_and_a_linear_part():
    """A leaky ReLU is two ReLUs: the network written so has the same radii."""
    rng = np.random.default_rng(2)
    W, b, A = rng.standard_normal((5, 3)), rng.standard_normal(5), rng.standard_normal((3, 5))
    S, c = rng.standard_normal((3, 3)), rng.standard_normal(3)
    leaky = ShallowNet(W, b, A, c, activation=fa.LeakyReLU(0.1), linear=S)
    ends = np.hstack([A, -0.1 * A, S, -S])
    rows, biases = np.vstack([W, -W, np.eye(3), -np.eye(3)]), np.r_[b, -b, np.zeros(6)]
    relu = ShallowNet(rows, biases, ends, c)
    X = rng.uniform(-1, 1, (5, 3))
    for norm, bounds in CASES:
        one, two = (fa.exact_radii(net, X, norm=norm, bounds=bounds) for net in (leaky, relu))
        assert one.exact.all()
        np.testing.assert_allclose(one.upper, two.upper, rtol=1e-6)


# --- against a mixed-integer program


def mixed_integer_radius(net, x, bounds, furthest):
    """Return the L-infinity radius by SCIP, if it is at most `furthest`."""
    pyscipopt = pytest.importorskip("pyscipopt")
    low = np.full(len(x), -furthest) if bounds is None else np.maximum(bounds[0] - x, -furthest)
    high = np.full(len(x), furthest) if bounds is None else np.minimum(bounds[1] - x, furthest)
    own = int(net.winners(x[None])[0])
    found = []
    for other in set(range(len(net.labels))) - {own}:
        model = pyscipopt.Model()
        model.hideOutput()
        model.setParam("numerics/feastol", 1e-9)
        t = model.addVar(lb=0, ub=furthest)
        v = [model.addVar(lb=a, ub=b) for a, b in zip(low, high, strict=True)]
        for u in v:
            model.addCons(u <= t)
            model.addCons(-u <= t)
        hidden = []
        for w, z in zip(net.weights, net.weights @ x + net.biases, strict=True):
            least, most = (
                z + np.minimum(w * low, w * high).sum(),
                z + np.maximum(w * low, w * high).sum(),
            )
            u = float(z) + pyscipopt.quicksum(float(a) * b for a, b in zip(w, v, strict=True))
            y, on = model.addVar(lb=0), model.addVar(vtype="B")
            model.addCons(y >= u)
            model.addCons(y <= u - min(float(least), 0.0) * (1 - on))
            model.addCons(y <= max(float(most), 0.0) * on)
            hidden.append(y)
        gain = net.second_layer[other] - net.second_layer[own]
        total = pyscipopt.quicksum(float(g) * y for g, y in zip(gain, hidden, strict=True))
        model.addCons(total + float(net.output_biases[other] - net.output_biases[own]) >= 0)
        model.setObjective(t)
        model.optimize()
        found.append(model.getObjVal() if model.getStatus() == "optimal" else np.inf)
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [None, BOX])
@pytest.mark.parametrize("outputs", [1, 4])
def test_radii_equal_those_of_a_mixed_integer_program(bounds, outputs):
    rng = np.random.default_rng(3 + outputs)
    for _ in range(6):
        net, x = random_shallow(rng, 12, 14, outputs)
        radii = fa.exact_radii(net, x[None], norm="linf", bounds=bounds)
        assert radii.exact.all()
        assert np.isfinite(radii.upper[0])
        expected = mixed_integer_radius(net, x, bounds, 2 * radii.upper[0])
        assert radii.upper[0] == pytest.approx(expected, rel=1e-6)
        check(net, x, radii, "linf", bounds)


# --- by hand


def test_a_plane_by_hand():
    """From (0, 0.5) to 3 x1 + 4 x2 > 7: both coordinates by 5/7, unless a bound stops x2."""
    net = ShallowNet(np.zeros((0, 2)), [], np.zeros((1, 0)), [-7.0], linear=[[3.0, 4.0]])
    x = [[0.0, 0.5]]
    assert fa.exact_radii(net, x, norm="linf").upper[0] == pytest.approx(5 / 7)
    boxed = fa.exact_radii(net, x, norm="linf", bounds=(-9, 9))
    assert boxed.upper[0] == pytest.approx(5 / 7)
    tight = fa.exact_radii(net, x, norm="linf", bounds=(-9.0, 1.05))
    assert tight.upper[0] == pytest.approx((7 - 4 * 1.05) / 3)
    # with x <= 1 the sum is at most 7, which is a draw, and the first label keeps it
    assert fa.exact_radii(net, x, norm="linf", bounds=(-9.0, 1.0)).upper[0] == np.inf
    with_l2 = fa.exact_radii(net, x, norm="l2", bounds=(-9.0, 1.1))
    assert with_l2.upper[0] == pytest.approx(np.hypot(2.6 / 3, 0.6))
    assert fa.exact_radii(net, x, norm="linf", bounds=(-9.0, 0.9)).lower[0] == np.inf


def test_a_kink_by_hand():
    """relu(x1) + relu(x2) > 1 from (-1, -1): two steps of 1 to the kink, then 1/2 for both."""
    net = ShallowNet(np.eye(2), [0.0, 0.0], [[1.0, 1.0]], [-1.0])
    x = [[-1.0, -1.0]]
    assert fa.exact_radii(net, x, norm="linf").upper[0] == pytest.approx(1.5)
    low = fa.exact_radii(net, x, norm="linf", bounds=(-1.0, 0.4))
    assert low.lower[0] == low.upper[0] == np.inf
    # in L2 one of them alone, 2 away, is nearer than both, 1.5 sqrt(2) away
    assert fa.exact_radii(net, x, bounds=(-1.0, 5.0)).upper[0] == pytest.approx(2.0)
    both = fa.exact_radii(net, x, bounds=(-1.0, 0.75)).upper[0]
    assert both == pytest.approx(1.5 * np.sqrt(2))


def test_norms_and_boxes_are_in_order():
    """A box makes radii larger; L-infinity <= L2 <= sqrt(d) L-infinity."""
    rng = np.random.default_rng(5)
    larger = 0
    for _ in range(6):
        net, _ = random_shallow(rng, 6, 10, 3)
        X = rng.uniform(-1, 1, (4, 6))
        free = {norm: fa.exact_radii(net, X, norm=norm) for norm in ("l2", "linf")}
        boxed = {norm: fa.exact_radii(net, X, norm=norm, bounds=BOX) for norm in ("l2", "linf")}
        for radii in (free, boxed):
            assert (radii["linf"].lower <= radii["l2"].upper * (1 + 1e-9)).all()
            assert (radii["l2"].lower <= np.sqrt(6) * radii["linf"].upper * (1 + 1e-9)).all()
        for norm in free:
            assert (free[norm].lower <= boxed[norm].upper * (1 + 1e-9)).all()
            wide = fa.exact_radii(net, X, norm=norm, bounds=(-1e3, 1e3))
            np.testing.assert_allclose(wide.upper, free[norm].upper, rtol=1e-6)
        larger += (boxed["linf"].upper > free["linf"].upper * 1.001).sum()
    assert larger > 3


def test_perturbations_stay_in_the_box_to_the_last_bit():
    rng = np.random.default_rng(6)
    bounds = (-3.3, 1.1)
    for norm in ("l2", "linf"):
        net, _ = random_shallow(rng, 20, 8, 2)
        X = rng.uniform(*bounds, (20, 20))
        radii = fa.exact_radii(net, X, norm=norm, bounds=bounds)
        at = X + radii.perturbations
        assert at.min() >= bounds[0]
        assert at.max() <= bounds[1]
        assert radii.exact.all()
        assert np.isclose(at, bounds[1], rtol=1e-12).any()


def test_budgets_leave_brackets():
    rng = np.random.default_rng(7)
    net, _ = random_shallow(rng, 10, 40, 2)
    X = rng.uniform(-1, 1, (12, 10))
    full = fa.exact_radii(net, X, norm="linf", bounds=BOX)
    short = fa.exact_radii(net, X, norm="linf", bounds=BOX, max_nodes=1)
    assert full.exact.all()
    assert not short.exact.all()
    assert np.median(short.lower) > 0
    assert (short.lower <= full.upper * (1 + 1e-9)).all()
    assert (full.lower <= short.upper * (1 + 1e-9)).all()

"""The maximum norm and boxes, against brute force, a mixed-integer solver and by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import featavg as fa
from featavg.networks.shallow import ShallowNet
from featavg.robustness.exact import boxes, simplex
from featavg.robustness.exact.boxes import BoxedEuclidean
from featavg.robustness.exact.geometry import Cap
from featavg.robustness.exact.max_norm import MaxNorm, knapsack
from featavg.robustness.exact.nearest import Rows
from featavg.robustness.exact.simplex import Simplex, bound_of
from featavg.robustness.exact.tasks import Limits, PointSearch
from support.oracles import least_norm

BOX = (-1.0, 1.0)


def random_shallow(rng, dim, neurons, outputs):
    """Return a network with random weights, and a point in the box."""
    W, b = rng.standard_normal((neurons, dim)), rng.standard_normal(neurons)
    A, c = rng.standard_normal((outputs, neurons)), 0.5 * rng.standard_normal(outputs)
    return ShallowNet(W, b, A, c), rng.uniform(-1, 1, dim)


def least_maximum(A, b, low, high):
    """Minimise max |v| with A v <= b in a box, as a linear program."""
    dim = A.shape[1]
    identity, ones = np.eye(dim), np.ones((dim, 1))
    answer = linprog(
        np.r_[np.zeros(dim), 1.0],
        np.block([[A, np.zeros((len(A), 1))], [identity, -ones], [-identity, -ones]]),
        np.r_[b, np.zeros(2 * dim)],
        bounds=[*zip(low, high, strict=True), (0, None)],
    )
    return np.inf if answer.status == 2 else answer.fun


def least_boxed_norm(A, b, low, high):
    """Minimise |v| with A v <= b in a box, by non-negative least squares."""
    rows = np.vstack([A, np.eye(A.shape[1]), -np.eye(A.shape[1])])
    limits = np.r_[b, high, -low]
    norms = np.linalg.norm(rows, axis=1)
    if (limits[norms == 0] < 0).any():
        return np.inf
    rows, limits, norms = (values[norms > 0] for values in (rows, limits, norms))
    return least_norm(rows / norms[:, None], limits / norms)


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


# --- the parts


def random_rows(rng, count, size):
    A = rng.standard_normal((count, size))
    b = 0.3 * rng.standard_normal(count) / np.sqrt(size)
    b[0] = -abs(b[0])
    return A, b


def random_box(rng, size):
    low = -rng.uniform(0, 1.5, size) * (rng.random(size) > 0.3)
    return low, rng.uniform(0, 1.5, size) * (rng.random(size) > 0.3)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("geometry", [MaxNorm, BoxedEuclidean])
def test_nearest_points(geometry, broken, monkeypatch):
    """Both solvers, the second being asked when the first one has failed."""
    if broken:
        monkeypatch.setattr(simplex, "_STEPS_A_ROW", 0)
        monkeypatch.setattr(boxes.daqp, "solve", lambda H, f, A, b, *_, **__: unsolved(H, b))
    rng = np.random.default_rng(8)
    empty = 0
    for trial in range(60):
        A, b = random_rows(rng, 1 + trial % 9, 1 + trial % 7)
        low, high = random_box(rng, A.shape[1])
        box = geometry(low, high)
        norms = box.dual_length(A)
        rows = Rows.of(A / norms[:, None], b / norms)
        solve = least_maximum if geometry is MaxNorm else least_boxed_norm
        expected = solve(A, b, low, high)
        answer = box.nearest(rows, np.inf)
        assert answer.distance == pytest.approx(expected, rel=1e-7)
        assert answer.distance <= expected * (1 + 1e-9)
        if np.isinf(expected):
            assert answer.point is None
            empty += 1
            continue
        assert box.length(answer.point) == pytest.approx(expected, rel=1e-7)
        assert (A @ answer.point <= b + 1e-8).all()
        assert (answer.point >= low - 1e-9).all()
        assert (answer.point <= high + 1e-9).all()
        far = box.nearest(rows, 0.9 * expected)
        assert far.point is None
        assert 0.9 * expected * (1 - 1e-7) <= far.distance <= expected * (1 + 1e-9)
    assert 0 < empty < 60


def unsolved(H, b):
    """Return what daqp returns when it gives up."""
    return np.zeros(len(H)), 0.0, -4, {"lam": np.zeros(len(b))}


def test_any_multipliers_prove_no_more_than_the_truth():
    rng = np.random.default_rng(9)
    positive = 0
    for trial in range(150):
        A, b = random_rows(rng, 5, 3)
        low, high = random_box(rng, 3)
        multipliers = rng.exponential(size=5) * (rng.random(5) < 0.5)
        rivals = (MaxNorm, least_maximum), (BoxedEuclidean, least_boxed_norm)
        geometry, solve = rivals[trial % 2]
        box = geometry(low, high)
        norms = box.dual_length(A)
        rows = Rows.of(A / norms[:, None], b / norms)
        distance, normal, plane = box.proved(rows, multipliers, np.inf)
        assert distance <= solve(A, b, low, high) * (1 + 1e-9)
        positive += distance > 0
        if normal is not None:  # all points of the polyhedron and the box are beyond the plane
            least = linprog(normal, A, b, bounds=list(zip(low, high, strict=True)))
            if least.status == 0:
                assert least.fun >= min(plane, 1e9) - 1e-9
    assert positive > 20


def test_errors_of_the_rows_lower_what_is_proved():
    A, b = np.array([[-0.5, -0.5]]), np.array([-1.0])
    low, high = np.full(2, -3.0), np.full(2, 3.0)
    for box in (MaxNorm(low, high), BoxedEuclidean(low, high)):
        scale = box.dual_length(A)
        exact = Rows.of(A / scale, b / scale)
        moved = Rows(exact.A, exact.b, np.array([1e-3]), np.array([1e-3]))
        truth = box.nearest(exact, np.inf).distance
        assert box.nearest(moved, np.inf).distance < truth * (1 - 1e-3)


def test_knapsack_equals_a_linear_program():
    rng = np.random.default_rng(11)
    cut = 0
    for _ in range(60):
        size = int(rng.integers(1, 7))
        low, high = random_box(rng, size)
        rows, normal = rng.standard_normal((3, size)), rng.standard_normal(size)
        normal[rng.random(size) < 0.2] = 0
        most = np.maximum(normal * low, normal * high).sum()
        distance = float(rng.uniform(-0.5, 1) * most)
        found = knapsack(rows, low, high, normal, distance)
        for w, value in zip(rows, found, strict=True):
            box = list(zip(low, high, strict=True))
            answer = linprog(-w, -normal[None], [-distance], bounds=box)
            assert value == pytest.approx(-answer.fun, abs=1e-9)
            cut += value < np.maximum(w * low, w * high).sum() - 1e-6
    assert cut > 20


def test_knapsack_is_no_smaller_than_the_truth_in_rational_arithmetic():
    """Where -w / n is huge, the difference of large numbers must not be taken at its word."""
    rng = np.random.default_rng(14)
    used = 0
    for _ in range(100):
        low, high = -rng.uniform(0.5, 1, 2), rng.uniform(0.5, 1, 2)
        w, normal = -rng.uniform(0.3, 1, 2), np.array([1.0, 10.0 ** rng.uniform(-15, -12)])
        distance = float(high @ normal - normal[1] * rng.uniform(0, 1))
        ends = [[Fraction(float(v)) for v in side] for side in (low, high)]
        exact_w, exact_n = ([Fraction(float(v)) for v in vector] for vector in (w, normal))

        def bound(mu, w=exact_w, n=exact_n, ends=ends, distance=distance):
            tilted = [a + mu * b for a, b in zip(w, n, strict=True)]
            most = sum(max(g * v for v in pair) for g, *pair in zip(tilted, *ends, strict=True))
            return most - mu * Fraction(distance)

        truth = min(
            bound(mu) for mu in [0, *(-a / b for a, b in zip(exact_w, exact_n, strict=True))]
        )
        value = knapsack(w[None], low, high, normal, distance)[0]
        assert Fraction(float(value)) >= truth
        used += value < np.maximum(w * low, w * high).sum() - 0.1
    assert used > 50


def test_what_is_outside_by_rounding_is_put_inside():
    net, _ = random_shallow(np.random.default_rng(15), 3, 2, 2)
    search = PointSearch(net, "linf", (0.0, 1.0), Limits(10))
    x = np.array([0.5, 0.0, 0.25])
    inside = x + search._embed(np.array([0.5 + 1e-12, -1e-12, 0.1]), x)
    np.testing.assert_array_equal(inside, [1.0, 0.0, 0.35])


def test_reach_holds_all_points_of_the_cap():
    rng = np.random.default_rng(12)
    for geometry in (MaxNorm, BoxedEuclidean):
        low, high = random_box(rng, 4)
        box = geometry(low, high)
        rows = rng.standard_normal((6, 4))
        points = rng.uniform(low, high, (20_000, 4))
        lengths = np.array([box.length(p) for p in points])
        radius = float(np.quantile(lengths, 0.7))
        normal = rows[0] / box.dual_length(rows)[0]
        distance = float(np.quantile(points @ normal, 0.7))
        inside = points[(lengths <= radius) & (points @ normal >= distance)]
        assert len(inside) > 100
        least, most = box.reach(rows, box.dual_length(rows), Cap(radius, normal, distance))
        assert (inside @ rows.T >= least).all()
        assert (inside @ rows.T <= most).all()


def test_bound_of_by_hand():
    g, room = np.array([1.0, -2.0]), np.array([0.5, 4.0])
    assert bound_of(g, 1.5, room) == pytest.approx(0.5)
    assert bound_of(g, 2.5, room) == pytest.approx(1.0)
    assert bound_of(g, 2.5, room, error=0.5) < 1.0
    assert bound_of(g, 9.0, room) == np.inf
    assert bound_of(g, -1.0, room) == 0.0


def test_the_simplex_method_needs_few_steps():
    rng = np.random.default_rng(13)
    A, b = random_rows(rng, 6, 500)
    low, high = random_box(rng, 500)
    program = Simplex(A / np.abs(A).sum(axis=1)[:, None], b / np.abs(A).sum(axis=1), low, high)
    answer = program.solve()
    assert answer.solved
    assert answer.point is not None
    assert np.abs(answer.point).max() == pytest.approx(least_maximum(A, b, low, high), rel=1e-9)
    assert program.steps < 100

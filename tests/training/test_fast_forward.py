from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit

import featavg as fa
from featavg.training.fast_forward import fast_forward_steps
from featavg.training.state import new_state
from support.zoo import small_training


def problem(kind, seed=0):
    net, train = small_training(kind, seed, dim=2000)
    if kind == "binary":
        return net, train, train.law.signs[None, :] == net.neuron_signs[:, None]
    return net, train, np.eye(4, dtype=bool)


@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_with_no_tolerance_it_is_gradient_descent(kind):
    net, train, _ = problem(kind)
    literal = fa.descend(net, train, learning_rate=1e-3, steps=300, record=[10, 100])
    run = fa.fast_forward(
        net, train, learning_rate=1e-3, steps=300, record=[10, 100], tolerance=1e-12
    )
    np.testing.assert_allclose(run.steps, literal.steps)
    np.testing.assert_allclose(
        run.point_coefficients, literal.point_coefficients, rtol=1e-9, atol=1e-15
    )
    np.testing.assert_allclose(run.log_loss, literal.log_loss, rtol=1e-9)
    np.testing.assert_array_equal(run.active, literal.active)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_it_follows_gradient_descent_and_the_error_shrinks_with_the_tolerance(kind):
    net, train, own = problem(kind)
    literal = fa.descend(net, train, learning_rate=2e-5, steps=50_000, record=2)
    exact = literal.feature_coefficients[-1][own]
    errors = []
    for tolerance in (0.04, 0.02, 0.01, 0.005):
        run = fa.fast_forward(
            net, train, learning_rate=2e-5, steps=50_000, tolerance=tolerance, record=2
        )
        errors.append(np.abs(run.feature_coefficients[-1][own] / exact - 1).max())
    assert errors[1] < 0.01  # the default
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert ((ratios > 1.4) & (ratios < 2.8)).all()


def test_it_agrees_with_runge_kutta_in_log_time_with_a_smooth_gate():
    net, train, own = problem("binary")
    K, n, y = train.gram + 1, len(train), train.y
    a, z = net.second_layer[0], net.preactivations(train.x)

    def derivative(log_time, state):
        """d C / d log(time), with the gate of the relu smoothed over 1e-4."""
        C = state.reshape(z.shape)
        Z = z + C @ K
        gate = expit(np.clip(Z / 1e-4, -50, 50))
        pull = y * expit(-y * (a @ (gate * Z)))
        return (np.exp(log_time) * a[:, None] * pull * gate / n).ravel()

    start, end = np.log(1e-9), np.log(10.0)
    # until the first time the pull is constant, and every neuron on or off as it began
    first = np.exp(start) * a[:, None] * y * 0.5 * (z >= 0) / n
    solved = solve_ivp(derivative, (start, end), first.ravel(), "RK45", rtol=1e-5, atol=1e-12)
    assert solved.success
    C = solved.y[:, -1].reshape(z.shape)
    members = np.eye(4)[train.cluster]
    reference = (C @ members * train.law.dim)[own]
    run = fa.fast_forward(net, train, learning_rate=1e-9, steps=1e10, record=2)
    np.testing.assert_allclose(run.feature_coefficients[-1][own], reference, rtol=0.01)


@pytest.mark.parametrize("kind", ["binary", "multi"])
def test_losses_far_below_what_a_float_can_hold(kind):
    net, train, _ = problem(kind)
    run = fa.fast_forward(
        net, train, learning_rate=1e-3, steps=10**500, tolerance=0.5, record=[10**200, 10**400]
    )
    assert run.log_loss[-1] < -900
    assert run.loss[-1] == 0
    assert np.isfinite(run.margins).all()
    assert np.isfinite(run.net.weights).all()
    assert (np.diff(run.log_loss) < 0).all()
    # the margin grows by log(10) for each power of ten of time: the loss is of order 1/t
    rates = np.diff(run.log_loss[1:]) / np.diff(run.log_times[1:])
    np.testing.assert_allclose(rates, -1, atol=0.02)
    assert "1.000e+500 steps" in repr(run)
    assert "e-500)" in repr(run)


def test_recorded_times_are_hit_exactly():
    net, train, _ = problem("binary")
    run = fa.fast_forward(net, train, learning_rate=1e-8, steps=1e9, record=[123456, 7e7])
    np.testing.assert_allclose(run.steps, [0, 123456, 7e7, 1e9])
    np.testing.assert_allclose(run.times, 1e-8 * run.steps)
    assert len(fa.fast_forward(net, train, learning_rate=1e-8, steps=1e9, record=7).steps) == 7


def coarse_steps():
    """Return a problem on which single steps go further than a small tolerance allows."""
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=4, dim=30).sample(24, rng=rng)
    net = fa.BinaryNet.init(train, width=3, weight_scale=0.01, bias_scale=0.01, rng=rng)
    return net, train


@pytest.mark.parametrize("record", [2, 5, 50, 500, [3, 7.4, 7.6, 20]])
def test_recording_changes_nothing_where_one_step_is_the_limit(record):
    net, train = coarse_steps()
    run = fa.fast_forward(net, train, learning_rate=0.5, steps=40, tolerance=1e-6, record=record)
    literal = fa.descend(net, train, learning_rate=0.5, steps=40, record=range(41))
    times = run.steps.astype(int)
    np.testing.assert_allclose(run.log_times[1:], np.log(0.5 * times[1:]), rtol=1e-12)
    np.testing.assert_allclose(
        run.point_coefficients, literal.point_coefficients[times], rtol=1e-9, atol=1e-12
    )


def test_times_within_a_step_that_is_as_short_as_possible_are_recorded_on_its_way():
    """From a time between two steps, whole numbers of steps are within the next ones."""
    net, train = coarse_steps()
    found = []
    for goals in ([0.4, 3.4], [0.4, 1, 1.2, 2, 3, 3.4]):
        state = new_state("dual", net, train)
        leaps = fast_forward_steps(
            state, learning_rate=0.5, goals=np.log(0.5) + np.log(goals), tolerance=1e-6
        )
        found.append({round(np.exp(t) / 0.5, 9): state.coefficients.copy() for t, _ in leaps})
    plain, stopped = found
    assert list(plain) == [0.4, 1.4, 2.4, 3.4]
    assert list(stopped) == [0.4, 1, 1.2, 1.4, 2, 2.4, 3, 3.4]
    for end, coefficients in plain.items():
        np.testing.assert_allclose(stopped[end], coefficients, rtol=1e-9, atol=1e-12)
    for time, share in ((1, 0.6), (1.2, 0.8)):
        np.testing.assert_allclose(stopped[time], share * plain[1.4], rtol=1e-9, atol=1e-12)


def test_times_to_record_are_whole_numbers_of_steps():
    net, train, _ = problem("binary")
    run = fa.fast_forward(net, train, learning_rate=1e-8, steps=1000.4, record=20)
    exact = np.exp(run.log_steps)
    assert exact[-1] == pytest.approx(1000)
    np.testing.assert_allclose(exact, np.round(exact), rtol=1e-12)
    assert (np.diff(run.steps) >= 1).all()
    short = fa.fast_forward(net, train, learning_rate=1e-8, steps=6, record=50)
    np.testing.assert_array_equal(short.steps, range(7))
    for steps in (0, 1):
        run = fa.fast_forward(net, train, learning_rate=1e-8, steps=steps)
        np.testing.assert_array_equal(run.steps, range(steps + 1))


def test_a_network_that_does_not_move_arrives_all_the_same():
    _, train, _ = problem("binary")
    dead = fa.BinaryNet(np.zeros((2, train.x.shape[1])), [-1.0, -1.0])
    run = fa.fast_forward(dead, train, learning_rate=1e-3, steps=1e12)
    assert not run.point_coefficients.any()


def test_bad_input_is_refused():
    net, train, _ = problem("binary")
    good = {"learning_rate": 1e-3, "steps": 10}
    for changes, message in [
        ({"tolerance": 0}, "tolerance must be above 0"),
        ({"steps": -1}, "steps must be a number of at least 0; got -1"),
        ({"steps": float("nan")}, "steps must be a number of at least 0"),
        ({"steps": float("inf")}, "steps must be a number of at least 0"),
        ({"record": [11]}, "record must name steps of at most steps=10"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0"),
    ]:
        with pytest.raises(fa.InputError, match=message):
            fa.fast_forward(net, train, **(good | changes))


def test_progress_names_the_time_and_the_goal(capsys, monkeypatch):
    clock = iter(range(0, 10**6, 3))
    monkeypatch.setattr("featavg.progress.time.monotonic", lambda: next(clock))
    net, train, _ = problem("binary")
    fa.fast_forward(net, train, learning_rate=1e-8, steps=1e9, record=5, progress=True)
    assert "of 1e1.0" in capsys.readouterr().err

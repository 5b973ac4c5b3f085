"""The parts that exact radii are made of, and networks as modules of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import featavg as fa
from featavg.robustness.bracket import _ClassScalars
from featavg.robustness.exact.nearest import nearest_point
from featavg.robustness.exact.pieces import Cap, Pieces
from featavg.robustness.view import AttackView
from support.zoo import SEEDS, random_multi

# --- the parts


@settings(deadline=None)
@given(SEEDS)
def test_reach_holds_every_point_of_the_cap(seed):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 6))
    pieces = Pieces(rng.standard_normal((5, dim)), rng.standard_normal(5), (), 1.0)
    normal = rng.standard_normal(dim)
    normal /= np.linalg.norm(normal)
    cap = Cap(2.0, normal, float(rng.uniform(0, 2)))
    low, high = pieces.reach(np.arange(5), cap)
    v = rng.standard_normal((4000, dim))
    v *= 2 * rng.random((4000, 1)) ** (1 / dim) / np.linalg.norm(v, axis=1, keepdims=True)
    t = v @ normal
    inside = np.vstack([v[t >= cap.distance], cap.distance * normal, 2 * normal])
    u = pieces.z + inside @ pieces.V.T
    assert (u >= low - 1e-9).all()
    assert (u <= high + 1e-9).all()


@settings(deadline=None)
@given(SEEDS)
def test_costs_of_class_outputs_are_below_the_norm(seed):
    """The inequality behind the bracket: the sum of d (change of a class)² is at most |rho|²."""
    rng = np.random.default_rng(seed)
    net = random_multi(rng, "probability")
    weights = net.weights.copy()
    weights[rng.random(len(weights)) < 0.2] = 0
    net = fa.MultiClassNet(weights, net.classes, net.positive)
    x = rng.standard_normal((1, net.dim))
    rho = rng.standard_normal((200, net.dim)) * 10.0 ** rng.uniform(-2, 2, (200, 1))
    view = AttackView.of(net, x, net.predict(x))
    scalars = _ClassScalars.of(net, view)
    moved = AttackView.of(net, x + rho, np.ones(200, dtype=int))
    change = _ClassScalars.of(net, moved).z - scalars.z
    spent = (scalars.cost[:, None] * np.square(change)).sum(axis=0)
    assert (spent <= np.square(rho).sum(axis=1) * (1 + 1e-9)).all()


@settings(deadline=None)
@given(SEEDS)
def test_nearest_point_is_feasible_and_its_distance_proved(seed):
    rng = np.random.default_rng(seed)
    rows, dim = int(rng.integers(1, 25)), int(rng.integers(1, 8))
    A = rng.standard_normal((rows, dim))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = rng.standard_normal(rows) - 0.3
    answer = nearest_point(A, b)
    if answer.point is None:
        assert answer.distance > 1e5
        return
    assert (A @ answer.point <= b + 1e-8).all()
    assert np.linalg.norm(answer.point) == pytest.approx(answer.distance, rel=1e-6, abs=1e-8)
    closer = nearest_point(A, b, cutoff=answer.distance / 2)
    assert closer.distance >= answer.distance / 2 * (1 - 1e-9)


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


# --- export


@pytest.mark.parametrize("outputs", ["decision", "classes"])
def test_the_exported_module_computes_the_same(outputs, rng):
    import torch

    x = rng.standard_normal((50, 4))
    for net in (
        fa.BinaryNet(rng.standard_normal((6, 4)), rng.standard_normal(6)),
        fa.MultiClassNet(rng.standard_normal((6, 4)), 3, [0, 2]),
        fa.MultiClassNet(rng.standard_normal((6, 4)), 3, [0, 2], "argmax"),
    ):
        if outputs == "classes" and isinstance(net, fa.BinaryNet):
            with pytest.raises(fa.InputError, match="needs a MultiClassNet"):
                net.to_torch(outputs)
            continue
        logits = net.to_torch(outputs)(torch.tensor(x)).detach().numpy()
        if outputs == "classes":
            np.testing.assert_allclose(logits, net.logits(x))
        else:
            decision = net.decision(net.outputs(x))
            np.testing.assert_allclose(logits[:, 1] - logits[:, 0], decision, atol=1e-12)
            np.testing.assert_array_equal(logits.argmax(axis=1) == 1, net.predict(x) == 1)

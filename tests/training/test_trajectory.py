from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.training.trajectory import recorded_steps


def test_recorded_networks_losses_margins_and_activations_belong_together(small_train, rng):
    for net in (
        fa.BinaryNet.init(small_train, width=2, weight_scale=0.1, bias_scale=0.1, rng=rng),
        fa.MultiClassNet.init(small_train, width=2, weight_scale=0.1, rng=rng),
    ):
        run = fa.descend(net, small_train, learning_rate=0.01, steps=30, record=[7, 20])
        np.testing.assert_array_equal(run.steps, [0, 7, 20, 30])
        np.testing.assert_allclose(run.times, [0, 0.07, 0.2, 0.3])
        for index, step in enumerate(run.steps):
            again = fa.descend(net, small_train, learning_rate=0.01, steps=int(step)).net
            at = run.net_at(index)
            np.testing.assert_allclose(at.weights, again.weights, rtol=1e-9, atol=1e-12)
            loss = at.default_loss
            outputs, targets = at.outputs(small_train.x), loss.targets(at.output_count, small_train)
            assert run.loss[index] == pytest.approx(loss.losses(outputs, targets).mean())
            np.testing.assert_allclose(run.margins[index], loss.margins(outputs, targets))
            np.testing.assert_array_equal(run.active[index], at.preactivations(small_train.x) >= 0)


def test_recorded_steps():
    np.testing.assert_array_equal(recorded_steps(2, 100), [0, 100])
    np.testing.assert_array_equal(recorded_steps([], 100), [0, 100])
    np.testing.assert_array_equal(recorded_steps(50, 0), [0])
    assert len(recorded_steps(50, 10**6)) <= 50

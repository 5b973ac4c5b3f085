"""The experiments on label groups and readouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.experiments.beyond import granularity, readouts
from featavg.theory.granularity import argmax_radii


def test_one_grouping_replaces_all_others():
    parameters = granularity.Parameters(grouping=" 1, 4 | 2,3", dims="3072")
    assert parameters.grouping == "1,4|2,3"
    (case,) = parameters.cases
    assert (case.clusters, case.dim, len(case.groups())) == (10, 3072, 4)
    assert case.groups()[0] == ("1,4|2,3", 1, 1, 3)


@pytest.mark.parametrize(
    ("dims", "settings"), [("3072", "of 1 setting, in"), ("3072, 5000", "of 2 settings, in")]
)
def test_the_conclusion_counts_settings(dims, settings):
    parameters = granularity.Parameters(grouping="1,4|5", dims=dims)
    parts = ("law_low", "law_high", "predicted_error")
    results = {f"{c.name}_{part}": np.ones(1) for c in parameters.cases for part in parts}
    assert f"label groups {settings} every seed" in granularity.conclude(parameters, results)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grouping": "1,4"}, "sizes of the label groups of both sides"),
        ({"grouping": "5000|1", "dims": "3072"}, "clusters must be at most dim"),
        ({"clusters": "4, x"}, "clusters must be whole numbers of at least 4"),
        ({"dims": ""}, "dims must be whole numbers"),
        ({"theorem_clusters": "2"}, "theorem_clusters must be whole numbers of at least 3"),
    ],
)
def test_what_cannot_be_run_is_refused(options, message):
    with pytest.raises(fa.InputError, match=message):
        granularity.Parameters(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clusters": "4, 5"}, "clusters must be even"),
        ({"scales": "0.1, -1"}, "scales must be numbers above 0"),
        ({"scales": "a"}, "scales must be numbers above 0"),
    ],
)
def test_readouts_refuse_what_cannot_be_run(options, message):
    with pytest.raises(fa.InputError, match=message):
        readouts.Parameters(**options)


def test_every_setting_the_law_asks_for_is_in_the_run():
    cases = {case.name: case for case in granularity.Parameters().cases}
    grid = {(c.clusters, c.dim) for c in cases.values() if c.name.startswith("k")}
    assert grid == {(k, d) for k in (4, 10, 20) for d in (12288, 49152)}
    at_scale = cases["theorem3"]
    assert (at_scale.dim, at_scale.samples) == (3**10, 3**7)
    assert at_scale.learning_rate == pytest.approx(3.0**-20)
    assert any(len(set(g.sizes)) > 1 for g in cases["k10_d12288"].groupings)


def test_the_closed_form_is_what_the_search_finds():
    """Also where the way along two weights does not turn the decision."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        classes, dim = int(rng.integers(2, 6)), int(rng.integers(2, 6))
        positive = int(rng.integers(1, classes))
        biases = rng.standard_normal(classes)
        net = fa.MultiClassNet(
            rng.standard_normal((classes, dim)), classes, positive, "argmax", biases
        )
        x, y = rng.standard_normal((20, dim)), rng.choice([-1, 1], 20)
        expected = fa.exact_radii(net, x, y, jobs=1).upper
        np.testing.assert_allclose(argmax_radii(net, x, y), expected, rtol=1e-6)
    with pytest.raises(fa.InputError, match="one ReLU for each class"):
        argmax_radii(net.with_readout("logit-sum"), x, y)


def test_averaged_weights_as_outputs_decide_as_the_two_class_network():
    parameters = replace(readouts.Parameters(), dim=600, cluster_samples=5)
    rng = np.random.default_rng(0)
    train, test = readouts._drawn(parameters, 4, rng)
    net = readouts._averaged(parameters, train, rng).with_readout("logit-sum")
    binary = fa.BinaryNet(net.weights, net.biases)
    np.testing.assert_allclose(net.score(test.x), 2 * binary.score(test.x))

"""Claims of our own: they hold for ideal weights, and fail for others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.theory import LEDGER, OURS, Evidence, ProofQuantities
from featavg.theory.own_claims import in_between


@pytest.fixture(scope="module")
def evidence():
    """Weights that are exact sums of centres, and points with hardly any noise."""
    rng = np.random.default_rng(0)
    law = fa.MultiCluster(clusters=7, dim=200, signal=1.3, noise=1e-3)
    train = law.sample(40, rng=rng)
    grouped = train.grouped(in_between(law))
    nets = (
        fa.BinaryNet.init(train, width=3, weight_scale=0.01, bias_scale=0.01, rng=rng),
        fa.MultiClassNet.init(train, width=1, weight_scale=0.01, rng=rng),
        fa.MultiClassNet.init(grouped, width=1, weight_scale=0.01, rng=rng),
    )
    samples = (train, train, grouped)
    coarse, fine, groups = (
        fa.descend(net, sample, learning_rate=0.01, steps=2, record=2)
        for net, sample in zip(nets, samples, strict=True)
    )
    members = np.arange(len(grouped.label_signs))[:, None] == grouped.label_of_cluster
    fine = replace(fine, net=nets[1].with_parameters(train.centers, np.zeros(7)))
    sums = nets[2].with_parameters(members @ train.centers, np.zeros(len(members)))
    groups = replace(groups, net=sums)
    test = train.fresh(60, rng=rng)
    return Evidence(
        ProofQuantities(coarse), ProofQuantities(fine), test, 0.01, 0.01, grouped=groups
    )


def test_they_are_apart_from_those_of_the_paper():
    assert set(OURS).isdisjoint(LEDGER)
    assert all(name.startswith("ours-") for name in OURS)
    assert {claim.section for claim in OURS.values()} == {"Ours: beyond the paper"}


def test_label_groups_are_between_sides_and_clusters():
    texts = [str(in_between(fa.MultiCluster(k, 50))) for k in (2, 3, 4, 5, 10)]
    assert texts == ["1|1", "2|1", "2|1,1", "1,2|1,1", "1,4|2,3"]


@pytest.mark.parametrize("name", list(OURS))
def test_they_hold_for_ideal_weights(name, evidence):
    finding = OURS[name].measure(evidence)
    assert finding.verdict == "holds"
    assert finding.measured < 1e-3


def test_the_law_fails_for_weights_that_forget_a_centre(evidence):
    run = evidence.grouped
    weights = run.net.weights.copy()
    weights[1] -= 0.4 * run.sample.centers[1]
    wrong = replace(run, net=run.net.with_parameters(weights, run.net.biases))
    finding = OURS["ours-granularity"].measure(replace(evidence, grouped=wrong))
    assert finding.verdict == "violated"


def test_summed_logits_fail_for_weights_on_foreign_centres(evidence):
    fine = evidence.fine.run
    weights = fine.net.weights - 0.05 * fine.sample.centers.sum(axis=0)
    wrong = replace(fine, net=fine.net.with_parameters(weights, fine.net.biases))
    finding = OURS["ours-readout"].measure(replace(evidence, fine=ProofQuantities(wrong)))
    assert finding.verdict == "violated"


def test_without_label_groups_the_law_is_not_stated(evidence):
    finding = OURS["ours-granularity"].measure(replace(evidence, grouped=None))
    assert finding.verdict == "not stated at this scale"

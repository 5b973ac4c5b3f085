"""Supplies of labels: what each hands out."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.experiments.beyond import supplies
from featavg.experiments.beyond.supplies import SUPPLIES


@pytest.fixture(scope="module")
def train():
    law = fa.MultiCluster(clusters=10, dim=3072)
    return law.sample(400, rng=np.random.default_rng(0), coordinates="span", reserve=1)


def rng():
    return np.random.default_rng(1)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_known_labels_are_right_and_as_many_as_asked_for(count, train):
    made = supplies.known(train, rng(), count=count)
    known = made.labels >= 0
    np.testing.assert_array_equal(made.labels[known], train.cluster[known])
    np.testing.assert_array_equal(np.bincount(train.cluster[known], minlength=10), count)


@pytest.mark.parametrize("within_side", [True, False])
def test_wrong_labels_are_as_many_as_redrawing_makes(within_side, train):
    made = supplies.wrong(train, rng(), share=0.5, within_side=within_side)
    labels = 5 if within_side else 10
    expected = 0.5 * (1 - 1 / labels)  # some are drawn right
    assert (made.labels != train.cluster).mean() == pytest.approx(expected, abs=0.08)
    right_side = train.law.signs[made.labels] == train.y
    assert right_side.mean() == pytest.approx(1.0 if within_side else 0.75, abs=0.07)


def test_split_labels_name_the_cluster_and_an_even_part_of_it(train):
    made = supplies.split(train, rng(), parts=3)
    np.testing.assert_array_equal(made.labels // 3, train.cluster)
    assert np.bincount(made.labels % 3).min() > 400 / 3 - 45
    assert (made.classes, made.positive) == (30, 15)


def test_merged_labels_and_their_radii_by_hand(train):
    made = supplies.merged(train, rng(), size=3)
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    np.testing.assert_array_equal(made.labels, groups[train.cluster])
    assert (made.classes, made.positive) == (4, 2)
    sizes = np.array([3, 3, 3, 2, 2, 3, 3, 3, 2, 2])
    np.testing.assert_allclose(made.theory, np.sqrt(3072 / (sizes + 3)))


def test_k_means_finds_the_clusters(train):
    made = supplies.found(train, rng(), factor=1)
    pairs = set(zip(made.labels.tolist(), train.cluster.tolist(), strict=True))
    assert len(pairs) == 10


def test_labels_are_of_the_right_side_where_they_should_be(train):
    for key, supply in SUPPLIES.items():
        made = supply.label(train, rng())
        assert made.labels.max() < made.classes
        known = made.labels >= 0
        sides = np.where(made.labels < made.positive, 1, -1)
        agree = bool((sides == train.y)[known].all())
        assert agree != key.startswith("any"), key

"""Label groups, and samples whose fine labels are shared by clusters."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa


def sample(clusters=5, positive=None, size=30, seed=0, dim=40):
    law = fa.MultiCluster(clusters=clusters, dim=dim, positive=positive)
    return law.sample(size, rng=np.random.default_rng(seed))


@pytest.mark.parametrize(
    "text", ["", "5", "5|", "|5", "1,4|2,3|1", "1;4|5", "0|5", "1,0|5", "1.5|2", "-1|2", 5, None]
)
def test_what_is_no_grouping_is_refused_in_one_sentence(text):
    with pytest.raises(fa.InputError, match=r"sizes of the label groups .*; got .*\.$") as error:
        fa.Grouping.parse(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("sizes", [((), (1,)), ((1,), (0,)), ((1,), (2.5,)), ((True,), (1,))])
def test_sizes_are_checked(sizes):
    with pytest.raises(fa.InputError, match=r"; got .*\.$"):
        fa.Grouping(*sizes)


def test_a_grouping_reads_what_it_writes():
    for text in ("5|5", "1,4|2,3", "1,1,1|3", "10|1"):
        assert str(fa.Grouping.parse(text)) == text
        assert fa.Grouping.parse(f" {text} ".replace(",", ", ")) == fa.Grouping.parse(text)
    assert fa.Grouping.fine(2, 3) == fa.Grouping.parse("1,1|1,1,1")
    assert fa.Grouping.coarse(2, 3) == fa.Grouping.parse("2|3")


def test_groups_follow_the_order_of_the_clusters_of_their_side():
    train = sample(positive=[1, 3, 4]).grouped("1,2|2")
    np.testing.assert_array_equal(train.label_of_cluster, [2, 0, 2, 1, 1])
    np.testing.assert_array_equal(train.labels, train.label_of_cluster[train.cluster])
    np.testing.assert_array_equal(train.label_signs[train.labels], train.y)
    assert "with the labels 1,2|2" in repr(train)


def test_groups_must_be_of_the_clusters_of_the_sides():
    with pytest.raises(fa.InputError, match=r"all 3 positive and all 2 negative clusters; got '2"):
        sample().grouped("2|3")


def test_fresh_points_have_the_same_labels_and_the_gram_matrix_is_kept():
    train = sample()
    gram, grouped = train.gram, train.grouped("1,2|2")
    assert grouped.gram is gram
    test = grouped.fresh(9, rng=np.random.default_rng(1))
    assert test.grouping == grouped.grouping
    np.testing.assert_array_equal(test.x, train.fresh(9, rng=np.random.default_rng(1)).x)
    again = grouped.grouped(None)
    np.testing.assert_array_equal(again.labels, train.cluster)


def test_one_group_for_each_cluster_trains_as_no_groups_do():
    train = sample()
    fine = train.grouped(fa.Grouping.fine(3, 2))
    nets = [
        fa.MultiClassNet.init(s, width=2, weight_scale=0.01, rng=np.random.default_rng(1))
        for s in (train, fine)
    ]
    first, second = (
        fa.descend(net, s, learning_rate=0.05, steps=20).net.weights
        for net, s in zip(nets, (train, fine), strict=True)
    )
    np.testing.assert_array_equal(first, second)


def test_training_on_groups_is_training_on_the_groups_as_clusters():
    train = sample(dim=30, size=40)
    grouped = train.grouped("1,2|2")
    plain = fa.Sample.from_points(train.x, grouped.labels, positive=[0, 1])
    net = fa.MultiClassNet.init(grouped, width=2, weight_scale=0.1, rng=np.random.default_rng(2))
    assert net.positive == (0, 1)
    for loss in (fa.CrossEntropy(0.1), fa.Square(), fa.Hinge(), fa.CoarseCrossEntropy([1, 5])):
        runs = [
            fa.descend(net, s, learning_rate=0.05, steps=30, loss=loss) for s in (grouped, plain)
        ]
        np.testing.assert_allclose(runs[0].net.weights, runs[1].net.weights, rtol=1e-9, atol=1e-12)
    own = net.own_clusters(grouped)
    np.testing.assert_array_equal(own[::2].astype(int), [[1, 0, 0, 0, 0], [0, 1, 1, 0, 0],
                                                         [0, 0, 0, 1, 1]])  # fmt: skip


def test_a_network_of_other_classes_is_refused():
    train = sample().grouped("1,2|2")
    net = fa.MultiClassNet.init(sample(), width=1, weight_scale=0.1, rng=np.random.default_rng(0))
    with pytest.raises(fa.InputError, match="for each label group of the sample; got 5 and 3"):
        fa.descend(net, train, learning_rate=0.1, steps=1)
    with pytest.raises(fa.InputError, match="classes and label groups; got 5 and 3"):
        net.own_clusters(train)

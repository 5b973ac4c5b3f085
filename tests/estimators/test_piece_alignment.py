"""The averaging index of affine pieces, which are known up to a common vector."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.estimators.piece_alignment import deciding_pieces, piece_averaging_index
from featavg.estimators.pieces import PieceHead, SortedPairs
from featavg.measures.alignment import participation

CLUSTERS, HALF = 6, 3


@pytest.fixture
def train(rng):
    return fa.MultiCluster(clusters=CLUSTERS, dim=80).sample(120, rng=rng)


def mixed(train, own, others, shift=0.0):
    """Return a piece for each cluster: own·mu_j plus others·(the sum of the rest of its side)."""
    signs = train.law.signs
    order = np.r_[np.flatnonzero(signs == -1), np.flatnonzero(signs == 1)]
    sums = (signs[order][:, None] == signs) @ train.centers
    weights = others * sums + (own - others) * train.centers[order] + shift
    return PieceHead(weights, np.zeros(CLUSTERS), np.repeat([0, 1], HALF))


def test_averaged_pieces_have_the_index_1_and_decoupled_ones_0(train):
    assert piece_averaging_index(mixed(train, 1, 1), train) == pytest.approx(1)
    assert piece_averaging_index(mixed(train, 1, 0), train) == pytest.approx(0)


@pytest.mark.parametrize("others", [0.0, 0.3, 0.7, 1.0])
def test_a_vector_that_is_added_to_all_pieces_changes_nothing(train, rng, others):
    head = mixed(train, 1, others)
    common = 20 * rng.standard_normal(80)
    shifted = PieceHead(head.weights + common, head.biases, head.class_of)
    index = piece_averaging_index(head, train)
    assert piece_averaging_index(shifted, train) == pytest.approx(index, abs=1e-9)


@pytest.mark.parametrize("others", [0.2, 0.5, 0.8])
def test_in_between_it_is_the_index_of_neurons(train, others):
    head = mixed(train, 1, others)
    net = fa.BinaryNet(np.r_[head.weights[HALF:], head.weights[:HALF]])
    index = fa.averaging_index(net, train)
    assert piece_averaging_index(head, train) == pytest.approx(index)
    assert index == pytest.approx(((1 + 2 * others**2) ** 2 / (1 + 2 * others**4) - 1) / 2)


def test_pieces_that_decide_no_point_do_not_count(train, rng):
    head = mixed(train, 1, 0)
    silent = PieceHead(
        np.r_[rng.standard_normal((1, 80)), head.weights],
        np.r_[-1e6, head.biases],
        np.r_[0, head.class_of],
    )
    assert piece_averaging_index(silent, train) == piece_averaging_index(head, train)


def test_learned_features_count_by_their_gradients(train, rng):
    rotation = np.linalg.qr(rng.standard_normal((80, 80)))[0]
    head = PieceHead(
        rng.standard_normal((4, 80)),
        rng.standard_normal(4),
        np.array([0, 0, 1, 1]),
        SortedPairs(rotation, rng.standard_normal(80)),
    )
    classes = (train.y == 1).astype(int)
    pieces, row, step = deciding_pieces(head, train.x, classes), np.arange(len(train)), 1e-5
    along = np.stack(
        [
            (
                head.piece_values(train.x + step * mu)[row, pieces]
                - head.piece_values(train.x - step * mu)[row, pieces]
            )
            / (2 * step)
            for mu in train.centers / np.sqrt(80)
        ],
        axis=1,
    )
    means = {side: along[train.y == side].mean(axis=0) for side in (1, -1)}
    along -= np.stack([means[-side] for side in train.y])
    index = participation(along.T, train.law.signs[:, None] == train.y)
    expected = index[~np.isnan(index)].mean()
    assert piece_averaging_index(head, train) == pytest.approx(expected, rel=1e-5)


def test_refusals(train):
    head = mixed(train, 1, 0)
    three = PieceHead(head.weights, head.biases, np.repeat([0, 1, 2], 2))
    with pytest.raises(fa.InputError, match="two classes"):
        piece_averaging_index(three, train)
    with pytest.raises(fa.InputError, match="columns"):
        piece_averaging_index(PieceHead(head.weights[:, 1:], head.biases, head.class_of), train)
    mine = train.y == 1
    one_side = fa.Sample.from_points(
        train.x[mine], train.cluster[mine], centers=train.centers, positive=HALF
    )
    with pytest.raises(fa.InputError, match="both sides"):
        piece_averaging_index(head, one_side)

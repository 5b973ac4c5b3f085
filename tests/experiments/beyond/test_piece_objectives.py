"""The propositions of the page "Why training on the radius decouples", step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import featavg as fa
from featavg.estimators.piece_training import Examples, radius_gradients
from featavg.estimators.pieces import PieceHead
from featavg.experiments.beyond.piece_objectives import (
    OBJECTIVES,
    averaged_head,
    center_margin,
    class_values,
    cross_entropy_gradients,
    descent,
    spread_of_pieces,
)

K, D = 8, 64
HALF = K // 2


@pytest.fixture
def centers(rng):
    """Return one point for each cluster, without noise."""
    return fa.MultiCluster(clusters=K, dim=D, noise=0.0, balanced=True).sample(K, rng=rng)


def on_the_line(train, amount, size=0.01):
    """Return averaged pieces, moved towards decoupled ones: size·(sum + amount·(mu_j - mean))."""
    signs = train.law.signs
    order = np.r_[np.flatnonzero(signs == -1), np.flatnonzero(signs == 1)]
    sums = (signs[order][:, None] == signs) @ train.centers
    weights = size * (sums + amount * (train.centers[order] - sums / HALF))
    return PieceHead(weights, np.zeros(K), np.repeat([0, 1], HALF))


def classes_of(train):
    return (train.y == 1).astype(int)


@pytest.mark.parametrize("readout", ["mean", "soft", "max"])
def test_gradients_are_those_of_finite_differences(rng, centers, readout):
    head = averaged_head(centers, 3, 0.5, rng)
    classes, signs = classes_of(centers), centers.y

    def loss(weights, biases):
        values, _ = class_values(replace(head, weights=weights, biases=biases), centers.x, readout)
        return np.logaddexp(0, -signs * (values[:, 1] - values[:, 0])).mean()

    gradients = cross_entropy_gradients(head, centers.x, classes, readout)
    for _ in range(3):
        w, b = rng.standard_normal(head.weights.shape), rng.standard_normal(head.biases.shape)
        step = 1e-6
        ahead, behind = (
            loss(head.weights + s * step * w, head.biases + s * step * b) for s in (1, -1)
        )
        slope = (gradients[0] * w).sum() + (gradients[1] * b).sum()
        assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_equal_pieces_have_the_same_value_by_every_readout(rng, centers):
    head = averaged_head(centers, 3, 0.0, rng)
    values = [class_values(head, centers.x, readout)[0] for readout in ("mean", "soft", "max")]
    assert values[1] == pytest.approx(values[0])
    assert values[2] == pytest.approx(values[0])
    assert center_margin(head, centers, "max") == pytest.approx(1)


def test_the_mean_of_pieces_never_tells_them_apart(rng, centers):
    head = averaged_head(centers, HALF, 0.1, rng)
    heads = descent(head, centers, OBJECTIVES["mean"], 1.0, [500])
    assert spread_of_pieces(heads[-1], centers) == pytest.approx(spread_of_pieces(head, centers))
    assert center_margin(heads[-1], centers, "mean") > 2


def test_log_mean_exp_has_the_growth_rate_of_the_proposition(centers):
    amount, size = 1e-4, 0.01
    head = on_the_line(centers, amount, size)
    gradient = cross_entropy_gradients(head, centers.x, classes_of(centers), "soft")[0]
    apart = on_the_line(centers, 1, 1).weights - on_the_line(centers, 0, 1).weights
    measured = -(gradient * apart).sum() / np.square(apart).sum() / (size * amount)
    residual = expit(-center_margin(head, centers, "soft"))
    assert measured == pytest.approx(residual * D / (K * HALF), rel=1e-3)


def test_differences_grow_by_the_root_of_e_for_each_unit_of_margin(rng, centers):
    head = averaged_head(centers, HALF, 1e-6, rng)
    steps = [300, 1500]
    heads = descent(head, centers, OBJECTIVES["soft"], 1.0, steps)
    margins = [center_margin(h, centers, "soft") for h in heads]
    spreads = [spread_of_pieces(h, centers) for h in heads]
    # opposing pieces along the centres of this side, which decay, do not count
    gained = np.log(np.array(spreads[1:]) / spreads[0])
    assert gained == pytest.approx((np.array(margins[1:]) - margins[0]) / 2, rel=0.02)
    assert margins[-1] > 2.5


def test_the_largest_piece_parts_clusters_at_the_rate_of_the_proposition(rng, centers):
    head = averaged_head(centers, HALF, 1e-8, rng)
    gradient = cross_entropy_gradients(head, centers.x, classes_of(centers), "max")[0]
    step = 1e-3
    moved = replace(head, weights=head.weights - step * gradient)
    residual = expit(-1.0)
    rate = residual / K * np.sqrt(K * (1 - 1 / HALF))
    assert spread_of_pieces(moved, centers) == pytest.approx(step * rate, rel=1e-3)


@pytest.mark.parametrize("amount", [0.0, 0.5, 2.0, 4.0, 9.0])
def test_the_radius_on_the_line_from_averaged_to_decoupled(centers, amount):
    head = on_the_line(centers, amount)
    share = 1 - 1 / HALF
    expected = np.sqrt(D) * (1 + amount * share) / np.sqrt(2 * HALF + 2 * amount**2 * share)
    radii = head.radii(centers.x, classes_of(centers))
    assert head.signed_radii(centers.x, classes_of(centers)) == pytest.approx(expected)
    assert radii.lower == pytest.approx(expected)
    ends = {0.0: np.sqrt(D / K), float(HALF): np.sqrt(D / 2)}
    assert expected == pytest.approx(ends.get(amount, expected))


def test_the_radius_falls_nowhere_before_the_decoupled_features(centers):
    amounts = np.linspace(0, HALF, 40)
    radii = [
        on_the_line(centers, a).signed_radii(centers.x, classes_of(centers)).min() for a in amounts
    ]
    assert (np.diff(radii) > 0).all()


def test_the_objective_of_the_radius_falls_at_once_along_the_line(centers):
    """The derivative of the loss at averaged features towards decoupled ones is not 0."""
    margin, amount = np.sqrt(D / 2), 1e-7
    head = on_the_line(centers, amount)
    examples = Examples(centers.x, classes_of(centers), np.ones(K))
    gradient = radius_gradients(head, examples, margin)[0]
    apart = on_the_line(centers, 1).weights - on_the_line(centers, 0).weights
    slope = 4 / margin * expit(4 * (margin - np.sqrt(D / K)) / margin)
    assert (gradient * apart).sum() == pytest.approx(
        -slope * np.sqrt(D / K) * (1 - 2 / K), rel=1e-4
    )


def test_the_radius_does_not_fall_by_scaling_but_the_cross_entropy_does(centers):
    head = on_the_line(centers, 0.0)
    classes = classes_of(centers)
    larger = replace(head, weights=3 * head.weights)
    assert larger.signed_radii(centers.x, classes) == pytest.approx(
        head.signed_radii(centers.x, classes)
    )
    gradient = cross_entropy_gradients(head, centers.x, classes, "max")[0]
    assert (gradient * head.weights).sum() < 0

"""The worlds of the playground are those of the package."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.apps.play.description import about, described
from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.settings import NETWORKS, Settings
from featavg.apps.play.worlds import LOSSES, RULES, labelled_points
from featavg.estimators.piece_alignment import piece_averaging_index
from featavg.experiments.beyond.piece_objectives import OBJECTIVES, descent
from featavg.theory.granularity import FinitePrediction, granularity_radii

SMALL = Settings(clusters=4, dim=300, samples=60, width=3, learning_rate=2e-3, steps=20)


def trained(settings, network="fine"):
    run = NetworkRun(settings, network)
    run.advance(settings.end, seconds=600)
    return run


def by_the_package(settings, network):
    """Return what `descend` makes of the points and the initial network of the playground."""
    start = NetworkRun(settings, network)
    one_or_many = NETWORKS.index(network)
    loss = LOSSES[settings.loss][1][one_or_many]
    drawn = settings.draw_networks(settings.seed, fewest_coordinates=True)
    supply, *streams = drawn.rng.spawn(3)
    if network == "fine" and settings.fine_share < 1:
        loss = fa.CoarseCrossEntropy(labelled_points(start.train, settings.fine_share, supply))
    return fa.descend(
        start.learner.net,
        start.train,
        learning_rate=settings.learning_rate,
        steps=settings.steps,
        rule=settings.rule,
        loss=loss,
        rng=streams[one_or_many],
        record=2,
    )


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    "world",
    [
        *({"optimiser": name} for name in RULES if name != "gd"),
        *({"loss": name} for name in LOSSES if name != "entropy"),
        {"fine_share": 0.0},
        {"fine_share": 0.1},
        {"grouping": "1,1|2"},
        {"grouping": "2|1,1", "fine_share": 0.5},
        {"adversarial": 0.7},
        {"adversarial": 0.7, "fine_share": 0.0, "optimiser": "sgd"},
        {"adversarial": 0.5, "optimiser": "adam"},
    ],
    ids=str,
)
def test_a_world_is_what_the_package_trains(world, network):
    settings = replace(SMALL, **world)
    run, expected = trained(settings, network), by_the_package(settings, network)
    seen = run.snapshot()
    cosines = fa.alignment(expected.net, run.train.centers)
    np.testing.assert_allclose(seen["cosines"], cosines, atol=6e-4)
    assert seen["index"] == pytest.approx(fa.averaging_index(expected.net, run.train), abs=1e-3)
    if np.isfinite(expected.log_loss[-1]):
        assert seen["log_loss"] == pytest.approx(expected.log_loss[-1], rel=1e-3)
    else:  # the hinge loss ends at 0
        assert (seen["log_loss"], settings.loss) == (None, "hinge")
    radii = fa.exact_radii(expected.net, run.test.x[:5], run.test.y[:5])
    np.testing.assert_allclose(
        run.learner.trained(run._now).radii(run.test.x[:5], run.test.y[:5]).upper,
        radii.upper,
        rtol=1e-6,
    )
    json.dumps([seen, run.measure(seconds=0.0), run.slice(0, 1.0)], allow_nan=False)


def test_every_world_differs_from_the_paper():
    worlds = [{"optimiser": name} for name in RULES] + [{"loss": name} for name in LOSSES]
    found = [tuple(trained(replace(SMALL, **w), "coarse").snapshot()["margins"]) for w in worlds]
    assert len(set(found)) == len(worlds) - 1  # the paper's is there twice


def test_adam_needs_all_coordinates_and_gradient_descent_does_not():
    far = replace(SMALL, dim=5000)
    assert far.fewest_coordinates < 100
    assert replace(far, optimiser="adam").fewest_coordinates == 5000
    assert NetworkRun(replace(far, optimiser="adam"), "coarse").train.frame is None
    assert replace(far, optimiser="sam", adversarial=0.5).fewest_coordinates < 100


def test_labels_in_between_follow_the_granularity_law():
    settings = Settings(
        clusters=6,
        grouping="1,2|3",
        dim=50_000,
        samples=300,
        learning_rate=6e-5,
        weight_scale=6e-7,
        labels="fine",
    )
    law = settings.granularity()
    expected = granularity_radii(fa.Grouping.parse("1,2|3"), settings.law)
    assert [row["radius"] for row in law] == pytest.approx(expected)
    assert [row["radius"] for row in law] == pytest.approx(np.sqrt(50_000 / np.array([4, 5, 5])))
    assert [(row["size"], row["sign"]) for row in law] == [(1, 1), (2, 1), (3, -1)]
    run = trained(settings)
    while not (found := run.measure(seconds=1.0))["complete"]:
        pass
    medians = [middle for _, middle, _ in found["groups"]]
    counts = np.bincount(run.train.cluster)
    finite = FinitePrediction(
        run.train.grouping, settings.law, counts, settings.learning_rate * 100
    )
    assert medians == pytest.approx(finite.medians(), rel=0.02)
    assert medians == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize(
    "elsewhere", [{"fine_share": 0.5}, {"adversarial": 0.1}, {"cosine": 0.2}, {"grouping": ""}]
)
def test_the_law_is_silent_where_it_says_nothing(elsewhere):
    assert replace(SMALL, grouping="1,1|2").granularity() is not None
    assert replace(SMALL, **({"grouping": "1,1|2"} | elsewhere)).granularity() is None


def test_the_page_is_told_which_world_it_shows():
    told = described(replace(SMALL, grouping="1,1|2"))
    assert told["titles"] == {"coarse": "2-class", "fine": "3-class"}
    assert told["headings"]["fine"] == "3-class labels 1,1|2"
    assert [row["size"] for row in told["law"]] == [1, 1, 2]
    assert told["told"] == {"coarse": "only its side", "fine": "its group of clusters"}
    assert told["can_forward"]
    assert described(replace(SMALL, grouping="1,1|2", labels="coarse"))["law"] is None
    adam = described(replace(SMALL, optimiser="adam", fine_share=0.05))
    assert adam["headings"]["fine"] == "4-class labels, 5 % of them"
    assert adam["told"]["fine"] == "its cluster or only its side"
    assert (adam["can_forward"], adam["law"]) == (False, None)
    on_radius = described(replace(SMALL, objective="radius"))
    assert on_radius["by_side"] == {"coarse": True, "fine": True}
    assert on_radius["columns"]["fine"] == "pieces"
    assert on_radius["told"] == {"coarse": "only its side", "fine": "only its side"}
    menus = about([])["choices"]
    assert {name: len(menu["options"]) for name, menu in menus.items()} == {
        "optimiser": len(RULES),
        "loss": len(LOSSES),
        "objective": 2,
    }


def test_a_share_of_fine_labels_is_one_of_each_label():
    train = NetworkRun(Settings(grouping="1,4|2,3"), "fine").train
    known = labelled_points(train, 0.1, np.random.default_rng(0))
    sizes = np.bincount(train.labels)
    assert list(np.bincount(train.labels[known])) == [round(0.1 * size) for size in sizes]
    assert labelled_points(train, 0, np.random.default_rng(0)).sum() == 0


def test_pieces_are_trained_as_in_the_experiment():
    settings = replace(SMALL, objective="radius", steps=12)
    start, run = NetworkRun(settings, "fine"), trained(settings)
    margin = np.sqrt(settings.dim / 2)
    first, last = descent(start.learner.head, start.train, OBJECTIVES["radius"], margin, [12])
    seen = run.snapshot()
    assert start.snapshot()["index"] == pytest.approx(1, abs=1e-3)
    assert seen["steps"] == 12
    assert seen["index"] == pytest.approx(piece_averaging_index(last, run.train), abs=1e-3)
    assert seen["index"] < start.snapshot()["index"]
    np.testing.assert_array_equal(start.learner.head.weights, first.weights)
    found = run.measure(seconds=60.0)
    exact = fa.exact_radii(last.to_shallow(), run.test.x, (run.test.y == 1).astype(int))
    np.testing.assert_allclose(found["upper"], np.sort(exact.upper), rtol=1e-4)
    margins = (2 * (run.train.y == 1) - 1) * last.decision(run.train.x)
    assert seen["margins"][0] == pytest.approx(margins.min(), rel=1e-3)


def test_cosines_of_pieces_are_those_of_averages_and_then_of_single_centres():
    settings = Settings(clusters=4, dim=4000, samples=100, objective="radius", steps=100)
    start, run = NetworkRun(settings, "fine"), trained(settings)
    signs = np.repeat([1, -1], 4)  # 4 pieces for each side
    own = np.array([1, 1, -1, -1])[:, None] == signs
    np.testing.assert_allclose(np.array(start.snapshot()["cosines"])[own], 0.5, atol=0.01)
    ends = np.array(run.snapshot()["cosines"])[own].reshape(4, 4)
    assert run.snapshot()["index"] < 0.1
    assert (ends.max(axis=1) > 0.6).all()


def test_the_plane_of_pieces_shows_the_point_and_its_attacks():
    run = trained(replace(SMALL, objective="radius"))
    plane = run.slice(5, run.radius(5))
    scores = np.array(plane["scores"])
    u, v = (np.linspace(*plane[axis], len(scores)) for axis in ("u", "v"))
    distance = np.hypot(u[None, :], v[:, None])
    assert (scores[distance < 0.999 * plane["radius"]] > 0).all()
    assert (scores < 0).any()
    assert np.hypot(*plane["tip"]) == pytest.approx(plane["radius"], rel=1e-4)


@pytest.mark.parametrize(
    "world",
    [{"adversarial": 0.5}, {"objective": "radius"}, {"optimiser": "adam"}, {"optimiser": "sam"}],
    ids=str,
)
def test_the_memory_that_is_promised_is_enough(world):
    settings = replace(SMALL, samples=600, dim=1500, labels="fine", steps=3, **world)
    tracemalloc.start()
    try:
        run = NetworkRun(settings, "fine")
        tracemalloc.reset_peak()  # drawing points takes more for a moment
        run.advance(3, seconds=600)
        run.snapshot()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= settings.total_bytes


def test_without_fine_labels_all_centres_of_the_side_are_own():
    own = {share: NetworkRun(replace(SMALL, fine_share=share), "fine") for share in (0.0, 0.1)}
    side = [[1, 1, 0, 0]] * 2 + [[0, 0, 1, 1]] * 2
    assert own[0.0].snapshot()["own"] == side
    assert own[0.1].snapshot()["own"] == np.eye(4, dtype=int).tolist()
    assert NetworkRun(SMALL, "coarse").snapshot()["own"] == [side[0]] * 3 + [side[2]] * 3

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.apps.audit.page import table_rows
from featavg.auditing.audit import audit


def test_on_the_papers_law_the_audit_finds_what_is_there(six_clusters, audited):
    assert audited.subclasses == {-1: 3, 1: 3}
    assert audited.coarse.averaging_index > 0.6
    assert audited.fine.averaging_index < 0.05
    assert audited.geometry.cosine_deviation < 0.1
    assert audited.coarse.accuracy == audited.fine.accuracy == 1
    # theory: √(d/k) and √(d/2), in the units of the input
    assert audited.coarse.median_radius == pytest.approx(np.sqrt(600 / 6), rel=0.15)
    assert audited.fine.median_radius == pytest.approx(np.sqrt(600 / 2), rel=0.15)
    gain, low, high = audited.gain
    assert low <= gain <= high
    assert low > 0
    assert "times as robust" in audited.verdict
    assert audited.predicted_ratio == pytest.approx(np.sqrt(3))
    # one direction breaks the network that averages, and not the other
    assert audited.coarse.universal.broken > 0.9
    assert audited.fine.universal.broken < 0.1
    np.testing.assert_allclose(np.linalg.norm(audited.coarse.universal.directions, axis=1), 1)


@pytest.mark.slow
def test_held_out_points_have_no_say_in_what_is_learned(six_clusters, audited):
    """Whatever the held-out points are: subclasses, means and networks are the same."""
    from featavg.auditing.audit import _split

    _, test = _split(six_clusters.y, None, 0.25, 0)
    changed = six_clusters.x.copy()
    changed[test] = np.random.default_rng(1).normal(size=changed[test].shape)
    other = audit(changed, six_clusters.y, direct=False)
    np.testing.assert_array_equal(other.geometry.means, audited.geometry.means)
    assert other.subclasses == audited.subclasses
    assert other.coarse.averaging_index == audited.coarse.averaging_index
    assert other.coarse.accuracy < 0.8


@pytest.mark.slow
def test_radii_are_in_the_units_of_the_input(six_clusters, audited):
    scaled = audit(100 * six_clusters.x + 7, six_clusters.y, direct=False)
    ratio = scaled.fine.median_radius / audited.fine.median_radius
    assert ratio == pytest.approx(100, rel=0.02)
    assert scaled.ratio == pytest.approx(audited.ratio, rel=0.02)


@pytest.mark.slow
def test_given_subclasses_are_used(six_clusters):
    names = np.array(["ant", "bee", "cow", "dog", "eel", "fox"])[six_clusters.cluster]
    given = audit(six_clusters.x, six_clusters.y, names, direct=False)
    assert given.given
    assert set(given.names) == {"ant", "bee", "cow", "dog", "eel", "fox"}
    assert given.subclass_accuracy == 1
    assert "6" not in given.verdict.split("subclasses")[0]  # 3 + 3 subclasses given in 2 classes
    assert given.points.subclasses == names[given.points.index].tolist()
    assert len(given.suggested) == 0  # all are known


@pytest.mark.slow
def test_one_subclass_in_each_class_has_nothing_to_average():
    law = fa.MultiCluster(clusters=2, dim=60)
    six_clusters = law.sample(120, rng=np.random.default_rng(0))
    audited = audit(six_clusters.x, six_clusters.y, six_clusters.y, direct=False)
    assert np.isnan(audited.coarse.averaging_index)
    assert audited.verdict == (
        "1 + 1 subclasses given in 2 classes. The subclasses are the classes: there are no "
        "features to average, and nothing to compare."
    )
    assert audited.predicted_ratio is None
    assert audited.reasons == []
    rows = {name: values for name, *values in table_rows(audited)}
    assert rows["averaging index"] == ["–", "–"]
    assert "times as robust, by theory" not in rows


def test_points_to_label_next_are_training_points_of_every_subclass(six_clusters, audited):
    chosen = audited.suggested.index
    assert len(chosen) == 12
    assert not set(chosen) & set(audited.points.index)
    for turn in (chosen[:6], chosen[6:]):
        assert sorted(six_clusters.cluster[turn]) == list(range(6))
    assert audited.suggested.classes == six_clusters.y[chosen].tolist()


def test_a_budget_is_kept(few_points):
    found = audit(few_points.x, few_points.y, direct=False, budget=3)
    assert len(found.suggested) == len(found.summary()["suggested"]) == 3


@pytest.mark.slow
def test_all_three_classifiers_are_measured_on_the_same_points(few_points, audited_by_three):
    found = audited_by_three
    train = np.setdiff1d(np.arange(120), found.points.index)
    assert found.measured == len(found.points) == 30
    x, y = few_points.x, few_points.y
    model = fa.RadiusClassifier(random_state=0).fit(x[train], y[train])
    index = found.points.index
    np.testing.assert_allclose(found.direct.radii, model.certify(x[index], y[index]).lower)
    assert found.direct.accuracy == model.score(x[index], y[index])
    assert "RadiusClassifier, which needs the coarse labels only" in found.verdict
    names, rows = found.weakest()
    assert names[3:] == [
        f"{what}_{name}"
        for name in ("averaging", "decoupled", "direct")
        for what in ("radius", "kind")
    ]
    assert [row[7] for row in rows] == sorted(found.direct.radii)
    for point, label, _, *radii in rows:
        place = index.tolist().index(point)
        assert label == y[point]
        nets = (found.coarse, found.fine, found.direct)
        assert radii[::2] == [net.radii[place] for net in nets]
        assert radii[1::2] == [net.kind(place) for net in nets]


def test_pieces_that_average_have_the_index_1_and_single_ones_0(rng):
    """Hand-made heads on orthogonal centres, with a vector added to all pieces."""
    from featavg.auditing.geometry import Geometry
    from featavg.auditing.heldout import HeldOut
    from featavg.estimators.pieces import PieceHead

    centers = 10 * np.eye(4)
    x, labels = np.repeat(centers, 5, axis=0), np.repeat(np.arange(4), 5)
    class_of = np.array([0, 0, 1, 1])
    geometry = Geometry(centers, np.eye(4), class_of, np.full(4, 5))
    held = HeldOut(x, class_of[labels], np.arange(20))
    average = np.array([centers[:2].sum(axis=0), centers[2:].sum(axis=0)])
    for weights, index in ((centers, 0.0), (average[class_of], 1.0)):
        head = PieceHead(weights + rng.standard_normal(4), np.zeros(4), class_of)
        assert held.network(head, geometry).averaging_index == pytest.approx(index, abs=1e-12)


def test_standardized_features_have_no_units():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 4)) + np.repeat([[0.0], [3]], 50, axis=0), np.repeat([0, 1], 50)
    mixed = np.column_stack([x * [1, 1000, 1e-3, 5] + [0, 7, 0, -1], np.full(100, 2.0)])
    x = np.column_stack([x, np.zeros(100)])
    options = {"points": 10, "direct": False, "standardize": True}
    one, other = (audit(points, y, **options) for points in (x, mixed))
    np.testing.assert_allclose(one.coarse.radii, other.coarse.radii, rtol=1e-6)
    assert other.standardized
    assert other.norm == pytest.approx(2)  # four features of variance 1
    assert other.units == "in standard deviations"
    assert other.hints == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_size": 1.5}, "test_size must be"),
        ({"test_size": 0.001}, "points of each class and subclass on both sides.*for 400 points.$"),
        ({"points": 0}, "points must be"),
        ({"y": np.zeros(400)}, "two classes"),
        ({"y": np.r_[np.zeros(397), np.ones(3)]}, "at least 4 points"),
        ({"y": np.linspace(0, 1, 400)}, "y must have classes.*continuous"),
        (
            {"y": np.linspace(0, 1, 400).astype(str)},
            "y must have classes; got 400 different numbers for 400 points, such as 0.0, which",
        ),
        ({"y": np.array(["a", None] * 200)}, "y must have a value.*200 missing, the first at inde"),
        ({"y": np.array(["a", 1] * 200, dtype=object)}, "one kind.*got int and str"),
        ({"subclass": np.array(["a", ""] * 200)}, "subclass must have a value"),
        ({"X": np.full((400, 2), 0.1)}, "X must have points that differ; got 300"),
        ({"X": np.full((400, 2), np.nan)}, "NaN"),
        ({"subclass": [1, 2]}, "inconsistent numbers of samples"),
    ],
)
def test_bad_input(changes, message, six_clusters):
    arguments = {"X": six_clusters.x, "y": six_clusters.y} | changes
    with pytest.raises(ValueError, match=message):
        audit(**arguments)

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
    other = audit(changed, six_clusters.y)
    np.testing.assert_array_equal(other.geometry.means, audited.geometry.means)
    assert other.subclasses == audited.subclasses
    assert other.coarse.averaging_index == audited.coarse.averaging_index
    assert other.coarse.accuracy < 0.8


@pytest.mark.slow
def test_radii_are_in_the_units_of_the_input(six_clusters, audited):
    scaled = audit(100 * six_clusters.x + 7, six_clusters.y)
    ratio = scaled.fine.median_radius / audited.fine.median_radius
    assert ratio == pytest.approx(100, rel=0.02)
    assert scaled.ratio == pytest.approx(audited.ratio, rel=0.02)


@pytest.mark.slow
def test_given_subclasses_are_used(six_clusters):
    names = np.array(["ant", "bee", "cow", "dog", "eel", "fox"])[six_clusters.cluster]
    given = audit(six_clusters.x, six_clusters.y, names)
    assert given.given
    assert set(given.names) == {"ant", "bee", "cow", "dog", "eel", "fox"}
    assert given.subclass_accuracy == 1
    assert "6" not in given.verdict.split("subclasses")[0]  # 3 + 3 subclasses given in 2 classes


@pytest.mark.slow
def test_one_subclass_in_each_class_has_nothing_to_average():
    law = fa.MultiCluster(clusters=2, dim=60)
    six_clusters = law.sample(120, rng=np.random.default_rng(0))
    audited = audit(six_clusters.x, six_clusters.y, six_clusters.y)
    assert np.isnan(audited.coarse.averaging_index)
    assert audited.verdict == (
        "1 + 1 subclasses given in 2 classes. The subclasses are the classes: there are no "
        "features to average, and nothing to compare."
    )
    assert audited.predicted_ratio is None
    assert audited.reasons == []
    rows = {name: values for name, *values in table_rows(audited)}
    assert rows["averaging index"] == ["–", "–"]
    assert "times as robust (theory)" not in rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_size": 1.5}, "test_size must be"),
        ({"points": 0}, "points must be"),
        ({"y": np.zeros(400)}, "two classes"),
        ({"y": np.r_[np.zeros(397), np.ones(3)]}, "at least 4 points"),
        ({"y": np.linspace(0, 1, 400)}, "y must have classes.*continuous"),
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

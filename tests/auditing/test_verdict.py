"""What an audit says in words, from hand-made audits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from featavg.apps.audit.page import Source, page, table_rows
from featavg.auditing import words
from featavg.auditing.audit import audit


def test_reasons_name_what_is_wrong(audited):
    """Hand-made audits, each with one thing that spoils the gain."""
    poor = replace(audited, fine=replace(audited.fine, radii=audited.coarse.radii))
    names = {"not orthogonal": "cosines", "unbalanced": "sizes"}
    correlated = np.full((6, 6), 0.8) + 0.2 * np.eye(6)
    sizes = np.array([90, 10, 50, 50, 50, 50])
    for word, field in names.items():
        value = correlated if field == "cosines" else sizes
        spoiled = replace(poor, geometry=replace(audited.geometry, **{field: value}))
        assert any(word in reason for reason in spoiled.reasons)
    overlapping = replace(poor, subclass_accuracy=0.5)
    assert any("overlap" in reason for reason in overlapping.reasons)
    assert audited.reasons == []


def test_radii_that_are_only_bounds_are_mentioned(audited):
    assert audited.coarse.exact.all()
    assert audited.fine.exact.all()
    assert audited.hints == []
    assert audited.summary()["fine"]["exact_radii"] == audited.measured
    some = np.arange(audited.measured) > 2
    cut_short = replace(audited, fine=replace(audited.fine, exact=some))
    (hint,) = cut_short.hints
    assert hint.startswith(f"3 of {audited.measured} radii of DecoupledClassifier are lower bounds")
    assert cut_short.summary()["fine"]["exact_radii"] == audited.measured - 3


def _changed(audited, *, coarse=None, fine=None, **changes):
    """Return a hand-made audit; `coarse` and `fine` are averaging indices."""
    for name, index in (("coarse", coarse), ("fine", fine)):
        if index is not None:
            changes[name] = replace(getattr(audited, name), averaging_index=index)
    return replace(audited, **changes)


def test_the_deviation_of_cosines_is_not_called_a_cosine(audited):
    parallel = replace(audited.geometry, cosines=np.ones((6, 6)))
    poor = replace(audited.fine, radii=audited.coarse.radii)
    spoiled = replace(audited, geometry=parallel, fine=poor)
    assert spoiled.summary()["cosine_deviation"] == pytest.approx(1.2)
    assert "correlation" not in spoiled.summary()
    assert "cosines within a class are 1.20 away, on average, from the -0.20 of" in spoiled.verdict
    assert "|cosine|" not in spoiled.verdict


def test_more_subclasses_are_called_more_robust_only_if_they_are(audited):
    more = replace(audited, clear={-1: 1, 1: 1})
    assert "Only 1 + 1 are stable" in more.verdict
    assert "and is more robust than coarse labels on held-out points" in more.verdict
    unclear = replace(more, gain=(0.1, -0.2, 0.3))
    assert "but is not more robust than coarse labels on held-out points" in unclear.verdict
    assert "No difference in robustness" in unclear.verdict


@pytest.mark.slow
def test_noise_does_not_contradict_itself():
    rng = np.random.default_rng(0)
    audited = audit(
        rng.standard_normal((300, 10)), rng.integers(0, 2, 300), points=40, direct=False
    )
    assert "is more robust" not in audited.verdict
    assert "No difference in robustness" in audited.verdict


@pytest.fixture(scope="module")
def noise():
    """Noise with random labels, more of them "u" than "v", and its audit."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((60, 3)), np.where(rng.random(60) < 0.65, "u", "v")
    return x, y, audit(x, y, points=15)


def test_one_subclass_in_each_class_is_not_called_more_robust(noise):
    """Both networks are trained on the same labels, and one was three times as robust by chance."""
    *_, found = noise
    assert found.verdict.startswith("1 + 1 subclasses found")
    assert "nothing to compare" in found.verdict
    assert found.ratio > 2
    rows = {name: values for name, *values in table_rows(found)}
    direct = found.direct.median_radius / found.coarse.median_radius
    assert rows["times as robust"] == ["1.00", "–", f"{direct:.2f}"]


def test_classifiers_no_better_than_the_largest_class_get_a_hint(noise, audited):
    x, y, found = noise
    index = found.points.index  # of all held-out points
    train = np.setdiff1d(np.arange(len(x)), index)
    always = DummyClassifier().fit(x[train], y[train])
    share = always.score(x[index], y[index])
    assert found.largest == (always.predict(x[:1])[0], share)
    assert max(net.accuracy for *_, net in found.networks) <= share
    (hint,) = found.hints
    assert f"than always saying 'u', the largest class, which is right for {share:.1%} of" in hint
    assert audited.hints == []
    better = replace(found, fine=replace(found.fine, accuracy=share + 0.01))
    assert better.hints == []


def test_the_theory_has_a_factor_only_for_two_classes(audited):
    many = replace(
        audited, classes=(0, 1, 2), fine=replace(audited.fine, radii=audited.coarse.radii)
    )
    assert many.predicted_ratio is None
    assert many.summary()["predicted_ratio"] is None
    assert many.reasons == []
    assert "theory" not in many.verdict
    assert table_rows(many)[-1] == ["times as robust", "1.00", "1.00"]
    assert table_rows(audited)[-1] == ["times as robust, by theory", "1.00", "1.73"]
    broken = replace(audited, coarse=replace(audited.coarse, radii=np.zeros(9)))
    assert not any(name.startswith("times") for name, *_ in table_rows(broken))
    source = Source("x", "featavg audit x")
    assert "is not reached" not in page(many, source)
    assert "factor of 1.73 is not reached" in page(replace(many, classes=(0, 1)), source)


def test_the_index_is_believed_only_where_it_can_tell(audited):
    says = "A network trained on the coarse labels averages their features"
    assert says in _changed(audited, coarse=0.9, fine=0.1).verdict
    alike = _changed(audited, coarse=0.95, fine=0.93).verdict
    assert says not in alike
    assert "cannot be told" in alike
    assert "does not differ (0.93)" in alike
    means = audited.geometry.means[:1] + 0.01 * audited.geometry.means
    parallel = _changed(
        audited, coarse=0.95, fine=0.6, geometry=replace(audited.geometry, means=means)
    )
    assert says not in parallel.verdict
    assert "means of subclasses are so similar" in parallel.verdict
    assert "does not average" in _changed(audited, coarse=0.05, fine=0.03).verdict


def test_features_of_very_different_scales_get_a_hint(audited):
    assert audited.hints == []
    uneven = replace(audited, leading=(60, 600, 0.998))
    assert uneven.hints == uneven.summary()["hints"]
    assert uneven.hints[0].startswith("60 of 600 features have 99.8 % of the variance")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3)) * [1, 1, 100]
    found = audit(x, rng.integers(0, 2, 80), points=5, direct=False)
    assert "1 of 3 features has 100 %" in found.hints[0]
    assert "(--standardize, or standardize=True in Python)" in found.hints[0]


@pytest.mark.parametrize(
    ("medians", "said"),
    [
        ((2.0, 2.412), "grows from 2.00 to 2.41 ("),
        ((0.0, 17.36), "grows from 0 to 17.4 ("),
        ((99.96, 120.0), "grows from 100 to 120 ("),
    ],
)
def test_two_radii_have_equally_many_digits(medians, said):
    assert said in words.robustness(*medians, (1.0, 0.5, 1.5))

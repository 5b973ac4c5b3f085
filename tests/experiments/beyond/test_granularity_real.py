"""The granularity law on real hierarchies: from a file in WordNet's format to the figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg import InputError, datasets
from featavg.apps.cli.main import main
from featavg.data.cluster_means import cluster_means
from featavg.experiments import EXPERIMENTS, run
from featavg.experiments.beyond import real_groups, real_setting
from featavg.experiments.beyond.real_points import (
    Change,
    RealPoints,
    ordered_groups,
    orthogonalised,
)
from support import tiny_wordnet

WORDS = EXPERIMENTS["granularity-real"]


@pytest.fixture
def tiny(tmp_path, monkeypatch, empty_cache):
    """A tiny WordNet in a folder of the user, and an encoder of words."""
    tiny_wordnet.declare(monkeypatch)
    folder = tmp_path / "own" / "wordnet"
    folder.mkdir(parents=True)
    (folder / "data.noun").write_bytes(tiny_wordnet.content())
    monkeypatch.setenv("FEATAVG_DATA", str(tmp_path / "own"))
    monkeypatch.setattr(datasets, "sentence_encoder", tiny_wordnet.HashedWords)
    return replace(
        WORDS.quick,
        groups="2, 26",
        changed_groups="2, 26",
        random_sides=1,
        per_category=7,
        category_tests=2,
        time=3.0,
        searched=1,
    )


def test_from_a_file_of_nouns_to_the_figure(tiny, tmp_path):
    finished = run(WORDS, tiny, seeds=1, out=tmp_path / "runs")
    results = finished.results
    coarse, fine, finer = results["natural_groups"][0]
    assert (coarse, fine) == (2, 26)
    assert 26 < finer <= 52  # two hypernyms in each category, where some are in no test point
    assert results["quiet_both_groups"].tolist() == [[2, 26]]
    # with the law's own assumptions, finer labels are more robust, as the law says
    radius, law = results["quiet_both_radius"][0], results["quiet_both_law"][0]
    assert radius[1] > 1.5 * radius[0]
    assert law[1] / law[0] == pytest.approx(np.sqrt(26 / 2), rel=0.35)
    for case in tiny.cases:
        assert (results[f"{case.name}_radius"] <= results[f"{case.name}_upper"]).all()
    # what is proved of a gain is what no radius between the bounds can take away
    proved = results["natural_radius"][0, 1] / results["natural_upper"][0, 0]
    assert results["natural_proved_gain"] == pytest.approx(proved)
    assert results["random_proved_gain"] <= results["random_gain"]
    assert "within 10 % of the law" in finished.conclusion
    assert (finished.folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    again = run(WORDS, tiny, seeds=1, out=tmp_path / "again")
    np.testing.assert_array_equal(again.results["natural_radius"], results["natural_radius"])


def test_without_the_data_the_command_says_how_to_get_them(
    tmp_path, capsys, empty_cache, monkeypatch
):
    tiny_wordnet.declare(monkeypatch)
    assert main(["run", WORDS.id, "--quick", "--out", str(tmp_path)]) == 2
    assert "run 'featavg data get wordnet'" in capsys.readouterr().err


# --- sides and groups


def test_groups_of_sides_have_sizes_that_differ_by_at_most_one(rng):
    for clusters, positive in ((26, range(12)), (10, [2, 3, 4, 5, 6, 7]), (7, [6])):
        for groups in range(2, clusters + 1):
            number, grouping = ordered_groups(clusters, list(positive), groups, rng)
            assert sorted(number) == list(range(clusters))
            assert len(grouping) == groups
            assert sum(grouping.positive) == len(list(positive))
            assert set(number[list(positive)]) == set(range(len(list(positive))))
            for side in (grouping.positive, grouping.negative):
                assert max(side) - min(side) <= 1


def test_concrete_categories_are_those_below_physical_entity(monkeypatch):
    """The rule of the natural sides, on the published file."""
    from featavg.datasets.catalogue import WORDNET
    from featavg.datasets.wordnet import parse_nouns

    file = WORDNET.package.folder / "data.noun"
    if not file.exists():
        pytest.skip("needs the Debian package wordnet-base")
    nouns = parse_nouns(file.read_bytes(), WORDNET.categories, "here")
    top = next(o for o, n in nouns.items() if n.word == "physical entity")

    def physical(offset):
        seen = set()
        while offset in nouns and offset not in seen:
            if offset == top:
                return True
            seen.add(offset)
            offset = nouns[offset].hypernym
        return False

    found = {category: [] for category in WORDNET.categories}
    for offset, noun in nouns.items():
        if not noun.is_instance:
            found[noun.category].append(physical(offset))
    concrete = tuple(category for category in found if np.mean(found[category]) > 0.5)
    assert concrete == real_setting.CONCRETE


def test_random_sides_are_halves_and_do_not_depend_on_the_seed():
    setting = WORDS.parameters
    sides = [tuple(setting.positive(case)) for case in setting.cases[1:4]]
    assert len(set(sides)) == 3
    assert all(len(side) == 13 for side in sides)
    assert sides == [tuple(replace(setting).positive(case)) for case in setting.cases[1:4]]


def test_numbers_of_groups_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="groups must be at most 26, the number of clusters"):
        replace(WORDS.parameters, groups="2, 27", changed_groups="2")
    with pytest.raises(InputError, match="changed_groups must be some of the groups"):
        replace(WORDS.parameters, changed_groups="2, 3")


# --- what is changed


@pytest.fixture
def points(rng):
    """Three correlated clusters with noise that is three times as large along one axis."""
    cluster = np.arange(600) % 3
    means = np.array([[3.0, 1, 0, 0], [2.5, -1, 1, 0], [0, 0, 2, 2]])
    x = means[cluster] + rng.standard_normal((600, 4)) * [3, 1, 1, 1]
    return RealPoints(x[:450], cluster[:450], x[450:], cluster[450:]).scaled()


def spread(points):
    noise = points.train - cluster_means(points.train, points.train_cluster)[points.train_cluster]
    return np.linalg.eigvalsh(noise.T @ noise / len(noise))


def test_scaled_points_are_centred_and_have_the_norm_of_the_law(points):
    np.testing.assert_allclose(points.train.mean(axis=0), 0, atol=1e-12)
    assert np.square(points.train).sum(axis=1).mean() == pytest.approx(4)


def test_each_change_changes_what_it_says(points, rng):
    means = cluster_means(points.train, points.train_cluster)
    isotropic = Change(isotropic=True)(points, rng)
    assert spread(points)[-1] > 4 * spread(points)[0]
    assert spread(isotropic)[-1] < 1.5 * spread(isotropic)[0]
    found = cluster_means(isotropic.train, isotropic.train_cluster)
    np.testing.assert_allclose(fa.arrays.unit_rows(found), fa.arrays.unit_rows(means), atol=0.35)
    whitened = spread(Change(whitened=True)(points, rng))
    assert whitened[-1] == pytest.approx(whitened[0], rel=1e-6)
    quiet = Change(quiet=True)(points, rng)
    found = cluster_means(quiet.train, quiet.train_cluster)
    assert spread(quiet).sum() == pytest.approx(np.square(found).sum(axis=1).mean(), rel=0.01)
    np.testing.assert_allclose(
        spread(quiet) / spread(quiet).sum(), spread(points) / spread(points).sum()
    )
    orthogonal = Change(orthogonal=True)(points, rng)
    found = cluster_means(orthogonal.train, orthogonal.train_cluster)
    np.testing.assert_allclose(found @ found.T, np.diag(np.square(found).sum(axis=1)), atol=1e-9)
    assert Change()(points, rng) is points


def test_orthogonal_vectors_are_the_nearest_ones(rng):
    means = rng.standard_normal((4, 9)) * [[1], [2], [3], [4]]
    found = orthogonalised(means, rng)
    norms = np.linalg.norm(means, axis=1)
    np.testing.assert_allclose(found @ found.T, np.diag(norms**2), atol=1e-9)
    units, directions = found / norms[:, None], means / norms[:, None]
    best = np.square(units - directions).sum()
    for _ in range(20):  # no other frame is nearer
        turned = np.linalg.qr(units.T + 0.1 * rng.standard_normal((9, 4)))
        frame = (turned[0] * np.sign(np.diag(turned[1]))).T
        assert np.square(frame - directions).sum() >= best
    dependent = means - means.mean(axis=0)
    found = orthogonalised(dependent, rng)
    assert np.linalg.matrix_rank(found) == 4


def test_the_law_is_met_where_its_assumptions_hold(rng):
    """Orthogonal means, little isotropic noise: certified radii are the law's."""
    cluster = np.arange(400) % 8
    means = np.sqrt(200) * np.eye(8, 200)
    x = means[cluster] + 0.1 * rng.standard_normal((400, 200))
    points = RealPoints(x[:240], cluster[:240], x[240:], cluster[240:])
    for groups in (2, 4, 8):
        number, grouping = ordered_groups(8, [0, 1, 2, 3], groups, rng)
        train, test = points.renamed(number).samples(4, grouping)
        training = real_groups.Training(time=30.72, searched=2, seconds=5)
        found = real_groups.measure_groups(train, test, training, rng)
        assert found["accuracy"] == 1
        assert found["law"] == pytest.approx(1 / np.sqrt(8 / (groups / 2)), rel=1e-2)
        assert found["orthogonal_law"] == pytest.approx(found["law"], rel=1e-2)
        assert found["radius"] == pytest.approx(found["law"], rel=0.04)
        assert found["searched_gain"] == pytest.approx(0, abs=1e-3)
        assert found["groups_within"] == 1

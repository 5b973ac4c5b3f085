from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.experiments.beyond import learners, orientation
from featavg.experiments.beyond.learner_setting import COLUMNS, STOPS, Training
from featavg.experiments.beyond.learner_zoo import (
    BOTH_LAYERS,
    SAM_RADII,
    Learner,
    stops,
    two_layer_learners,
)

SMALL = replace(
    learners.EXPERIMENT.quick,
    clusters=4,
    dim=400,
    samples=80,
    width=2,
    learning_rate=0.01,
    test_samples=40,
    radius_samples=6,
    widest=4,
)


def test_stops_are_the_first_loss_below_and_the_step():
    losses = [0.7, 0.5, 0.36, 0.35, 0.2, 0.1]
    seen = []

    def path():
        for step, loss in enumerate(losses):
            seen.append(step)
            yield loss, lambda step=step: f"net {step}"

    at_loss, at_steps = stops(path(), target=0.35, steps=1)
    assert (at_loss.step, at_loss.loss, at_loss.net) == (3, 0.35, "net 3")
    assert (at_steps.step, at_steps.net) == (1, "net 1")
    assert seen == [0, 1, 2, 3]  # no step more than needed
    assert stops(path(), target=0.01, steps=99) == (None, None)


def test_a_learner_is_the_one_that_descend_trains():
    training = Training.of(SMALL, "random", 3)
    found = training.tuned(two_layer_learners(2, [2])[0])[1]
    data = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(0,)))
    train = SMALL.law().sample(80, rng=data)
    init = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(1,)))
    net = fa.BinaryNet.init(train, width=2, weight_scale=1e-5, bias_scale=1e-5, rng=init)
    run = fa.descend(net, train, learning_rate=0.01, steps=100, record=range(101))
    at = int(np.flatnonzero(run.loss <= 0.35)[0])
    assert found["loss"]["step"] == at
    assert found["loss"]["training_loss"] == pytest.approx(run.loss[at])
    assert found["loss"]["index"] == pytest.approx(fa.averaging_index(run.net_at(at), train))
    assert found["steps"]["training_loss"] == pytest.approx(run.loss[-1])
    test = train.fresh(40, rng=data)
    radii = fa.exact_radii(run.net, test.x[:6], test.y[:6])
    assert found["steps"]["radius"] == pytest.approx(np.median(radii.upper))
    assert found["steps"]["exact"] == radii.exact.mean()


def test_the_best_rule_is_chosen_and_one_that_does_not_learn_is_not():
    training = Training.of(SMALL, "random", 0)
    useless = fa.LearningRates(rule=fa.WeightDecay(50.0))  # weights vanish, the target is not met
    learner = Learner("", "", (useless, fa.GradientDescent()))
    rule, found = training.tuned(learner)
    assert rule == fa.GradientDescent()
    assert found == training.tuned(Learner("", ""))[1]
    alone = training.tuned(replace(learner, rules=(useless,)))[1]
    assert np.isnan(alone["loss"]["radius"])
    assert not np.isnan(alone["steps"]["radius"])


def test_radii_of_uneven_sides_have_the_root_mean_square_of_averaged_features():
    """Two neurons along the sums of their centres, of any strengths, and points without noise."""
    law = fa.MultiCluster(clusters=6, dim=60, noise=0.0)
    train = law.sample(30, rng=np.random.default_rng(0))
    sums = np.stack([train.centers[:3].sum(axis=0), train.centers[3:].sum(axis=0)])
    setting = replace(SMALL, clusters=6, dim=60, radius_samples=30)
    training = Training(setting, 0, train, train)
    for strengths in ([1.0, 1.0], [1.0, 3.0], [5.0, 1.0]):
        found = training._median_radii(fa.BinaryNet(np.array(strengths)[:, None] * sums))
        assert found["radius_of_sides"] == pytest.approx(np.sqrt(60 / 6))
        shares = np.array(strengths) / np.linalg.norm(strengths) * np.sqrt(2 * 60 / 6)
        assert [found["radius_positive"], found["radius_negative"]] == pytest.approx(shares)


def test_every_learner_is_measured_and_shown():
    found = {name: np.asarray([value]) for name, value in learners.measure(SMALL, 0).items()}
    names = SMALL.names
    assert len(names) == len(set(names)) == 18
    rows = learners.table(SMALL, found).rows
    assert len(rows) == len(STOPS) * len(names)
    assert len(rows[0]) == 3 + len(COLUMNS)
    (view,) = learners.views(SMALL, found)
    assert list(view.rows) == names
    assert len(view.groups) == len(names)
    assert "three layers are upper bounds by attack" in view.note
    at = names.index("three layers (radius by attack)")
    assert (found["loss_exact"][0, :at] == 1).all()
    assert (found["loss_exact"][0, at], found["loss_radius_lower"][0, at]) == (0, 0)
    assert found["sam_radius"] in SAM_RADII
    assert "learners with two layers the most robust one" in learners.conclude(SMALL, found)
    uneven = found["both_loss_radius_of_sides"]
    assert uneven == found["loss_radius_of_sides"][0, names.index(BOTH_LAYERS.name)]


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("frame", ["random", "signs", "axes"])
@pytest.mark.parametrize("clusters", [4, 10])
def test_the_cosine_of_signs_is_that_of_drawn_gradients(clusters, frame, noise):
    usual = orientation.EXPERIMENT.parameters
    setting = replace(usual, clusters=clusters, dim=2048, samples=200, noise=noise)
    train = setting.law(frame).sample(1, rng=np.random.default_rng(0))
    own = train.centers[: clusters // 2].sum(axis=0)
    rng = np.random.default_rng(1)
    cosines = []
    for _ in range(20):
        g = own / clusters + noise / np.sqrt(2 * 200) * rng.standard_normal(2048)
        w = np.sign(np.where(np.abs(g) < 1e-12, 0, g))
        cosines.append(w @ own / np.linalg.norm(w) / np.linalg.norm(own))
    assert np.mean(cosines) == pytest.approx(setting.sign_cosine(frame), rel=0.03)


def test_the_radius_of_sign_descent_is_that_of_drawn_signs():
    """Weights that are signs of v+ - φ v-, with the share that their own noise leaves active."""
    setting = replace(orientation.EXPERIMENT.parameters, dim=20_000, samples=10**6)
    rng = np.random.default_rng(0)
    mu = setting.law().sample(1, rng=rng).centers
    up, down = mu[:5].sum(axis=0), mu[5:].sum(axis=0)
    phi = 0.3
    for _ in range(60):  # the share at which products with noise exceed those with centres
        w, other = np.sign(up - phi * down), np.sign(down - phi * up)
        phi = float((rng.standard_normal(10**5) > -np.mean(mu[5:] @ w) / np.linalg.norm(w)).mean())
    difference = w - other
    radius = np.mean(mu[:5] @ difference) / np.linalg.norm(difference)
    assert setting.sign_radius("random") == pytest.approx(radius, rel=0.01)


def test_the_frame_must_exist():
    with pytest.raises(fa.InputError, match="dim must be a multiple of 16"):
        replace(orientation.EXPERIMENT.parameters, dim=1000)


def test_orientation_shows_theory_beside_what_it_measures():
    shared = {"clusters": 4, "dim": 400, "samples": 80, "width": 2, "test_samples": 40}
    small = replace(orientation.EXPERIMENT.quick, **shared, radius_samples=6, most_steps=150)
    found = {name: np.asarray([value]) for name, value in orientation.measure(small, 0).items()}
    assert len(orientation.table(small, found).rows) == 2 * 3 * 3
    (view,) = orientation.views(small, found)
    theory = view.panels[1].series[-1].mean
    averaged = np.sqrt(400 / 4)
    assert theory[:3] == [averaged] * 3
    assert theory[3:6] == [None] * 3
    plain = np.sqrt(2 / np.pi / (1 + 4 / 80)) * averaged
    assert plain < theory[6] < 1.1 * plain
    assert theory[7] == pytest.approx(np.sqrt(2))
    # half of all sums of two fair signs are 0, the others ±2: E|S|/√2
    assert theory[8] == pytest.approx(np.sqrt(0.5) * averaged, rel=0.1)
    assert found["gd_largest_over_smallest"] >= 1

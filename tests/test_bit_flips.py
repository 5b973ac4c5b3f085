"""Flipped bits in everything that is saved: the file is named, and no other number is accepted.

'make test-faults' flips 500 bits of each kind of file.
"""

from __future__ import annotations

import os
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from featavg import DamagedFileWarning, InputError
from featavg.apps.cli.main import main
from featavg.experiments import run
from featavg.lab.sweeps import Store, sweep
from support.damage import flip
from support.probe import Probe, contents
from support.sweep_faults import tiny

pytestmark = pytest.mark.faults
FLIPS = int(os.environ.get("FEATAVG_BIT_FLIPS", "10"))


def flips(path: Path, number: int = FLIPS) -> list[int]:
    """Return different bits of a file, always the same ones, and the first and the last."""
    bits = 8 * path.stat().st_size
    drawn = random.Random(path.name).sample(range(bits), min(number, bits) - 2)  # noqa: S311
    return [0, bits - 1, *drawn]


class Quick(Probe):
    """The probe with a figure that is drawn in no time."""

    def plot(self, parameters, results):
        return Figure(figsize=(0.1, 0.1))


@pytest.fixture
def finished(tmp_path):
    """A finished run, and a way to put it back as it was."""
    probe = Quick()
    done = run(probe.experiment, out=tmp_path / "runs")
    saved = tmp_path / "saved"
    shutil.copytree(done.folder, saved)

    def restore():
        shutil.rmtree(done.folder)
        shutil.copytree(saved, done.folder)

    return probe, done, restore


def run_again(probe, done):
    """Run once more; return the results and all that was said."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again = run(probe.experiment, out=done.folder.parent.parent)
    assert {one.category for one in told} <= {DamagedFileWarning}
    for name, value in done.results.items():
        assert np.array_equal(again.results[name], value)
    return [str(one.message) for one in told]


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("ending", ["npz", "json"])
def test_a_seed(ending, manifest, finished):
    """With the manifest of a finished run, and without it, as in a run that was stopped."""
    probe, done, restore = finished
    before = contents(done.folder)
    path = done.folder / "seeds" / f"1.{ending}"
    for bit in flips(path, max(3, FLIPS // 2)):
        restore()
        flip(path, bit)
        if not manifest:
            (done.folder / "manifest.json").unlink()
        (told,) = run_again(probe, done)
        assert f"seeds/1.{ending} is damaged" in told
        path.with_name(f"{path.name}.corrupt").unlink()
        assert contents(done.folder) == before


def test_any_file_of_a_run(finished, capsys):
    probe, done, restore = finished
    before = contents(done.folder)
    names = sorted(p.relative_to(done.folder) for p in done.folder.rglob("*") if p.is_file())
    each = max(2, FLIPS // len(names) + 1)
    places = [(name, bit) for name in names for bit in flips(done.folder / name, each)]
    assert len(places) >= FLIPS
    for name, bit in places:
        restore()
        flip(done.folder / name, bit)
        assert main(["report", str(done.folder.parent.parent)]) == 0
        assert str(name) in capsys.readouterr().err, (name, bit)
        (told,) = run_again(probe, done)
        assert str(name) in told
        for aside in done.folder.rglob("*.corrupt"):
            aside.unlink()
        assert contents(done.folder) == before


def test_a_saved_estimator(tmp_path, rng):
    from featavg.estimators import RadiusClassifier, load

    path = tmp_path / "model.npz"
    x = rng.standard_normal((40, 3))
    RadiusClassifier(random_state=0).fit(x, x[:, 0] > 0).save(path)
    content = path.read_bytes()
    for bit in flips(path):
        path.write_bytes(content)
        flip(path, bit)
        with pytest.raises(InputError, match="model.npz"):
            load(path)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The folder of a finished sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    sweep(tiny(), folder, workers=1)
    return folder


def test_a_part_of_a_sweep(swept, tmp_path):
    design = tiny()
    part = max((swept / "parts").iterdir())
    whole = Store(swept, design.experiment.source)
    whole.refresh()
    for bit in flips(part):
        shutil.rmtree(tmp_path)
        shutil.copytree(swept, tmp_path)
        flip(tmp_path / "parts" / part.name, bit)
        store = Store(tmp_path, design.experiment.source)
        with pytest.warns(DamagedFileWarning, match=f"parts/{part.name} is damaged"):
            store.refresh()
        assert store.corrupt == [part.name]
        assert store.rows.items() <= whole.rows.items()
        assert len(store.rows) < len(whole.rows)


@pytest.mark.parametrize("name", ["design.json", "results.parquet", "manifest.json"])
def test_any_other_file_of_a_sweep(name, swept, tmp_path, capsys):
    design = tiny()
    for bit in flips(swept / name):
        shutil.rmtree(tmp_path)
        shutil.copytree(swept, tmp_path)
        flip(tmp_path / name, bit)
        code = main(["sweep", "status", str(tmp_path)])
        assert name in capsys.readouterr().err
        assert code == (2 if name == "design.json" else 0)
        store = Store(tmp_path, design.experiment.source)
        with pytest.warns(DamagedFileWarning, match=name), store.opened(design):
            pass
        store.write_table(design.jobs())
        for same in ("design.json", "results.parquet", "manifest.json"):
            assert (tmp_path / same).read_bytes() == (swept / same).read_bytes()


@pytest.mark.vision
def test_a_checkpoint(tmp_path):
    from dataclasses import replace

    import torch

    from featavg.vision.checkpoint import Checkpoint, Identity
    from support.train_until_killed import RECIPE, data, network, train

    path = tmp_path / "net.pt"
    train(network(), *data(), replace(RECIPE, epochs=1), seed=3, checkpoint=path, accelerator="cpu")
    content = path.read_bytes()
    held = torch.load(path, weights_only=True)["identity"]
    identity = Identity({"seed": "3"}, held["behaviour"], 0.0)
    for bit in flips(path):
        path.write_bytes(content)
        flip(path, bit)
        with pytest.raises(InputError, match=r"net.pt cannot be read \("):
            Checkpoint.load(path, identity)
    path.write_bytes(content)
    assert Checkpoint.load(path, identity).epoch == 1


@pytest.mark.vision
def test_saved_attacks(tmp_path):
    from featavg.array_files import Expected
    from featavg.array_store import ArrayStore

    store, arrays = ArrayStore(tmp_path), {"norms": np.arange(5.0)}
    expected = {"norms": Expected("f", (5,))}
    store.get("batch", expected, lambda: arrays)
    path = tmp_path / "batch.npz"
    content = path.read_bytes()
    for bit in flips(path):
        path.write_bytes(content)
        flip(path, bit)
        with pytest.warns(DamagedFileWarning, match="batch.npz is damaged"):
            again = store.get("batch", expected, lambda: arrays)
        assert np.array_equal(again["norms"], arrays["norms"])

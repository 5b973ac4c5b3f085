from __future__ import annotations

import csv
import json
import os
import platform
import shutil
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from featavg import DamagedFileWarning, InputError
from featavg.experiments import run
from featavg.manifest import damaged_files
from featavg.seals import check_seal, read_sealed_json, to_sealed_json
from support.damage import bomb, flipped, flipped_with_manifest, removed
from support.probe import Probe, Settings, contents


def test_a_run_writes_its_folder(tmp_path):
    probe = Probe()
    finished = run(probe.experiment, out=tmp_path)
    assert finished.holds
    assert finished.folder.parent == tmp_path / "probe"
    expected = {
        "parameters.json",
        "scalars.csv",
        "results.csv",
        "summary.json",
        "figure.png",
        "figure.svg",
        "seeds/0.npz",
        "seeds/1.npz",
        "seeds/2.npz",
    }
    assert set(contents(finished.folder)) == expected
    with (finished.folder / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert float(rows[4]["number"]) == finished.results["numbers"][1, 1]
    summary = json.loads((finished.folder / "summary.json").read_text())
    assert summary["expectations"][0]["mean"] == finished.results["mean"].mean()
    assert summary["seeds"] == 3


def test_an_interrupted_run_continues_and_ends_with_the_same_bytes(tmp_path):
    whole = run(Probe().experiment, out=tmp_path / "whole").folder
    probe = Probe()
    probe.breaks_at = 2
    with pytest.raises(KeyboardInterrupt):
        run(probe.experiment, out=tmp_path / "broken")
    probe.breaks_at, probe.measured = None, []
    folder = run(probe.experiment, out=tmp_path / "broken").folder
    assert probe.measured == [2]
    assert contents(folder) == contents(whole)


def test_finished_seeds_are_reused_unless_fresh(tmp_path):
    probe = Probe()
    first = run(probe.experiment, out=tmp_path, seeds=2)
    again = run(probe.experiment, out=tmp_path)
    assert probe.measured == [0, 1, 2]
    np.testing.assert_array_equal(again.results["numbers"][:2], first.results["numbers"])
    run(probe.experiment, out=tmp_path, fresh=True)
    assert probe.measured == [0, 1, 2, 0, 1, 2]


@pytest.mark.vision
@pytest.mark.parametrize("threads", ["1", "2"])
def test_what_a_run_was_made_with_is_kept(tmp_path, threads):
    code = (
        "import sys\n"
        "from featavg.experiments import EXPERIMENTS, run\n"
        "print(run(EXPERIMENTS['figure1'], seeds=1, out=sys.argv[1]).folder)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": threads},
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(done.stdout.strip())
    for file in ("provenance.json", "seeds/0.json"):
        found = json.loads((folder / file).read_text())["versions"]
        assert found["threads"] == str(min(int(threads), os.cpu_count() or 1))
        assert found["torch"] == version("torch")
        assert found["python"] == platform.python_version()


def test_other_parameters_have_another_folder(tmp_path):
    probe = Probe()
    folders = {run(probe.experiment, Settings(size=s), out=tmp_path).folder for s in (2, 3)}
    assert len(folders) == 2
    other = replace(probe.experiment, id="another")
    assert probe.experiment.key(Settings()) != other.key(Settings())


def resealed(path, **changes):
    """Change a file of a seed as if it had been written like this."""
    path.write_bytes(to_sealed_json(read_sealed_json(path, most=10**6) | changes))


def of_other_code(folder):
    path = folder / "seeds" / "1.json"
    (folder / "manifest.json").unlink()
    resealed(path, versions=json.loads(path.read_text())["versions"] | {"source": "0"})


def of_another_seed(folder):
    (folder / "manifest.json").unlink()
    for kind in ("json", "npz"):
        shutil.copy(folder / "seeds" / f"0.{kind}", folder / "seeds" / f"1.{kind}")


def of_other_parameters(folder):
    """As if the seed had been copied from the folder of another run of the experiment."""
    other = run(Probe().experiment, Settings(size=2), out=folder.parent / "others").folder
    (folder / "manifest.json").unlink()
    for kind in ("json", "npz"):
        shutil.copy(other / "seeds" / f"1.{kind}", folder / "seeds" / f"1.{kind}")


def exchanged_arrays(folder):
    (folder / "manifest.json").unlink()
    shutil.copy(folder / "seeds" / "0.npz", folder / "seeds" / "1.npz")


def endless_time(folder):
    (folder / "manifest.json").unlink()
    resealed(folder / "seeds" / "1.json", seconds=10**400)


def objects(folder):
    arrays = {"numbers": np.array([{"a": 1}], dtype=object), "mean": 0.0}
    np.savez(folder / "seeds" / "1.npz", **arrays)


def truncated(folder):
    path = folder / "seeds" / "1.npz"
    path.write_bytes(path.read_bytes()[:-30])


SPOILED = {
    "seeds/1.npz is damaged .*its content does not have its checksum": flipped("seeds/1.npz", 100),
    "seeds/1.npz is damaged .*its checksum.: it is now 1.npz.corrupt": flipped_with_manifest(
        "seeds/1.npz", 100
    ),
    "seeds/1.json is damaged .does not have its checksum": flipped("seeds/1.json", 20),
    "seeds/1.npz is damaged .does not have the size": truncated,
    "seeds/1.npz is damaged .does not have the size .*: it is now": objects,
    "seeds/1.json is damaged .is of seed 0": of_another_seed,
    "seeds/1.json is damaged .is of other parameters": of_other_parameters,
    "seeds/1.npz is damaged .*another checksum than the one that was saved": exchanged_arrays,
    "seeds/1.json is damaged .*seconds must be a number": endless_time,
    "seeds/1.npz is missing, and its seed": removed("seeds/1.npz"),
    "seeds/1.json is missing, and its seed": removed("seeds/1.json"),
}


@pytest.mark.parametrize("message", SPOILED)
def test_a_damaged_seed_is_named_set_aside_and_run_again(tmp_path, message):
    probe = Probe()
    folder = run(probe.experiment, out=tmp_path).folder
    before = contents(folder)
    SPOILED[message](folder)
    probe.measured = []
    with pytest.warns(DamagedFileWarning, match=message) as told:
        run(probe.experiment, out=tmp_path)
    assert len(told) == 1
    assert probe.measured == [1]
    assert contents(folder) == before
    run(probe.experiment, out=tmp_path)  # in which nothing is damaged any more
    assert probe.measured == [1]


def test_a_seed_of_other_code_is_run_again_without_a_word(tmp_path):
    probe = Probe()
    folder = run(probe.experiment, out=tmp_path).folder
    before = contents(folder)
    of_other_code(folder)
    probe.measured = []
    run(probe.experiment, out=tmp_path)
    assert probe.measured == [1]
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["summary.json", "results.csv", "figure.png", "manifest.json"])
def test_any_other_damaged_file_is_named_and_written_again(tmp_path, name):
    probe = Probe()
    folder = run(probe.experiment, out=tmp_path).folder
    before = contents(folder)
    flipped_with_manifest(name, 10)(folder)
    with pytest.warns(DamagedFileWarning, match=f"{name} .*; it is written again"):
        run(probe.experiment, out=tmp_path)
    assert probe.measured == [0, 1, 2]
    assert contents(folder) == before


def test_a_file_of_the_user_is_left_alone(tmp_path, recwarn):
    probe = Probe()
    notes = run(probe.experiment, out=tmp_path).folder / "my notes.txt"
    for text in ("before", "after"):
        notes.write_text(text)
        folder = run(probe.experiment, out=tmp_path).folder
        assert damaged_files(folder) == {}
    assert notes.read_text() == "after"
    assert not recwarn


def test_a_seed_file_that_unpacks_to_gigabytes_is_refused(tmp_path):
    probe = Probe()
    folder = run(probe.experiment, out=tmp_path).folder
    path = folder / "seeds" / "1.npz"
    bomb(path, megabytes=100)
    with path.open("rb") as file:
        checksum = check_seal(file)
    resealed(folder / "seeds" / "1.json", arrays=checksum)
    (folder / "manifest.json").unlink()
    tracemalloc.start()
    with pytest.warns(DamagedFileWarning, match="compressed to .*, it must hold at most 67.1 MB"):
        run(probe.experiment, out=tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    probe = Probe()
    with pytest.raises(InputError, match="out must be a folder that can be written to"):
        run(probe.experiment, out=tmp_path / "file")
    assert probe.measured == []

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from featavg import InputError
from featavg.experiments import (
    run,
)
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


@pytest.mark.parametrize("spoil", ["truncated", "empty", "pickle", "other source", "no times"])
def test_a_seed_that_cannot_be_trusted_is_run_again(tmp_path, spoil):
    probe = Probe()
    folder = run(probe.experiment, out=tmp_path).folder
    before = contents(folder)
    npz, about = folder / "seeds" / "1.npz", folder / "seeds" / "1.json"
    if spoil == "truncated":
        npz.write_bytes(npz.read_bytes()[:-30])
    elif spoil == "empty":
        npz.write_bytes(b"")
    elif spoil == "pickle":
        np.savez(npz, numbers=np.array([{"a": 1}], dtype=object), mean=0.0)
    elif spoil == "other source":
        text = json.loads(about.read_text())
        text["versions"]["source"] = "0"
        about.write_text(json.dumps(text))
    else:
        about.unlink()
    probe.measured = []
    run(probe.experiment, out=tmp_path)
    assert probe.measured == [1]
    assert contents(folder) == before


def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    probe = Probe()
    with pytest.raises(InputError, match="out must be a folder that can be written to"):
        run(probe.experiment, out=tmp_path / "file")
    assert probe.measured == []

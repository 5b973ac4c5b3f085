from __future__ import annotations

import json

import numpy as np
import pytest

from featavg.apps.cli.main import main
from support import sweep_faults as faults
from support.sweep_faults import stored_rows


def test_what_a_diagram_varies_cannot_be_set(tmp_path, capsys):
    command = ["run", "phase-learning-rate-init", "--learning-rate", "5", "--out", str(tmp_path)]
    assert main(command) == 2
    assert "learning_rate is what this diagram varies" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_quick_sweep_of_a_diagram_is_the_quick_diagram(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = [f"--set={name}={value}" for name, value in (faults.FIXED | {"grid": 2}).items()]
    for more, runs in (["--quick"], 4), ([], 3 * 4):  # one seed, and three, of 2 x 2
        out = ["--workers", "1", "--json", "--out", f"runs-{runs}"]
        assert main(["sweep", "phase-learning-rate-init", *more, *small, *out]) == 0
        assert json.loads(capsys.readouterr().out)["done"] == runs


@pytest.mark.slow
def test_a_phase_diagram_is_the_sweep_as_a_matrix(tmp_path, capsys):
    options = "--grid 3 --dim 60 --samples 30 --steps 10 --test-samples 2 --clusters 4 --seeds 2"
    out = str(tmp_path)
    assert main(["run", "phase-learning-rate-init", *options.split(), "--out", out]) == 0
    assert "of the plane averages" in capsys.readouterr().out
    (folder,) = (tmp_path / "phase-learning-rate-init").iterdir()
    rows = stored_rows(folder / "sweep")
    assert len(rows) == 18
    cells = np.genfromtxt(folder / "results.csv", delimiter=",", names=True)
    for row in rows:
        (cell,) = cells[
            (cells["seed"] == row["seed"])
            & (cells["learning_rate"] == row["learning_rate"])
            & (cells["weight_scalebias_scale"] == row["weight_scale+bias_scale"])
        ]
        assert cell["index"] == row["index"]
    assert (folder / "figure.png").stat().st_size > 10_000

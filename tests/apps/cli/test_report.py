from __future__ import annotations

from dataclasses import replace

import pytest

from featavg.apps.cli.main import main
from featavg.experiments import EXPERIMENTS
from support.report_runs import Page, run_folder


def test_a_folder_without_runs_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert main(["report", str(tmp_path / "none")]) == 2
    run_folder(tmp_path / "runs")
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in lines] == [
        "featavg: DIR must hold runs, as 'featavg run' leaves them",
        "featavg: DIR must be a folder of runs",
        "featavg: out must be a file, not a folder",
    ]
    assert list(tmp_path.glob("*.html")) == []


@pytest.mark.slow
def test_reproduce_ends_with_a_report(tmp_path, monkeypatch, capsys):
    alone = {
        n: replace(e, series="figures" if n == "figure1" else None) for n, e in EXPERIMENTS.items()
    }
    monkeypatch.setattr("featavg.apps.cli.experiments.EXPERIMENTS", alone)
    assert main(["reproduce", "--quick", "--seeds", "1", "--out", str(tmp_path)]) == 0
    assert f"report: {tmp_path / 'report.html'}" in capsys.readouterr().out
    assert "Averaging leaves a short way out" in Page(tmp_path / "report.html").text

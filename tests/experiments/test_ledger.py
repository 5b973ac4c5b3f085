from __future__ import annotations

from dataclasses import replace

import pytest

from featavg import experiments
from featavg.experiments import ledger
from featavg.theory import LEDGER


@pytest.mark.slow
def test_the_ledger_counts_seeds(tmp_path):
    parameters = replace(
        ledger.Parameters(), clusters=4, times=4, test_samples=50, radius_samples=2
    )
    run = experiments.run(ledger.EXPERIMENT, parameters, seeds=2, out=tmp_path)
    lines = ledger.entries(run.results)
    assert [line.claim.id for line in lines] == list(LEDGER)
    assert all(len(line.findings) == 2 for line in lines)
    by_id = {line.claim.id: line for line in lines}
    assert by_id["assumption-4.3.dim"].violations == 2
    assert by_id["lemma-5.1"].verdict == "holds"
    assert run.holds
    text = (run.folder / "results.csv").read_text(encoding="utf-8")
    assert text.count("\n") == 1 + 2 * len(LEDGER)


def test_the_preset_decides_how_many_clusters_there_are_unless_they_are_given():
    usual = ledger.EXPERIMENT.parameters
    assert usual.k == 10
    assert replace(usual, preset="theorem").k == 3
    assert replace(usual, preset="theorem").setting.dim == 3**10
    assert replace(usual, preset="theorem", clusters=4).k == 4

from __future__ import annotations

from dataclasses import replace

import pytest

from featavg import experiments
from featavg.experiments import ledger, theorem
from featavg.theory import LEDGER, OURS


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
    assert text.count("\n") == 1 + 2 * (len(LEDGER) + len(OURS))
    assert run.results["claims"].tolist() == [len(LEDGER)] * 2
    paper, ours = ledger.views(parameters, run.results)
    assert [row.id for row in paper.claims] == list(LEDGER)
    assert [row.id for row in ours.claims] == list(OURS)
    assert {row.section for row in ours.claims}.isdisjoint(row.section for row in paper.claims)


def test_the_preset_decides_how_many_clusters_there_are_unless_they_are_given():
    usual = ledger.EXPERIMENT.parameters
    assert usual.k == 10
    assert replace(usual, preset="theorem").k == 3
    assert replace(usual, preset="theorem").setting.dim == 3**10
    assert replace(usual, preset="theorem", clusters=4).k == 4


def test_the_poster_can_be_tried_at_the_sizes_of_the_figures():
    at_figures = replace(ledger.EXPERIMENT.parameters, preset="poster-figures").setting
    assert isinstance(at_figures, theorem.Parameters)
    sizes = at_figures.k, at_figures.dim, at_figures.samples, at_figures.width
    assert sizes == (10, 3072, 1000, 5)
    assert at_figures.learning_rate == pytest.approx(3072**-0.5)
    assert at_figures.scales == (pytest.approx(3072**-0.5), pytest.approx(1 / 3072))
    assert replace(at_figures, clusters=4).width == 2
    assert replace(at_figures, preset="poster").dim == 3**10

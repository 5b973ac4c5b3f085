"""Every experiment that needs no data of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from featavg.experiments import EXPERIMENTS, run
from support.probe import Probe, contents

# those that read images, and those that are sweeps, have tests of their own
WITHOUT_DATA = [e for e in EXPERIMENTS.values() if e.data is None and not e.has_own_axes]


ALL = [Probe().experiment, *WITHOUT_DATA]
ALL_IF_LONG = [
    Probe().experiment,
    *(pytest.param(e, marks=pytest.mark.long) for e in WITHOUT_DATA),
]


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.id)
def test_expectations_hold_for_a_seed_of_the_quick_preset(experiment, tmp_path):
    done = run(experiment, experiment.quick, seeds=1, out=tmp_path)
    assert not [outcome.summary() for outcome in done.outcomes if not outcome.holds]


@pytest.mark.parametrize("experiment", ALL_IF_LONG, ids=lambda e: e.id)
def test_seeds_and_expectations_of_the_quick_preset(experiment, tmp_path):
    """Other seeds give other results, and expectations hold for as many as usual."""
    both = run(experiment, experiment.quick, seeds=2, out=tmp_path)
    _, first, second = (both.folder / "scalars.csv").read_text().splitlines()
    assert first.split(",")[1:] != second.split(",")[1:]
    usual = run(experiment, experiment.quick, seeds=experiment.quick_seeds, out=tmp_path)
    assert usual.reused == min(2, experiment.quick_seeds)
    assert not [outcome.summary() for outcome in usual.outcomes if not outcome.holds]


@pytest.mark.parametrize("experiment", ALL_IF_LONG, ids=lambda e: e.id)
def test_the_same_seed_gives_the_same_bytes(experiment, tmp_path):
    once, again = (
        run(experiment, experiment.quick, seeds=1, out=tmp_path / name).folder
        for name in ("once", "again")
    )
    assert contents(once) == contents(again)


@pytest.mark.slow
def test_importing_the_experiments_does_not_import_torch():
    code = "import sys, featavg.apps.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

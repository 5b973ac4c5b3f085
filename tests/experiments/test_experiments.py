"""Every experiment that needs no data of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from featavg.experiments import (
    EXPERIMENTS,
    run,
)
from support.probe import Probe, contents

# those that read images, and those that are sweeps, have tests of their own
WITHOUT_DATA = [name for name, e in EXPERIMENTS.items() if e.data is None and not e.has_own_axes]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for experiment in (Probe().experiment, *(EXPERIMENTS[name] for name in WITHOUT_DATA)):
        first, second = (
            run(experiment, experiment.quick, seeds=1, out=tmp_path / name).folder
            for name in ("first", "second")
        )
        assert contents(first) == contents(second)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_other_seeds_give_other_results(name, tmp_path):
    experiment = EXPERIMENTS[name]
    scalars = run(experiment, experiment.quick, seeds=2, out=tmp_path).folder / "scalars.csv"
    _, first, second = scalars.read_text().splitlines()
    assert first.split(",")[1:] != second.split(",")[1:]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_quick_presets_reproduce(name, tmp_path):
    experiment = EXPERIMENTS[name]
    finished = run(experiment, experiment.quick, seeds=experiment.quick_seeds, out=tmp_path)
    failed = [o.summary() for o in finished.outcomes if not o.holds]
    assert not failed


@pytest.mark.slow
def test_importing_the_experiments_does_not_import_torch():
    code = "import sys, featavg.apps.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

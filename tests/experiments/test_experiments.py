"""Every experiment that needs no data of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from featavg.experiments import EXPERIMENTS, run
from support.probe import Probe, contents

# those that read images, and those that are sweeps, have tests of their own
WITHOUT_DATA = [e for e in EXPERIMENTS.values() if e.data is None and not e.has_own_axes]


def long_if(is_long, experiment):
    return pytest.param(experiment, marks=[pytest.mark.long] * is_long)


# what goes beyond the paper has tests of its parts, too
ALL = [Probe().experiment, *(long_if(e.series == "beyond", e) for e in WITHOUT_DATA)]
ALL_IF_LONG = [Probe().experiment, *(long_if(True, e) for e in WITHOUT_DATA)]


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.id)
def test_expectations_of_the_quick_preset_hold(experiment, tmp_path):
    """For as many seeds as `reproduce --quick` runs; for one seed of what it leaves out."""
    seeds = experiment.usual_seeds(quick=True) if experiment.series == "figures" else 1
    done = run(experiment, experiment.quick, seeds=seeds, out=tmp_path)
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
def test_the_command_line_imports_nothing_slow_before_it_is_needed():
    """Each of these takes a quarter of a second or more, at every start of a command or worker."""
    slow = ("matplotlib", "pandas", "scipy.stats", "sklearn", "torch")
    code = f"import sys, featavg.apps.cli.main; print(*{{*{slow}}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

"""Seeds that are measured side by side."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from featavg import InputError
from featavg.experiments import EXPERIMENTS, run
from featavg.lab import experiment as lab_experiment
from support import side_by_side
from support.probe import contents


def still_running() -> list[str]:
    """Return the processes of ours; those of joblib, which other tests start, wait to be reused.

    One that has ended may still be listed for a moment, until the thread that waits for it has
    noted its end.
    """
    ours = [p for p in multiprocessing.active_children() if not p.name.startswith("Loky")]
    for process in ours:
        process.join(timeout=10)
    return [process.name for process in ours if process.pid and is_process(process.pid)]


def is_process(pid: int) -> bool:
    """Return what the system says: two threads that wait for one process may both miss its end."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def always_worth_it(monkeypatch):
    monkeypatch.setattr(lab_experiment, "_WORTH_A_PROCESS", -1.0)


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.slow
def test_the_numbers_do_not_depend_on_the_number_of_workers(tmp_path):
    experiment = EXPERIMENTS["figure1"]
    one, two = (
        run(experiment, experiment.quick, seeds=3, workers=workers, out=tmp_path / str(workers))
        for workers in (1, 2)
    )
    assert contents(one.folder) == contents(two.folder)


@pytest.mark.usefixtures("always_worth_it")
def test_all_seeds_but_the_first_are_measured_in_other_processes(tmp_path):
    finished = run(side_by_side.experiment(side_by_side.measure), out=tmp_path, seeds=4, workers=2)
    here, *others = finished.results["process"].tolist()
    assert here == os.getpid()
    assert os.getpid() not in others
    expected = [np.random.default_rng(seed).random(3) for seed in range(4)]
    np.testing.assert_array_equal(finished.results["numbers"], expected)
    assert not still_running()


def test_short_work_is_not_worth_a_process(tmp_path):
    finished = run(side_by_side.experiment(side_by_side.measure), out=tmp_path, seeds=4, workers=2)
    assert set(finished.results["process"].tolist()) == {os.getpid()}


def saved_seeds(out: Path) -> set[str]:
    return {path.name for path in out.glob("probe/*/seeds/*.npz")}


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize(
    ("function", "sentence"),
    [(side_by_side.refuse, "seed must not be 1"), (side_by_side.die, "measured probe died")],
)
def test_what_fails_in_a_process_is_one_sentence_and_finished_seeds_are_kept(
    tmp_path, function, sentence
):
    with pytest.raises(InputError, match=sentence):
        run(side_by_side.experiment(function), out=tmp_path, seeds=3, workers=2)
    assert "0.npz" in saved_seeds(tmp_path)
    assert "1.npz" not in saved_seeds(tmp_path)
    assert not still_running()

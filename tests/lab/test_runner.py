from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from featavg import InputError
from featavg.experiments import (
    REGISTRY,
    Expectation,
    Experiment,
    Table,
    figure1,
    figure2,
    figure3,
    parameter,
    run,
)
from featavg.lab.run_folder import to_json, write_atomically
from featavg.paper import figure3_curve
from featavg.robustness import half_radius

# those that read images, and those that are sweeps, have tests of their own
WITHOUT_DATA = [name for name, e in REGISTRY.items() if e.data is None and e.design is None]


@dataclass(frozen=True)
class Settings:
    size: int = parameter(3, "how many numbers")


class Probe:
    """A small experiment that counts how often it is measured and can be told to break."""

    def __init__(self):
        self.measured: list[int] = []
        self.breaks_at: int | None = None
        self.experiment = Experiment(
            id="probe",
            title="A probe",
            paper="none",
            parameters=Settings(),
            quick=Settings(size=2),
            measure=self.measure,
            table=self.table,
            plot=self.plot,
            expects=lambda p: [Expectation("the mean", "mean", -1, 1, "0")],
            seeds=3,
        )

    def measure(self, parameters, seed):
        if seed == self.breaks_at:
            raise KeyboardInterrupt
        self.measured.append(seed)
        numbers = np.random.default_rng(seed).random(parameters.size)
        return {"numbers": numbers, "mean": numbers.mean()}

    def table(self, parameters, results):
        rows = [(s, i, float(v)) for (s, i), v in np.ndenumerate(results["numbers"])]
        return Table(("seed", "index", "number"), rows)

    def plot(self, parameters, results):
        figure = Figure()
        figure.subplots().plot(results["numbers"].T)
        return figure


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that has to be the same from run to run: all but the times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if (path.is_file() and path.name != "provenance.json" and path.parent.name != "seeds")
        or path.suffix == ".npz"
    }


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


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for experiment in (Probe().experiment, *(REGISTRY[name] for name in WITHOUT_DATA)):
        first, second = (
            run(experiment, experiment.quick, seeds=1, out=tmp_path / name).folder
            for name in ("first", "second")
        )
        assert contents(first) == contents(second)


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_other_seeds_give_other_results(name, tmp_path):
    experiment = REGISTRY[name]
    scalars = run(experiment, experiment.quick, seeds=2, out=tmp_path).folder / "scalars.csv"
    _, first, second = scalars.read_text().splitlines()
    assert first.split(",")[1:] != second.split(",")[1:]


def test_numbers_that_json_lacks_become_null():
    assert json.loads(to_json({"a": [float("inf"), 1.5], "b": (float("nan"), "x")})) == {
        "a": [None, 1.5],
        "b": [None, "x"],
    }


def test_equal_parameters_are_one_run():
    keys = {
        figure3.EXPERIMENT.key(p)
        for p in (
            figure3.Parameters(),
            figure3.Parameters(signal=1, clusters=np.int64(10)),
            figure3.Parameters(learning_rate=np.float64(0.001)),
        )
    }
    assert len(keys) == 1


def test_figure3_predicts_from_the_geometry():
    """Half the way between two centres, for every signal and cosine."""
    parameters = figure3.Parameters(clusters=4, dim=60, signal=2.0, cosine=0.3)
    mu = 2.0 * parameters.law.sample(1, rng=np.random.default_rng(0)).centers
    assert parameters.predicted[1] == pytest.approx(np.linalg.norm(mu[0] - mu[2]) / 2)
    # a point of the averaging network: its score over the norm of the gradient
    direction = mu[:2].sum(axis=0) - mu[2:].sum(axis=0)
    score = mu[0] @ direction
    assert parameters.predicted[0] == pytest.approx(score / np.linalg.norm(direction))


def test_the_papers_numbers_are_shown_where_they_apply():
    shown = [e.paper for e in figure3.expects(figure3.Parameters())]
    assert shown[:2] == ["15.4", "37.4"]
    assert [e.paper for e in figure3.expects(figure3.EXPERIMENT.quick)][:2] == ["", ""]


def test_a_grid_that_ends_early_still_makes_a_figure(tmp_path):
    parameters = replace(figure3.EXPERIMENT.quick, radii=3, test_samples=10)
    finished = run(figure3.EXPERIMENT, parameters, seeds=1, out=tmp_path)
    assert (finished.results["coarse_exact"] == 1).all()


def test_figure3_curves_are_ordered(tmp_path):
    """Certified below exact below what attacks leave, at every radius."""
    results = run(figure3.EXPERIMENT, figure3.EXPERIMENT.quick, seeds=1, out=tmp_path).results
    for low, high in (
        ("coarse_exact", "coarse_direction"),
        ("coarse_exact", "coarse_pgd"),
        ("fine_lower", "fine_upper"),
        ("fine_lower", "fine_pgd_readout"),
        ("fine_lower", "fine_pgd_cross_entropy"),
    ):
        assert (results[low] <= results[high]).all()
    assert (results["fine_lower"] < results["fine_pgd_cross_entropy"]).any()


def test_figure1_shows_the_boundary_where_the_exact_perturbation_ends(tmp_path):
    results = run(figure1.EXPERIMENT, figure1.EXPERIMENT.quick, seeds=1, out=tmp_path).results
    reach = figure1.EXPERIMENT.quick.reach
    ticks, lengths = np.linspace(-0.35 * reach, reach, 141), np.linspace(0, reach, 141)
    for name in ("coarse", "fine"):
        exact = results[f"{name}_exact"][0]
        radius = np.linalg.norm(exact)
        along = results[f"{name}_along_exact"][0]
        assert (along[lengths < 0.999 * radius] > 0).all()
        assert along[np.flatnonzero(lengths > 1.001 * radius)[0]] < 0
        # inside the circle of the exact radius no pixel of the plane is turned
        distance = np.hypot(*np.meshgrid(ticks, ticks))
        assert (results[f"{name}_plane"][0][distance < 0.999 * radius] > 0).all()


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


@pytest.mark.parametrize("threads", ["1", "2"])
def test_what_a_run_was_made_with_is_kept(tmp_path, threads):
    code = (
        "import sys\n"
        "from featavg.experiments import REGISTRY, run\n"
        "print(run(REGISTRY['figure1'], seeds=1, out=sys.argv[1]).folder)\n"
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
    assert probe.experiment.key(Settings()) != replace(probe.experiment, revision=2).key(Settings())


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


def test_a_write_that_fails_leaves_the_old_file_and_no_debris(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_atomically(target, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    probe = Probe()
    with pytest.raises(InputError, match="out must be a folder that can be written to"):
        run(probe.experiment, out=tmp_path / "file")
    assert probe.measured == []


def test_an_expectation_holds_only_if_every_seed_is_in_range():
    expectation = Expectation("a number", "x", low=0, high=1)
    assert expectation.judge({"x": np.array([0.0, 0.5, 1.0])}).holds
    assert not expectation.judge({"x": np.array([0.5, 1.01])}).holds
    assert not expectation.judge({"x": np.array([0.5, np.nan])}).holds
    outcome = expectation.judge({"x": np.array([0.2, 0.4])})
    assert outcome.mean == pytest.approx(0.3)
    assert outcome.std == pytest.approx(np.sqrt(0.02))


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_quick_presets_reproduce(name, tmp_path):
    experiment = REGISTRY[name]
    finished = run(experiment, experiment.quick, seeds=experiment.quick_seeds, out=tmp_path)
    failed = [o.summary() for o in finished.outcomes if not o.holds]
    assert not failed


def test_figure2_at_the_papers_setting(tmp_path):
    """The matrix itself, entry by entry, in one seed."""
    finished = run(REGISTRY["figure2-synthetic"], seeds=1, out=tmp_path)
    coarse, fine = finished.results["coarse_cosines"][0], finished.results["fine_cosines"][0]
    own = np.kron(np.eye(2), np.ones((5, 5))).astype(bool)
    assert abs(coarse[own].mean() - 1 / np.sqrt(5)) < 0.02
    assert np.abs(coarse[~own]).max() < 0.08
    assert np.diag(fine).min() > 0.95
    assert np.abs(fine - np.diag(np.diag(fine))).max() < 0.08


def test_figure2_fails_where_the_theory_does_not_apply(tmp_path):
    """Large initial weights, Figure 7: the network keeps them and does not average."""
    parameters = replace(figure2.EXPERIMENT.quick, weight_scale=1.0, bias_scale=1.0)
    assert not run(figure2.EXPERIMENT, parameters, seeds=1, out=tmp_path).holds


def test_figure2_expects_what_the_geometry_says():
    """With cosine c between centres the expected cosines are those of an exact average."""
    parameters = figure2.Parameters(clusters=6, dim=60, cosine=0.3, width=3)
    train = parameters.law.sample(1, rng=np.random.default_rng(0))
    mu = train.centers / np.sqrt(60)
    total = mu[:3].sum(axis=0) / np.linalg.norm(mu[:3].sum(axis=0))
    own, opposite = figure2.expects(parameters)[:2]
    assert own.low + 0.02 == pytest.approx(mu[0] @ total)
    assert opposite.high - 0.08 == pytest.approx(mu[3] @ total)


def test_the_papers_curves():
    """Figure 3 (left): where the paper's own curves cross one half."""
    assert half_radius(*figure3_curve("synthetic", 2)) == pytest.approx(15.4, abs=0.05)
    assert half_radius(*figure3_curve("synthetic", 10)) == pytest.approx(37.4, abs=0.05)
    for panel in ("synthetic", "mnist", "cifar10"):
        for classes in (2, 10):
            radii, accuracy = figure3_curve(panel, classes)
            assert (np.diff(radii) > 0).all()
            assert (np.diff(accuracy) <= 0).all()
    with pytest.raises(InputError, match="panel must be"):
        figure3_curve("svhn", 2)

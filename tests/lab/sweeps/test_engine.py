from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from featavg.apps.cli.main import main
from featavg.experiments import REGISTRY, averaging
from featavg.lab.sweeps import Axis, Design, sweep, workers
from support import sweep_faults as faults
from support.sweep_faults import small, stored_rows, tiny

# --- designs


def test_a_grid_is_every_combination_and_seed():
    jobs = small().jobs()
    assert len(jobs) == faults.RUNS == small().size
    assert len({job.id for job in jobs}) == faults.RUNS
    assert {job.seed for job in jobs} == {0, 1}
    # runs that share data follow each other: the data changes 4 times, once for each noise and seed
    data = [(job.seed, job.parameters["noise"]) for job in jobs]
    assert sum(a != b for a, b in pairwise(data)) == 3


def test_random_draws_are_in_range_and_the_same_every_time():
    axes = {"learning_rate": {"from": 1e-5, "to": 1.0, "scale": "log"}, "width": [1, 2]}
    design = small(axes=axes, draws=200, seeds=1)
    rates = np.array([job.parameters["learning_rate"] for job in design.jobs()])
    assert rates.min() >= 1e-5
    assert rates.max() <= 1
    # log-uniform: the median is near the geometric mean of the ends
    assert np.log10(np.median(rates)) == pytest.approx(-2.5, abs=0.5)
    assert [job.id for job in design.jobs()] == [job.id for job in design.jobs()]


def _values(name, **settings):
    return [job.parameters[name] for job in small(**settings).jobs() if job.seed == 0]


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"from": 1, "to": 5, "count": 5}, [1, 2, 3, 4, 5]),
        ({"from": 1, "to": 3, "count": 10}, [1, 2, 3]),
        ({"from": 1, "to": 8, "count": 4, "scale": "log"}, [1, 2, 4, 8]),
        ({"from": 1, "to": 10, "count": 5, "scale": "log"}, [1, 2, 3, 6, 10]),
        ([5.0], [5]),
    ],
)
def test_ranges_of_whole_numbers_have_each_once(given, values):
    found = _values("width", axes={"width": given})
    assert found == values
    assert {type(value) for value in found} == {int}


def test_values_have_the_type_of_their_parameter():
    assert {type(value) for value in _values("noise", axes={"noise": [1, 2.5]})} == {float}
    assert small(fixed={"dim": 60.0, "signal": 2}).fixed == {"dim": 60, "signal": 2.0}
    experiment = REGISTRY["figure5"]
    (job,) = Design.of(experiment, axes={"noise": [1]}, fixed={"values": 200}).jobs()
    assert job.parameters["values"] == "200"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_whole_numbers_are_drawn_with_both_ends(scale):
    axes = {"width": {"from": 1, "to": 4, "scale": scale}}
    found = _values("width", axes=axes, draws=100)
    assert sorted(found) == [1, 2, 3, 4]  # one that is drawn twice is run once
    assert {type(value) for value in found} == {int}


def test_a_value_may_need_one_of_another_axis():
    # 12 positive clusters need more than the usual 10
    design = Design.of(averaging.EXPERIMENT, axes={"positive": [12], "clusters": [4, 20, 8]})
    assert len(design.jobs()) == 3


def test_an_axis_can_set_several_parameters():
    design = tiny().experiment
    both = Design.of(design, axes={"weight_scale+bias_scale": [1e-3, 1e-2]})
    assert [job.parameters for job in both.jobs()] == [
        {"weight_scale": 1e-3, "bias_scale": 1e-3},
        {"weight_scale": 1e-2, "bias_scale": 1e-2},
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axes": {"no_such": [1]}}, "a parameter must be one of"),
        ({"axes": {"width": [1, 1]}}, "different values"),
        ({"axes": {"width": []}}, "one at least"),
        ({"axes": {"width": {"from": 1}}}, "from, to"),
        ({"axes": {"noise": {"from": 0, "to": 1, "count": 3, "scale": "log"}}}, "above 0"),
        ({"axes": {"noise": {"from": 1, "to": 2}}}, "must have a count"),
        ({"axes": {"dim": [1]}}, "set once"),
        ({"seeds": 0}, "seeds must be"),
        ({"fixed": {"dim": -1}}, "dim must be"),
        ({"fixed": {"signal": "x"}}, "signal must be a finite number; got 'x'"),
        ({"fixed": {"signal": 10**400}}, "signal must be a finite number"),
        ({"fixed": [1]}, "fixed must be a table"),
        ({"fixed": []}, "fixed must be a table"),
        ({"axes": 3}, "axes must be a table"),
        ({"axes": {}}, "axes must name what the sweep goes through"),
        ({"quick": "yes"}, "quick must be true or false; got 'yes'"),
        ({"axes": {"width": [5, "x"]}}, "width must be a whole number; got 'x'"),
        ({"axes": {"width": [5, True]}}, "width must be a whole number; got True"),
        ({"axes": {"width": [5, 1.5]}}, "width must be a whole number; got 1.5"),
        ({"axes": {"width": [5, 0]}}, "width must be a whole number of at least 1; got 0"),
        ({"axes": {"width": {"from": 1, "to": 2.5, "count": 3}}}, "whole numbers up to 2.53 as"),
        ({"axes": {"width": {"from": 1, "to": 10**30}}, "draws": 3}, "whole numbers up to"),
        ({"axes": {"width": {"from": 0, "to": 3}}, "draws": 3}, "at least 1; got 0"),
        ({"axes": {"width": {"from": 1, "to": 10**400}}}, "numbers as its ends"),
        ({"axes": {"learning_rate": ["a", "b"]}}, "learning_rate must be a finite number; got 'a'"),
        ({"axes": {"learning_rate": [1e-3, np.nan]}}, "learning_rate must be a finite number"),
        ({"axes": {"precision": ["float64", "float16"]}}, "precision must be one of"),
        ({"axes": {"positive": [4], "noise": [1, 2]}}, "positive must leave at least one"),
        ({"axes": {"noise": {"from": 1, "to": 2, "count": 10**8}}}, "count must be at most"),
        (
            {"fixed": {}, "axes": {name: range(1, 400) for name in ("width", "steps", "positive")}},
            "10,000,000",
        ),
    ],
)
def test_bad_designs(changes, message):
    with pytest.raises(InputError, match=message):
        small(**changes)


def test_a_design_from_a_file_is_the_same(tmp_path):
    design = Design.from_file(faults.toml(tmp_path / "a.toml"))
    assert [job.id for job in design.jobs()] == [job.id for job in small().jobs()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experiment = 1 2", "must be a TOML file"),
        ('experiment = "averaging"', "must have experiment and axes"),
        ('experiment = "nope"\n[axes]\nwidth = [1]', "experiment must be one of"),
        ('experiment = "averaging"\nwhat = 1\n[axes]\nwidth = [1]', "must have experiment and"),
        ('experiment = "averaging"\naxes = 3', "axes must be a table of parameters; got 3"),
        ('experiment = "averaging"\naxes = [1, 2]', "axes must be a table"),
        ('experiment = "averaging"\nfixed = [1]\n[axes]\nwidth = [1]', "fixed must be a table"),
        ('experiment = "averaging"\n[axes]', "axes must name what"),
        ('experiment = "averaging"\nquick = "yes"\n[axes]\nwidth = [1]', "quick must be true or"),
        ('experiment = "phase-imbalance"\n[axes]\nwidth = [1]', "has axes of its own"),
    ],
)
def test_bad_files(text, message, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Design.from_file(path)


def test_ranges():
    assert Axis.of("a", {"from": 1, "to": 3, "count": 3}).values == (1, 2, 3)
    assert Axis.of("a", {"from": 1e-4, "to": 1, "count": 5, "scale": "log"}).values == (
        1e-4,
        1e-3,
        1e-2,
        0.1,
        1.0,
    )


# --- results


def test_every_row_is_what_the_experiment_measures_by_itself(tmp_path):
    from threadpoolctl import threadpool_limits

    table = sweep(small(seeds=1), tmp_path, workers=1).to_pylist()
    start = replace(averaging.Parameters(), **faults.FIXED)
    with threadpool_limits(limits=1):
        for row in table[::5]:
            parameters = replace(start, **{name: row[name] for name in faults.AXES})
            measured = averaging.measure(parameters, row["seed"])
            for name in ("index", "radius", "accuracy", "loss"):
                assert row[name] == measured[name]


def test_the_setting_is_that_of_the_figures():
    parameters = averaging.Parameters(**faults.FIXED)
    measured = averaging.measure(parameters, 3)
    run, test = parameters.train_coarse(3)
    assert measured["index"] == fa.averaging_index(run.net, run.sample)
    assert measured["radius"] == np.median(fa.exact_radii(run.net, test.x, test.y).upper)


def test_tables_open_in_pandas_polars_and_duckdb(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    table = sweep(tiny(), tmp_path, workers=1)
    path = tmp_path / "results.parquet"
    frame = pandas.read_parquet(path)
    assert frame["index"].tolist() == table.column("index").to_pylist()
    assert polars.read_parquet(path)["radius"].to_list() == frame["radius"].tolist()
    query = f"select count(distinct id) from '{tmp_path}/parts/*.parquet'"  # noqa: S608
    assert duckdb.sql(query).fetchall() == [(4,)]


def test_a_failed_run_is_recorded_and_does_not_stop_the_others(tmp_path, capsys):
    fixed = {"samples": 30, "steps": 3, "test_samples": 2}
    broken = small(axes={"clusters": [4, 61], "dim": [60, 61]}, fixed=fixed, seeds=1)
    rows = sweep(broken, tmp_path, workers=1).to_pylist()
    (failed,) = (row for row in rows if row["status"] == "failed")
    assert (failed["clusters"], failed["dim"]) == (61, 60)
    assert "clusters" in failed["error"]
    assert main(["sweep", "status", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "3 runs done, 1 failed" in told
    assert "failed, 1 time: clusters must be" in told
    parts = len(list((tmp_path / "parts").iterdir()))
    sweep(broken, tmp_path, workers=1)  # nothing is left to do
    assert len(list((tmp_path / "parts").iterdir())) == parts
    sweep(broken, tmp_path, workers=1, retry_failed=True)
    assert len(list((tmp_path / "parts").iterdir())) > parts


def _nan(parameters, seed):
    return {"index": np.nan, "fine": 1.0, "learning_rate": 2.0}


def test_what_is_not_a_number_counts_as_failed_and_names_do_not_clash():
    design = tiny(seeds=1)
    design = replace(design, experiment=replace(design.experiment, measure=_nan))
    (row, _) = workers.run_batch(design, design.jobs(), "source")
    assert (row["status"], row["error"]) == ("failed", "index is not a number")
    assert (row["learning_rate"], row["measured_learning_rate"]) == (1e-3, 2.0)


# --- the command line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["averaging"], "vary must be given"),
        (["nope", "--vary", "width=1"], "WHAT must be one of"),
        (["averaging", "--vary", "width"], "vary must be NAME=VALUE"),
        (["averaging", "--vary", "width=1:2:3:4:5"], "LOW:HIGH:COUNT"),
        (["averaging", "phase-imbalance"], "one file or id"),
        (["phase-imbalance", "--vary", "width=1"], "axes of its own"),
        (["status"], "folder of one sweep"),
        (["status", "/nonexistent"], "folder of a sweep"),
        (["averaging", "--vary", "width=1", "--cluster", "tcp://127.0.0.1:1"], "Dask scheduler"),
        (["averaging", "--vary", "width=1", "--cluster", "nowhere"], "Dask scheduler"),
        (["averaging", "--vary", "width=1", "--workers", "0"], "workers must be"),
        (["averaging", "--vary", "width=1", "--cluster", "a:1", "--workers", "1"], "must not be"),
        (["averaging", "--vary", "width=5,,6"], "width must be a whole number; got ''"),
        (["averaging", "--vary", "width=1:2.5:3"], "whole numbers up to 2^53 as its ends"),
        (["averaging", "--vary", "learning_rate=1e-3,nan"], "must be a finite number; got nan"),
        (["averaging", "--vary", "width=1", "--vary", "width=2"], "vary must name width once"),
        (
            ["averaging", "--vary", "dim=9", "--set", "width=1", "--set", "width=2"],
            "set must name width once",
        ),
        (["averaging", "--vary", "width=1", "--seeds", "0"], "seeds must be"),
        (["averaging", "--vary", "width=1", "--draws", "0"], "draws must be"),
        (["design.toml", "--seeds", "0"], "must be in the file"),
        (["phase-imbalance", "--seeds", "0"], "seeds must be"),
        (["phase-imbalance", "--draws", "4"], "so draws must not be given"),
        (["phase-imbalance", "--set", "nope=5"], "a parameter must be one of"),
        (["phase-imbalance", "--set", "width=x"], "width must be a whole number; got 'x'"),
        (["phase-learning-rate-init", "--set", "learning_rate=5"], "what this diagram varies"),
        (["phase-learning-rate-init", "--set", "bias_scale=1"], "what this diagram varies"),
    ],
)
def test_bad_commands(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "_CONNECT_SECONDS", 1)
    assert main(["sweep", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_is_no_address_is_refused_without_a_word_from_dask(tmp_path):
    command = [
        sys.executable,
        "-m",
        "featavg.apps.cli.main",
        "sweep",
        "averaging",
        "--vary",
        "width=1",
    ]
    done = subprocess.run(
        [*command, "--cluster", "nowhere"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_whole_numbers_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fixed = [f"--set={name}={value}" for name, value in faults.FIXED.items()]
    command = ["sweep", "averaging", *fixed, "--workers", "1", "--vary"]
    assert main([*command, "width=1:3:3", "--out", "range"]) == 0
    assert sorted(row["width"] for row in stored_rows(tmp_path / "range")) == [1, 2, 3]
    assert main([*command, "width=1:3", "--draws", "2", "--out", "drawn"]) == 0
    assert main(["sweep", "status", "drawn"]) == 0


def test_the_command_line_and_its_status(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fixed = [f"--set={name}={value}" for name, value in faults.FIXED.items()]
    command = ["sweep", "averaging", "--vary", "learning_rate=1e-3:1e-1:3:log", *fixed]
    assert main([*command, "--workers", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["done"], told["failed"], told["missing"]) == (3, 0, 0)
    assert main(["sweep", "status", told["folder"]]) == 0
    assert "3 runs done" in capsys.readouterr().out


# --- phase diagrams


def test_what_a_diagram_varies_cannot_be_set(tmp_path, capsys):
    command = ["run", "phase-learning-rate-init", "--learning-rate", "5", "--out", str(tmp_path)]
    assert main(command) == 2
    assert "learning_rate is what this diagram varies" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_quick_sweep_of_a_diagram_is_the_quick_diagram(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = [f"--set={name}={value}" for name, value in (faults.FIXED | {"grid": 2}).items()]
    for more, runs in (["--quick"], 4), ([], 3 * 4):  # one seed, and three, of 2 x 2
        out = ["--workers", "1", "--json", "--out", f"runs-{runs}"]
        assert main(["sweep", "phase-learning-rate-init", *more, *small, *out]) == 0
        assert json.loads(capsys.readouterr().out)["done"] == runs


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

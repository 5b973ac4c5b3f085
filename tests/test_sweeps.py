from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import featavg as fa
import sweep_faults as faults
from featavg import InputError
from featavg.cli import main
from featavg.experiments import averaging
from featavg.sweeps import Axis, Design, sweep, workers
from sweep_faults import small, stored_rows, tiny

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
    design = tiny(fixed=faults.FIXED | {"steps": 3})
    broken = replace(design, axes=(Axis.of("clusters", [4, 61]),), fixed={"dim": 60, "samples": 30})
    rows = sweep(broken, tmp_path, workers=1).to_pylist()
    by_clusters = {row["clusters"]: row for row in rows}
    assert by_clusters[4]["status"] == "done"
    assert by_clusters[61]["status"] == "failed"
    assert "clusters" in by_clusters[61]["error"]
    assert main(["sweep", "status", str(tmp_path)]) == 1
    assert "2 failed" in capsys.readouterr().out
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
    ],
)
def test_bad_commands(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "_CONNECT_SECONDS", 1)
    assert main(["sweep", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


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

from __future__ import annotations

from dataclasses import replace

import pytest

from featavg.apps.cli.main import main
from featavg.experiments import averaging
from featavg.lab.sweeps import sweep
from support import sweep_faults as faults
from support.sweep_faults import small, tiny


@pytest.mark.slow
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


@pytest.mark.slow
def test_tables_open_in_pandas_polars_and_duckdb(tmp_path):
    import duckdb
    import pandas
    import polars

    table = sweep(tiny(), tmp_path, workers=1)
    path = tmp_path / "results.parquet"
    frame = pandas.read_parquet(path)
    assert frame["index"].tolist() == table.column("index").to_pylist()
    assert polars.read_parquet(path)["radius"].to_list() == frame["radius"].tolist()
    query = f"select count(distinct id) from '{tmp_path}/parts/*.parquet'"  # noqa: S608
    assert duckdb.sql(query).fetchall() == [(4,)]


@pytest.mark.slow
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

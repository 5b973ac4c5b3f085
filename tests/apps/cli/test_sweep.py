from __future__ import annotations

import json
import subprocess
import sys

import pytest

from featavg.apps.cli.main import main
from featavg.lab import registry
from featavg.lab.sweeps import Store, workers
from featavg.lab.sweeps.store import row_of
from featavg.seals import to_sealed_json
from support import sweep_faults as faults
from support.sweep_faults import stored_rows

WITHOUT_PYARROW = [
    ("run phase-snr-cosine --quick", "a sweep needs PyArrow: pip install 'featavg[data]'."),
    ("sweep phase-snr-cosine --quick", "a sweep needs PyArrow: pip install 'featavg[data]'."),
    ("sweep status nofolder", "DIR must be the folder of a sweep; got "),
    ("sweep averging --vary width=1", "(did you mean 'averaging'?)"),
]


@pytest.mark.parametrize(("typed", "message"), WITHOUT_PYARROW)
def test_without_pyarrow_nothing_is_written(typed, message, tmp_path, monkeypatch, capsys):
    """And what is wrong with the arguments is said first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert main(typed.split()) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
        (["status", "missing"], "folder of a sweep"),
        pytest.param(
            ["averaging", "--vary", "width=1", "--cluster", "tcp://127.0.0.1:1"],
            "Dask scheduler",
            marks=pytest.mark.cluster,
        ),
        pytest.param(
            ["averaging", "--vary", "width=1", "--cluster", "nowhere"],
            "Dask scheduler",
            marks=pytest.mark.cluster,
        ),
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


@pytest.mark.cluster
def test_what_is_no_address_is_refused_without_a_word_from_dask(tmp_path):
    command = [
        sys.executable,
        "-m",
        "featavg",
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


@pytest.mark.slow
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


@pytest.fixture
def of_a_file(tmp_path, monkeypatch):
    """The folder of a sweep whose design names a Python file, and the file."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "imported_by_status.py"
    file.write_text("from support.mine import EXPERIMENT\n")
    folder = tmp_path / "sweep"
    folder.mkdir()

    def write(named):
        about = {"quick": False, "seeds": 2, "draws": 0, "fixed": {}}
        axes = {"shift": [0.0, 1.0]}
        content = to_sealed_json({"experiment": named, **about, "axes": axes})
        (folder / "design.json").write_bytes(content)
        return folder, file

    yield write
    sys.modules.pop(file.stem, None)


def test_status_imports_no_file_that_only_the_folder_names(of_a_file, capsys):
    folder, file = of_a_file("placeholder")
    of_a_file(f"{file}:mine")
    assert main(["sweep", "status", str(folder)]) == 2
    error = capsys.readouterr().err
    assert "FILE must be given after" in error
    assert error.count("\n") == 1
    assert file.stem not in sys.modules


def test_status_takes_the_file_of_the_design_and_no_other(of_a_file, capsys):
    folder, file = of_a_file("averaging")
    assert main(["sweep", "status", str(folder), str(file)]) == 2
    assert "FILE must be that of the sweep" in capsys.readouterr().err
    named = registry.address(registry.find(str(file)))
    of_a_file(named)
    assert main(["sweep", "status", str(folder), str(file)]) == 1
    assert "4 missing" in capsys.readouterr().out


def test_the_error_of_a_run_does_not_control_the_terminal(tmp_path, capsys):
    design = faults.tiny()
    store = Store(tmp_path, design.experiment.source)
    store.open(design)
    failed = {"status": "failed", "error": "\x1b[31mX\nfeatavg: fine"}
    store.add([row_of(design.jobs()[0], store.source, 0.0, **failed)])
    assert main(["sweep", "status", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert r"failed, 1 time: \x1b[31mX\nfeatavg: fine" in shown
    assert "\x1b" not in shown

"""`featavg run` and `featavg sweep` with experiments of other people."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from featavg.apps.cli.main import main
from featavg.lab import registry
from support import mine
from support.command import command
from support.sweep_faults import stored_rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the file ``mine_here.py``."""
    (tmp_path / "mine_here.py").write_text(mine.TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("mine_here", None)


def test_the_experiment_of_a_file_is_run_with_its_own_flags(folder, capsys):
    code, out, _ = command(capsys, "run", "./mine_here.py", "--help")
    assert code == 0
    assert "how many numbers, in % (default 3; 2 with --quick)" in " ".join(out.split())
    code, out, _ = command(capsys, "run", "mine_here.py:mine", "--size", "5", "--json")
    result = json.loads(out)
    assert (code, result["parameters"]["size"], result["seeds"]) == (0, 5, 2)
    assert (folder / result["folder"] / "results.csv").exists()
    code, out, _ = command(capsys, "run", "./mine_here.py", "--size", "5")
    assert "2 seeds were saved before" in out
    code, _, error = command(capsys, "run", "./mine_here.py", "--colour", "red")
    assert (code, error) == (
        2,
        "featavg: unrecognized arguments: --colour red; see 'featavg run ./mine_here.py --help'.\n",
    )


@pytest.mark.slow
def test_a_changed_file_is_measured_again_and_a_changed_comment_is_not(folder):
    def reused():
        run = [sys.executable, "-m", "featavg", "run", "./mine_here.py"]
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        return re.findall(r"\d seeds were saved before", done.stdout)

    assert reused() == []
    (folder / "mine_here.py").write_text(mine.TEXT + "\n# a comment\n")
    assert reused() == ["2 seeds were saved before"]
    (folder / "mine_here.py").write_text(mine.TEXT + "\nMORE = 1\n")
    assert reused() == []


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize(
    ("address", "text", "message"),
    [
        ("./nothing.py", "", "there is no file "),
        ("./bad_file.py", "x = 1\n", "must define EXPERIMENT or EXPERIMENTS"),
        ("./bad_file.py", "\n1 / 0\n", "ZeroDivisionError in line 2: division by zero"),
        ("mine_here.py:other", "", "must be followed by one of :mine"),
    ],
)
def test_files_without_an_experiment(command, address, text, message, folder, capsys):
    (folder / "bad_file.py").write_text(text)
    assert main([command, address]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    sys.modules.pop("bad_file", None)


@pytest.mark.slow
def test_a_sweep_over_the_experiment_of_a_file_in_worker_processes(folder, capsys):
    sweep = ["sweep", "./mine_here.py", "--vary", "size=1,2,3", "--workers", "2", "--json"]
    assert main([*sweep, "--vary", "shift=0:1:2"]) == 0
    assert json.loads(capsys.readouterr().out) | {"corrupt": []} == {
        "done": 6,
        "failed": 0,
        "missing": 0,
        "outdated": 0,
        "corrupt": [],
        "folder": "sweeps/mine_here",
    }
    rows = stored_rows(folder / "sweeps" / "mine_here")
    for row in rows:
        parameters = mine.Parameters(size=row["size"], shift=row["shift"])
        assert row["mean"] == mine.measure(parameters, row["seed"])["mean"]
    parts = sorted((folder / "sweeps" / "mine_here" / "parts").iterdir())
    assert main([*sweep, "--vary", "shift=0:1:2"]) == 0  # nothing is left to do
    assert sorted((folder / "sweeps" / "mine_here" / "parts").iterdir()) == parts
    capsys.readouterr()
    assert main(["sweep", "status", "sweeps/mine_here", "./mine_here.py"]) == 0
    assert "6 runs done, 0 failed, 0 missing" in capsys.readouterr().out


@pytest.mark.slow
def test_a_design_names_a_file_beside_it(folder, monkeypatch, capsys):
    design = 'experiment = "mine_here.py"\n[axes]\nsize = [1, 2]\n'
    (folder / "design.toml").write_text(design)
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert main(["sweep", "../design.toml", "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 2


def test_list_names_plugins_that_cannot_be_used(monkeypatch, capsys):
    found = (registry.experiments() | {"mine": mine.EXPERIMENT}, ("plugin 'x' is broken.",))
    monkeypatch.setattr(registry, "_loaded", lambda: found)
    code, out, error = command(capsys, "list")
    assert code == 0
    assert "An experiment of somebody else" in out
    assert error == "featavg: plugin 'x' is broken.\n"


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("torch", "this needs PyTorch: pip install 'featavg[vision]'."),
        ("lightning_fabric", "this needs Lightning Fabric: pip install 'featavg[visi"),
        ("somebodys_package", "this needs the package somebodys_package, which is not installed."),
    ],
)
def test_a_missing_package_is_one_sentence(module, sentence, folder, monkeypatch, capsys):
    text = mine.TEXT.replace("    numbers = np", f"    import {module}\n    numbers = np")
    (folder / "mine_here.py").write_text(text)
    monkeypatch.setitem(sys.modules, module, None)
    code, out, error = command(capsys, "run", "./mine_here.py")
    assert (code, out) == (2, "")
    assert f"featavg: {sentence}" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("pyarrow.parquet", ["sweep", "averaging", "--vary", "width=1"]),
        ("distributed", ["sweep", "averaging", "--vary", "width=1", "--cluster", "tcp://a:1"]),
        ("uvicorn", ["play"]),
    ],
)
def test_a_command_without_its_extra_is_one_sentence(module, arguments, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    code, _, error = command(capsys, *arguments)
    assert code == 2
    assert "pip install 'featavg[" in error
    assert error.count("\n") == 1

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from featavg import __version__
from featavg.apps.cli import experiments
from featavg.apps.cli.main import main
from featavg.experiments import EXPERIMENTS, figure2, ledger
from featavg.progress import counted
from featavg.theory import LEDGER, Finding
from support.command import command

SMALL = ["--dim", "300", "--samples", "150", "--test-samples", "50", "--seeds", "1"]


def test_list_says_which_extra_an_experiment_needs(capsys):
    _, out, _ = command(capsys, "list")
    needs = {line.split()[0]: line.split()[-1] for line in out.splitlines() if line.strip()}
    assert needs["figure3-mnist"] == needs["fine-labels-cifar10"] == "[vision]"
    assert (needs["granularity-real"], needs["phase-imbalance"]) == (
        "[text]",
        "[data]",
    )
    assert "[" not in needs["figure1"]


def test_list_and_bare_command_and_version(capsys):
    code, out, _ = command(capsys, "list")
    assert code == 0
    assert all(name in out for name in EXPERIMENTS)
    code, out, _ = command(capsys)
    assert code == 0
    assert "reproduce" in out
    assert command(capsys, "--version")[1].strip() == f"featavg {__version__}"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_help_teaches_every_parameter_and_its_default(capsys, name):
    code, out, _ = command(capsys, "run", name, "--help")
    text = " ".join(out.split())
    assert code == 0
    for field in fields(EXPERIMENTS[name].parameters):
        assert f"--{field.name.replace('_', '-')}" in text
        assert field.metadata["help"] in text
    assert re.search(r"\(default \S+; \S+ with --quick\)", text)


@pytest.mark.slow
def test_run_prints_a_table_and_writes_figures(capsys, tmp_path):
    code, out, _ = command(capsys, "run", "figure2-synthetic", "--quick", "--out", str(tmp_path))
    assert code == 0
    assert "Every expectation holds." in out
    (figure,) = tmp_path.rglob("figure.png")
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert str(figure) in out


def test_json_is_all_that_standard_output_gets(capsys, tmp_path):
    code, out, _ = command(
        capsys, "run", "figure2-synthetic", *SMALL, "--out", str(tmp_path), "--json"
    )
    result = json.loads(out)
    assert result["experiment"] == "figure2-synthetic"
    assert result["parameters"]["dim"] == 300
    assert result["parameters"]["learning_rate"] == 0.001
    assert code == (0 if result["holds"] else 1)


def test_flags_override_the_quick_preset(capsys, tmp_path):
    _, out, _ = command(
        capsys,
        "run",
        "figure2-synthetic",
        "--quick",
        "--seeds",
        "1",
        "--samples",
        "77",
        "--out",
        str(tmp_path),
        "--json",
    )
    parameters = json.loads(out)["parameters"]
    assert (parameters["samples"], parameters["dim"]) == (77, 1536)


def test_an_expectation_that_fails_is_exit_code_1(capsys, tmp_path, monkeypatch):
    small = replace(figure2.EXPERIMENT.quick, dim=300, samples=150, test_samples=50, weight_scale=1)
    broken = replace(figure2.EXPERIMENT, quick=small)
    monkeypatch.setattr("featavg.lab.registry.find", lambda *_, **__: broken)
    arguments = ["run", "figure2-synthetic", "--quick", "--seeds", "1", "--out", str(tmp_path)]
    code, out, _ = command(capsys, *arguments)
    assert code == 1
    assert "Not every expectation holds." in out


def test_the_verdict_on_claims_counts_those_that_are_violated():
    claims = list(LEDGER.values())[:4]
    slacks = (2.0, 0.5, np.nan, 3.0)
    entries = [
        ledger.Entry(claim, (Finding(1.0, 1.0, slack, ""),))
        for claim, slack in zip(claims, slacks, strict=True)
    ]
    said = (
        "2 of 4 claims hold in every seed, 1 are violated in at least one, "
        "1 are not stated at this scale"
    )
    good, bad = (experiments._on_claims(entries, holds) for holds in (True, False))
    assert good == f"{said}; every identity of gradient descent holds, as it must."
    assert bad == f"{said}; not every expectation holds."


def test_limits_hold_for_the_settings_that_they_were_found_for():
    experiment = figure2.EXPERIMENT
    for preset in (experiment.parameters, experiment.quick):
        assert experiment.changed(preset) == []
        assert experiment.expectations(preset) == list(experiment.expects(preset))
    other = replace(experiment.quick, weight_scale=1e-3, bias_scale=1e-3)
    assert experiment.changed(other) == ["weight_scale", "bias_scale"]
    assert {one.rule for one in experiment.expectations(other)} == {"reported"}
    theory = EXPERIMENTS["theorem-regime"]
    larger = replace(theory.parameters, clusters=4)  # what the theorems say is known for every k
    assert theory.expectations(larger) == list(theory.expects(larger))


@pytest.mark.slow
def test_a_second_run_says_that_seeds_were_there(capsys, tmp_path):
    arguments = ["run", "figure2-synthetic", *SMALL, "--out", str(tmp_path)]
    assert "saved before" not in command(capsys, *arguments)[1]
    assert "1 seed was saved before" in command(capsys, *arguments)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "menu",
    [
        ["figure1", "figure2-synthetic", "readouts"],
        pytest.param(EXPERIMENTS, marks=pytest.mark.long),
    ],
    ids=["some", "everything"],
)
def test_reproduce_runs_every_figure_and_summarises(capsys, tmp_path, monkeypatch, menu):
    """But not what is beyond the paper."""
    monkeypatch.setattr(experiments, "EXPERIMENTS", {name: EXPERIMENTS[name] for name in menu})
    code, out, _ = command(capsys, "reproduce", "--quick", "--out", str(tmp_path))
    assert code == 0
    expected = [name for name in menu if EXPERIMENTS[name].series == "figures"]
    assert all(name in out for name in expected)
    summary = json.loads((tmp_path / "summary-quick.json").read_text())
    assert [s["experiment"] for s in summary] == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--clusters", "20", "--dim", "10"], "clusters must be at most dim because centres"),
        (["--positive", "0"], "at least one of the 10 clusters on each side"),
        (["--noise", "-1"], "noise must be at least 0; got -1.0"),
        (["--width", "0"], "width must be a whole number of at least 1; got 0"),
        (["--width", "4"], "width must be at least 5"),
        (["--seeds", "0"], "seeds must be a whole number of at least 1; got 0"),
        (["--learning-rate", "nan"], "learning_rate must be a finite number; got nan"),
        (["--learning-rate", "1e308"], "the loss became infinite or NaN at step"),
        (["--samples", "10000000"], "would need 245.8 GB of memory"),
        (["--clusters", "100000", "--dim", "100000000"], "width must be at least 50000"),
        (["--positive", "1000000000000"], "on each side"),
        (["--width", "1000000000"], "GB of memory"),
        (["--noise", "1e308"], "x must be finite"),
        (["--weight-scale", "1e308"], "weights must be finite"),
        (["--dim", "many"], "must be a whole number, such as 1000 or 1e3; got 'many'"),
        (["--colour", "red"], "unrecognized arguments: --colour red"),
        (["--clus", "4"], "unrecognized arguments: --clus 4"),
    ],
)
def test_bad_input_is_one_sentence_exit_code_2_and_nothing_written(
    capsys, tmp_path, arguments, sentence
):
    out = tmp_path / "out"
    code, printed, error = command(
        capsys, "run", "figure2-synthetic", "--out", str(out), *arguments
    )
    assert code == 2
    assert printed == ""
    assert sentence in error
    assert len(error.strip().splitlines()) == 1
    assert error.strip().endswith(".")
    assert not out.exists()


def test_a_regime_that_needs_terabytes_is_refused_at_once(capsys, tmp_path):
    out = str(tmp_path / "out")
    code, _, error = command(capsys, "run", "theorem-regime", "--clusters", "7", "--out", out)
    assert code == 2
    assert "n = 823,543 points and their Gram matrix would need 5,968.4 GB of memory" in error
    assert not (tmp_path / "out").exists()
    code, _, error = command(capsys, "run", "theorem-regime", "--preset", "talk")
    assert code == 2
    assert "invalid choice: 'talk'" in error


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "figure99"], "'featavg list' shows"),
        (["run"], "required: ID"),
        (["paint"], "invalid choice: 'paint'"),
    ],
)
def test_unknown_commands_and_experiments(capsys, arguments, sentence):
    code, _, error = command(capsys, *arguments)
    assert code == 2
    assert sentence in error
    assert len(error.strip().splitlines()) == 1


def test_an_unwritable_place_is_one_sentence(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, error = command(
        capsys, "run", "figure2-synthetic", *SMALL, "--out", str(tmp_path / "file" / "below")
    )
    assert code == 2
    assert "out must be a folder that can be written to" in error


def test_interruption_says_that_work_is_kept(capsys, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("featavg.apps.cli.experiments.run_experiment", interrupt)
    code, _, error = command(capsys, "reproduce", "--out", str(tmp_path))
    assert code == 130
    assert "the same command (without --fresh) continues" in error


def test_interruption_of_what_keeps_nothing_does_not_say_so(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("featavg.apps.cli.data.datasets.available", interrupt)
    code, _, error = command(capsys, "data", "list")
    assert (code, error) == (130, "featavg: interrupted.\n")


@pytest.mark.slow
def test_where_nothing_is_asked_for_nothing_holds(capsys, tmp_path):
    code, out, _ = command(capsys, "run", "averaging", "--quick", "--out", str(tmp_path))
    assert code == 0
    assert "There are no expectations" in out
    assert "Every expectation holds" not in out


def test_help_says_what_is_not_in_the_paper(capsys):
    _, out, _ = command(capsys, "run", "figure3-fashion", "--help")
    assert "Not in the paper: an extension." in " ".join(out.split())
    _, out, _ = command(capsys, "run", "figure10", "--help")
    assert "Figure 10 of the paper." in " ".join(out.split())


def test_an_error_of_ours_is_not_passed_off_as_bad_input(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr("featavg.apps.cli.experiments.run_experiment", broken)
    with pytest.raises(ValueError, match="broadcast"):
        main(["reproduce", "--out", str(tmp_path)])


def test_a_reader_that_has_had_enough_is_not_an_error(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "featavg", "list"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == ""


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    for _ in counted(3, "weighing", enabled=True):
        pass
    assert "weighing" in capsys.readouterr().err


def test_the_installed_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "featavg", "run", "nope"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_unknown_flag_points_to_the_help_of_its_command(capsys):
    code, _, error = command(capsys, "run", "figure2-synthetic", "--nope", "3")
    assert code == 2
    assert error == (
        "featavg: unrecognized arguments: --nope 3; see 'featavg run figure2-synthetic --help'.\n"
    )

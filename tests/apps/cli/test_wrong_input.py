"""Wrong input to every command: one sentence on standard error, exit code 2, nothing written."""

from __future__ import annotations

import numpy as np
import pytest

from support.command import command

# what is typed, and a part of the sentence that it gets
WRONG = [
    ("repro", "invalid choice: 'repro'", "(did you mean 'reproduce'?)"),
    ("--versoin", "unrecognized arguments: --versoin", "(did you mean '--version'?)"),
    ("list everything", "unrecognized arguments: everything", ""),
    ("run", "the following arguments are required: ID", ""),
    ("run figure2", "got 'figure2'", "(did you mean 'figure2-synthetic'?)"),
    ("run figur3-synthetic", "got 'figur3-synthetic'", "(did you mean 'figure3-synthetic'?)"),
    ("run figure2-sythetic", "'featavg list' shows", "got 'figure2-sythetic' (did you mean"),
    ("run .", "ID must be one of those that 'featavg list' shows", "got '.'."),
    ("run nothing.py", "there is no file", ""),
    ("run notes.txt", "ID must be one of", ""),
    ("run broken.py", "cannot be imported: ZeroDivisionError in line 1", ""),
    ("run empty.py", "must define EXPERIMENT or EXPERIMENTS", ""),
    ("run figure2-synthetic --sample 10", "--sample 10", "(did you mean '--samples'?)"),
    ("run figure2-synthetic --samples 1.5", "--samples: must be a whole number", "got '1.5'"),
    ("run figure2-synthetic --samples 1e999999", "such as 1000 or 1e3; got '1e999999'", ""),
    ("run figure2-synthetic --samples 1e9", "GB of memory", ""),
    ("run figure2-synthetic --samples", "expected one argument", ""),
    ("run figure2-synthetic --noise loud", "invalid float value: 'loud'", ""),
    ("run figure2-synthetic --noise inf", "noise must be a finite number; got inf", ""),
    ("run figure2-synthetic --seeds 0", "seeds must be a whole number of at least 1; got 0", ""),
    ("run figure2-synthetic --out notes.txt/x", "out must be a folder", ""),
    ("run theorem-regime --preset postr", "invalid choice: 'postr'", "(did you mean 'poster'?)"),
    ("run figure9 --values red", "values must be", ""),
    ("theory --clusters 1", "clusters must be a whole number of at least 2; got 1", ""),
    ("theory --preset thoerem", "invalid choice: 'thoerem'", "(did you mean 'theorem'?)"),
    ("reproduce --quik", "unrecognized arguments: --quik", "(did you mean '--quick'?)"),
    ("reproduce --seeds few", "--seeds: must be a whole number", "got 'few'"),
    ("report nowhere", "nowhere", ""),
    ("report notes.txt", "notes.txt", ""),
    ("report .", "DIR must hold runs, as 'featavg run' leaves them; got '.'.", ""),
    ("report . nowhere", "DIR must be a folder of runs; got 'nowhere'.", ""),
    ("report . .", "A and B must have runs of the same experiment; got no runs and no runs", ""),
    ("audit", "the following arguments are required: FILE", ""),
    ("audit nothing.csv", "there is no file nothing.csv.", ""),
    ("audit . --label half", "FILE must be a file; . is a folder.", ""),
    ("audit . --out out", "FILE must be a file; . is a folder.", ""),
    ("audit /", "FILE must be a file; / is a folder.", ""),
    ("audit other-names.npz", "FILE must hold the features under the name X (or", "feats and lab."),
    (
        "audit two.npz",
        "FILE must hold the features under one of the names",
        "arrays X, data and y.",
    ),
    ("audit notes.txt", "FILE must end in .npz", ""),
    ("audit points.npz --label colour", "colour", ""),
    ("audit points.npz --points 0", "points must be a whole number of at least 1; got 0", ""),
    ("audit points.npz --seed -1", "seed must be a whole number from 0 to 4294967295", "got -1"),
    ("audit points.npz --seed 1e30", "seed must be a whole number from 0 to 4294967295", "got 1"),
    ("audit one-class.npz", "y must have at least two classes; got one", ""),
    ("audit gaps.csv", "1 value is missing in gaps.csv (row 3, column 'x1')", "--drop x1"),
    ("audit gaps.csv --drop x3", "drop must be one of x1, x2, y; got 'x3'", ""),
    ("audit gaps.csv --id z", "id must be one of x1, x2, y; got 'z'", ""),
    ("audit points.npz --drop X", "drop must name columns of a csv or parquet file", ""),
    ("audit points.npz --budget 0", "budget must be a whole number of at least 1; got 0", ""),
    ("certify model.npz", "the following arguments are required: DATA", ""),
    ("certify nothing.npz points.npz", "nothing.npz", ""),
    ("certify model.npz nothing.npz", "there is no file nothing.npz.", ""),
    ("certify model.npz .", "DATA must be a file; . is a folder.", ""),
    ("certify model.npz /", "DATA must be a file; / is a folder.", ""),
    ("certify points.npz points.npz", "points.npz", ""),
    ("certify model.npz points.npz --norm lnf", "choice: 'lnf'", "(did you mean 'linf'?)"),
    ("certify model.npz points.npz --bounds 0", "expected 2 arguments", ""),
    ("certify model.npz wide.npz", "DATA must have the 2 coordinates that MODEL takes", ""),
    ("certify model.npz points.npz --time-limit 0", "time_limit must be above 0; got 0", ""),
    ("data", "the following arguments are required: ACTION", ""),
    ("data fetch", "invalid choice: 'fetch'", ""),
    ("data get mnst", "got 'mnst'", "(did you mean 'mnist'?)"),
    ("sweep", "the following arguments are required: WHAT", ""),
    ("sweep averaging", "vary must be given", ""),
    ("sweep averging --vary width=1", "got 'averging'", "(did you mean 'averaging'?)"),
    ("sweep averaging --vary widht=1", "got 'widht'", "(did you mean 'width'?)"),
    ("sweep averaging --vary width", "vary must be NAME=VALUE", ""),
    ("sweep status nowhere", "DIR must be the folder of a sweep; got 'nowhere', whose", ""),
    ("play --port 99999999", "port", ""),
    ("play --port many", "invalid int value: 'many'", ""),
    ("play --all", "--all and more links need --save", ""),
    ("play --link ?clusters=4 --link ?clusters=6", "more links need --save", ""),
    ("play --link", "expected one argument", ""),
    ("play --link ?clusters=99", "clusters must be from 2 to 30; got 99", ""),
    ("play --link ?colour=red", "the playground has no setting 'colour'", ""),
    ("play --link ?preset=nonsense", "nonsense", ""),
    ("play --link ?optimiser=newton", "optimiser must be one of 'gd', 'sgd'", "got 'newton'"),
    ("play --link ?grouping=1,4|2", "groups of all 5 positive and all 5 negative", "got '1,4|2'"),
    ("play --link ?objective=radius&loss=hinge", "so loss must be 'entropy'; got 'hinge'", ""),
    ("play --link ?loss=square&fine_share=0.5", "other losses have no value for a side", ""),
    ("play --link ?adversarial=0.5&steps=1e9", "at most 2000 single steps", ""),
    ("play --save", "expected one argument", ""),
    ("play --save .", "the lesson must be a file; '.' is a folder", ""),
    ("play --save nowhere/lesson.html --link ?dim=5", "dim must be from 10 to 1e+12; got 5", ""),
    ("play --save a.html --link ?fine_share=2", "fine_share must be from 0 to 1; got 2", ""),
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with files that are right, and some that are not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "gaps.csv").write_text("x1,x2,y\n1,2,a\n,3,b\n4,5,a\n6,7,b\n")
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    np.savez(tmp_path / "points.npz", X=x, y=y)
    np.savez(tmp_path / "other-names.npz", feats=x, lab=y)
    np.savez(tmp_path / "two.npz", X=x, data=x, y=y)
    np.savez(tmp_path / "wide.npz", X=np.ones((4, 3)), y=y[:4])
    np.savez(tmp_path / "one-class.npz", X=x, y=np.zeros(20, dtype=int))
    np.savez(tmp_path / "model.npz", W=np.eye(2), b=np.zeros(2), A=np.eye(2), c=np.zeros(2))
    return sorted(tmp_path.rglob("*"))


def test_there_are_forty_at_least_and_every_command_has_some():
    assert len(WRONG) >= 40
    commands = {typed.split()[0] for typed, *_ in WRONG}
    known = {"list", "run", "theory", "reproduce", "report", "audit", "certify", "data", "sweep"}
    assert known | {"play"} <= commands


@pytest.mark.parametrize(("typed", "sentence", "hint"), WRONG, ids=[typed for typed, *_ in WRONG])
def test_wrong_input_is_one_sentence_and_exit_code_2(
    capsys, tmp_path, files, typed, sentence, hint
):
    code, printed, error = command(capsys, *typed.split())
    assert code == 2
    assert printed == ""
    assert sentence in error
    assert hint in error
    assert error.startswith("featavg: ")
    assert error.endswith(".\n")
    assert error.count("\n") == 1
    assert sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts) == files


def test_whole_numbers_may_have_an_exponent(capsys, tmp_path):
    small = ["--dim", "3e2", "--samples", "1.5e2", "--test-samples", "50", "--seeds", "1e0"]
    code, out, _ = command(capsys, "run", "figure2-synthetic", *small, "--out", str(tmp_path))
    assert code == 0
    (folder,) = (tmp_path / "figure2-synthetic").iterdir()
    assert '"dim": 300' in (folder / "parameters.json").read_text()
    assert "The numbers are only reported" in out
    assert "were changed: dim, samples, test_samples." in " ".join(out.split())
    assert "NO" not in out

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from featavg.apps.cli.main import main
from featavg.auditing.files import read
from support import ROOT

SAMPLE = ROOT / "examples" / "digits.csv"


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_command_leaves_json_a_page_and_tables_of_points(
    tmp_path, few_points, audited_by_three, capsys
):
    file = tmp_path / "<points>.npz"
    names = np.array([f"p{i}" for i in range(120)])
    np.savez(file, X=few_points.x, y=few_points.y, name=names)
    assert main(["audit", str(file), "--id", "name", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    folder = tmp_path / "<points>-audit"
    assert json.loads((folder / "audit.json").read_text()) == printed
    assert printed["ratio"] == pytest.approx(audited_by_three.ratio)
    assert printed["direct"]["accuracy"] == audited_by_three.direct.accuracy
    text = (folder / "audit.html").read_text()
    assert "&lt;points&gt;" in text
    assert "<points>" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert audited_by_three.verdict.split(".")[0] in text
    assert shlex.split(printed["command"]) == [
        "featavg",
        "audit",
        str(file),
        "--id=name",
        "--seed=0",
    ]
    points = rows_of(folder / "points.csv")
    expected = audited_by_three.weakest(names.tolist())[1]
    assert [list(row.values()) for row in points] == [
        [str(value) for value in row] for row in expected
    ]
    assert {row["kind_direct"] for row in points} <= {"exact", "lower bound"}
    suggested = rows_of(folder / "label-next.csv")
    assert [row["id"] for row in suggested] == names[audited_by_three.suggested.index].tolist()
    assert [row["order"] for row in suggested] == [str(i + 1) for i in range(len(suggested))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nope.npz"], "there is no file nope.npz."), (["x.doc"], "must end in"), ([], "required")],
)
def test_bad_commands(arguments, message, capsys):
    try:
        code = main(["audit", *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_filled_in_list_of_points_to_label_is_left_alone(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(at, 0.1, (20, 2)) for at in ((0, 0), (0, 4), (4, 0), (4, 4))])
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(y=np.repeat(["u", "v"], 40))
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ["audit", str(tmp_path / "p.csv"), "--points=5"]
    assert main(command) == 0
    listed = tmp_path / "p-audit" / "label-next.csv"
    assert main(command) == 0  # as it was written, it is written again
    filled_in = listed.read_text().rstrip("\n") + " mine\n"
    listed.write_text(filled_in)
    capsys.readouterr()
    assert main(command) == 2
    assert "label-next.csv in it would be overwritten and has changed" in capsys.readouterr().err
    assert listed.read_text() == filled_in
    (tmp_path / "p-audit" / "audit.json").unlink()
    assert main(command) == 2


@pytest.mark.slow
def test_a_table_of_few_distinct_rows(tmp_path, capsys):
    """Three answers of yes or no, of which "yes" is rare."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame((rng.random((300, 3)) < 0.1).astype(int), columns=["a", "b", "c"])
    frame.assign(y=rng.integers(0, 2, 300)).to_csv(tmp_path / "p.csv", index=False)
    assert main(["audit", str(tmp_path / "p.csv"), "--points=5", "--json"]) == 0
    printed, error = capsys.readouterr()
    assert "clusters" not in error
    most = len(frame[["a", "b", "c"]].drop_duplicates())
    assert max(json.loads(printed)["subclasses"].values()) <= most


@pytest.mark.slow
def test_the_command_says_what_it_left_out_and_can_be_repeated(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)) * [1, 1000], columns=["a", "b"])
    frame.assign(y=np.where(frame.b > 0, "u", "v"), note="seen").to_csv(tmp_path / "p.csv")
    flags = ["--drop=note", "--points=5"]
    assert main(["audit", str(tmp_path / "p.csv"), *flags]) == 0
    printed = capsys.readouterr().out
    written = (tmp_path / "p-audit" / "audit.json").read_bytes()
    hints = json.loads(written)["hints"]
    assert len(hints) == 2
    text = (tmp_path / "p-audit" / "audit.html").read_text()
    for words in ("only numbers the rows and is left out", "have very different scales"):
        assert words in " ".join(printed.split())
        assert words in text
        assert any(words in hint for hint in hints)
    assert rows_of(tmp_path / "p-audit" / "points.csv")[0].keys() >= {"row", "class", "subclass"}
    again = shlex.split(json.loads(written)["command"])[1:]
    assert main([*again, "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "audit.json").read_bytes() == written
    assert main([*again, "--standardize"]) == 0
    assert json.loads((tmp_path / "p-audit" / "audit.json").read_text())["hints"] == hints[:1]


def test_the_sample_is_what_scikit_learn_has():
    table = read(SAMPLE, label="half", subclass="digit", id="image")
    digits = load_digits()
    np.testing.assert_array_equal(table.x, digits.data[:400])
    np.testing.assert_array_equal(table.subclass.astype(int), digits.target[:400])
    assert ((table.y == "low") == (digits.target[:400] < 5)).all()
    assert SAMPLE.stat().st_size < 100_000


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("points.csv", "points.csv in it would be overwritten and is read; got 'own'."),
        ("label-next.csv", "label-next.csv in it would be overwritten and was not written by this"),
        ("audit.json", "audit.json in it would be overwritten and was not written by this command"),
        ("audit.html", "audit.html in it would be overwritten and was not written by this command"),
    ],
)
def test_files_that_an_audit_did_not_write_are_left_alone(
    name, reason, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    pd.DataFrame({"a": np.arange(40.0) ** 2, "y": ["u", "v"] * 20}).to_csv(own / name, index=False)
    before = (own / name).read_bytes()
    file = "own/points.csv"
    if name != "points.csv":
        file = "data.csv"
        (tmp_path / file).write_bytes(before)
    assert main(["audit", file, "--out", "own"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"featavg: out must be another folder, because {reason}")
    assert err.count("\n") == 1
    assert [path.name for path in own.iterdir()] == [name]
    assert (own / name).read_bytes() == before

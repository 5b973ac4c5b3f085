from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from featavg.apps.cli.main import main


@pytest.mark.slow
def test_the_command_writes_json_and_a_page(tmp_path, six_clusters, audited, capsys):
    np.savez(tmp_path / "<points>.npz", X=six_clusters.x, y=six_clusters.y)
    assert main(["audit", str(tmp_path / "<points>.npz"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    folder = tmp_path / "<points>-audit"
    assert json.loads((folder / "audit.json").read_text()) == printed
    assert printed["ratio"] == pytest.approx(audited.ratio)
    text = (folder / "audit.html").read_text()
    assert "&lt;points&gt;" in text
    assert "<points>" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert audited.verdict.split(".")[0] in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nope.npz"], "FILE must be a file"), (["x.doc"], "must end in"), ([], "required")],
)
def test_bad_commands(arguments, message, capsys):
    try:
        code = main(["audit", *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_the_command_says_what_it_left_out(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)) * [1, 1000], columns=["a", "b"])
    frame.assign(y=["u", "v"] * 20).to_csv(tmp_path / "p.csv")
    assert main(["audit", str(tmp_path / "p.csv"), "--points", "5"]) == 0
    printed = capsys.readouterr().out
    hints = json.loads((tmp_path / "p-audit" / "audit.json").read_text())["hints"]
    assert len(hints) == 2
    text = (tmp_path / "p-audit" / "audit.html").read_text()
    for words in ("only numbers the rows and is left out", "have very different scales"):
        assert words in " ".join(printed.split())
        assert words in text
        assert any(words in hint for hint in hints)

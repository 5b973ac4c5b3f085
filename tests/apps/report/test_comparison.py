from __future__ import annotations

import pytest

from featavg import InputError
from featavg.apps.cli.main import main
from featavg.apps.report.comparison import Compared, pairs, write_comparison
from featavg.apps.report.saved import Row, find_runs, read_run
from support.report_runs import Page, expectation, run_folder

CLAIM = {"section": "s", "statement": "it is so", "bound": "", "reading": "", "measured": 1}
CLAIM |= {"limit": 2, "slack": 0.5, "violations": 0, "seeds": 1, "note": ""}


def claims(**verdicts):
    rows = [CLAIM | {"id": name, "verdict": verdict} for name, verdict in verdicts.items()]
    return [{"kind": "claims", "title": "Claims", "note": "", "claims": rows}]


def test_two_runs_are_shown_side_by_side_with_what_differs(tmp_path, capsys):
    one = run_folder(
        tmp_path / "a",
        parameters={"dim": 7, "width": 2},
        summary={"expectations": [expectation(), expectation(statement="only in A")]},
        views=claims(x="holds", y="holds"),
    )
    other = run_folder(
        tmp_path / "b",
        parameters={"dim": 9, "width": 2},
        summary={"expectations": [expectation(mean=0.5, std=0.01, holds=False)]},
        provenance={"versions": {"python": "3.11", "featavg": "0.2.0", "source": "0123456789ab"}},
        views=claims(x="holds", y="violated"),
    )
    out = tmp_path / "c.html"
    assert main(["report", str(one), str(other), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out} (1 pair of runs, 0.0 MB)\n"
    text = " ".join(Page(out).text.split())
    assert "Parameters that differ A B dim 7 9 Versions" in text
    assert "featavg 0.1.0 0.2.0" in text
    assert "2-class: averaging index 1 0.985 ± 0.009 0.500 ± 0.010 -0.485" in text
    assert "only in A 1 0.985 ± 0.009 – –" in text
    assert "y it is so holds violated" in text
    assert "x it is so" not in text


def test_runs_are_paired_by_parameters_and_then_in_order(tmp_path):
    for dim in (1, 2, 3):
        run_folder(tmp_path / "a", parameters={"dim": dim})
    for dim in (3, 4):
        run_folder(tmp_path / "b", parameters={"dim": dim})
    run_folder(tmp_path / "b", "figure1")
    sides = [find_runs(tmp_path / name)[0] for name in "ab"]
    found = list(pairs(*sides))
    dims = [tuple(run.summary.parameters["dim"] for run in pair.runs) for pair in found]
    assert dims[0] == (3, 3)
    assert dims[1][0] in (1, 2)
    assert dims[1][1] == 4
    assert len(dims) == 2
    text = write_comparison(tmp_path / "a", tmp_path / "b", tmp_path / "c.html").path.read_text()
    assert text.count("not compared: figure") == 2
    assert "not compared: figure1/" in text


def row(mean, std):
    return Row("s", "", "reported", mean, std, True)


@pytest.mark.parametrize(
    ("one", "other", "seeds", "difference", "clear"),
    [
        (row(1.0, 0.2), row(1.3, 0.2), (4, 4), 0.3, True),  # the standard error is 0.141
        (row(1.0, 0.2), row(1.25, 0.2), (4, 4), 0.25, False),
        (row(1.0, None), row(9.0, None), (1, 1), 8.0, False),
        (row(1.0, 0.2), row(None, None), (4, 4), None, False),
        (row(1.0, 0.2), None, (4, 4), None, False),
    ],
)
def test_a_difference_is_clear_from_two_standard_errors_on(one, other, seeds, difference, clear):
    compared = Compared("s", "", one, other, seeds)
    assert compared.difference == pytest.approx(difference)
    assert compared.is_clear == clear


def test_what_cannot_be_compared(tmp_path, capsys):
    one, other = run_folder(tmp_path / "a"), run_folder(tmp_path / "b", "figure1")
    with pytest.raises(InputError, match="same experiment; got figure2-synthetic and figure1"):
        write_comparison(one, other)
    (other / "summary.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be read: .*experiment"):
        read_run(other)
    assert main(["report", str(one), str(tmp_path / "nothing")]) == 2
    assert "DIR must be a folder of runs" in capsys.readouterr().err
    with pytest.raises(InputError, match="out must be a file"):
        write_comparison(one, one, tmp_path)


def test_texts_of_runs_are_only_text(tmp_path):
    hostile = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>"
    one, other = (
        run_folder(
            tmp_path / name,
            parameters={"dim": hostile + name},
            summary={"conclusion": hostile, "expectations": [expectation(statement=hostile)]},
            provenance={"versions": {hostile: name}},
            views=claims(**{hostile: verdict}),
        )
        for name, verdict in (("a", "holds"), ("b", "violated"))
    )
    shown = Page(write_comparison(one, other, tmp_path / "c.html").path)
    assert [s.get("type") for s in shown.all("script")] == ["application/json", None]
    assert shown.all("img") == []
    assert shown.text.count(hostile) > 5

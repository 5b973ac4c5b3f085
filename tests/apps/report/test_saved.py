"""Run folders that are damaged, unfinished or hostile: named on the page, and nothing else."""

from __future__ import annotations

import json
import os
import re

import pytest

from featavg.apps.cli.main import main
from featavg.apps.report.page import write_report
from featavg.apps.report.saved import find_runs
from featavg.manifest import write_manifest
from support.damage import flip
from support.report_runs import Page, run_folder, svg


def truncate(folder):
    path = folder / "summary.json"
    path.write_bytes(path.read_bytes()[:-20])


def not_a_number(folder):
    (folder / "provenance.json").write_text('{"versions": {}, "seconds": NaN}')


def nested(folder):
    (folder / "summary.json").write_text("[" * 100_000 + "]" * 100_000)


def unfinished(folder):
    (folder / "summary.json").unlink()


def other_parameters(folder):
    path = folder / "parameters.json"
    path.write_text(path.read_text().replace("7", "8"))


def large(folder):
    (folder / "summary.json").write_text('"' + "x" * 1_000_001 + '"')


def pipe(folder):
    (folder / "summary.json").unlink()
    os.mkfifo(folder / "summary.json")


def link_out(folder):
    secret = folder.parent.parent.parent / "secret.json"
    secret.write_text((folder / "provenance.json").read_text().replace("3.11", "SECRET"))
    (folder / "provenance.json").unlink()
    (folder / "provenance.json").symlink_to(secret)


def linked_folder(folder):
    outside = folder.parent.parent.parent / "outside"
    folder.rename(outside)
    folder.symlink_to(outside)


def linked_experiment(folder):
    outside = folder.parent.parent.parent / "outside"
    folder.parent.rename(outside)
    folder.parent.symlink_to(outside)


def renamed(folder):
    folder.rename(folder.with_name("0123456789ab"))


def wrong_type(folder):
    path = folder / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"expectations": [["holds"]]}))


def huge_number(folder):
    path = folder / "summary.json"
    text = path.read_text().replace("0.9852", "1" + "0" * 400)
    path.write_text(text)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, "summary.json is not valid JSON"),
        (not_a_number, "provenance.json is not valid JSON"),
        (nested, "summary.json is not valid JSON"),
        (unfinished, "not finished"),
        (other_parameters, "does not belong to its parameters"),
        (large, "summary.json is larger than 1 MB"),
        (pipe, "summary.json is missing"),
        (link_out, "provenance.json must be a file and is a link"),
        (linked_folder, "a link, which is not followed"),
        (linked_experiment, "a link, which is not followed"),
        (renamed, "does not belong to its parameters"),
        (wrong_type, "must hold an object"),
        (huge_number, "mean must be a number"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_damaged_run_is_named_and_the_others_are_shown(damage, reason, tmp_path, capsys):
    good = run_folder(tmp_path / "runs", "figure1")
    damage(run_folder(tmp_path / "runs"))
    runs, unreadable = find_runs(tmp_path / "runs")
    assert [run.folder for run in runs] == [good]
    assert len(unreadable) == 1
    assert unreadable[0].name.startswith("figure2-synthetic")
    assert reason in unreadable[0].reason
    assert main(["report", str(tmp_path / "runs")]) == 0
    shown = Page(tmp_path / "runs" / "report.html").text
    assert unreadable[0].reason in shown
    assert "SECRET" not in shown
    assert reason in capsys.readouterr().err


def test_folders_that_are_no_runs_are_left_alone(tmp_path):
    good = run_folder(tmp_path)
    (tmp_path / "my-sweep" / "parts").mkdir(parents=True)
    (tmp_path / ".hidden" / "0123456789ab").mkdir(parents=True)
    (tmp_path / "summary.json").write_text("[]")
    runs, unreadable = find_runs(tmp_path)
    assert [run.folder for run in runs] == [good]
    assert unreadable == []


def test_a_missing_seed_and_other_versions_of_a_seed_are_said(tmp_path):
    folder = run_folder(tmp_path)
    (folder / "seeds" / "0.json").unlink()
    (folder / "seeds" / "1.json").write_text('{"seconds": 1, "versions": {"numpy": "1.99"}}')
    text = " ".join(Page(write_report(tmp_path).path).text.split())
    assert "seed 0 0.json is missing" in text
    assert "other versions: numpy 1.99" in text


def test_what_has_another_checksum_than_in_the_manifest_is_named_and_not_shown(tmp_path, capsys):
    folder = run_folder(tmp_path, views=[])
    (folder / "figure.svg").write_text(svg())
    (folder / "results.csv").write_text("a\n1\n")
    write_manifest(folder, re.compile(r".*"), ["seeds"])
    whole = Page(write_report(tmp_path).path)
    assert whole.all("img")
    assert "manifest.json" not in whole.text
    for name in ("figure.svg", "results.csv", "seeds/1.json", "views.json"):
        flip(folder / name, 0)
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    page = Page(tmp_path / "report.html")
    for name in ("figure.svg", "results.csv", "seeds/1.json", "views.json"):
        assert f"{name} does not have its checksum." in page.text
        assert f"{folder / name} is damaged and not shown." in said
    assert not page.all("img")
    assert "results.csv" not in str(page.all("a"))
    flip(folder / "provenance.json", 0)
    assert main(["report", str(tmp_path)]) == 0
    assert "is not shown: provenance.json does not have its checksum." in capsys.readouterr().err


def test_a_run_without_a_manifest_says_so(tmp_path):
    run_folder(tmp_path)
    assert "There is no manifest.json" in Page(write_report(tmp_path).path).text

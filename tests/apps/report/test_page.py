from __future__ import annotations

import json
import shlex
from dataclasses import fields, replace

import numpy as np
import pytest

from featavg import InputError
from featavg.apps.cli.main import build_parser, main
from featavg.apps.report import page as page_module
from featavg.apps.report.images import smallest_image
from featavg.apps.report.page import write_report
from featavg.apps.report.rerun import command
from featavg.apps.report.saved import find_runs
from featavg.experiments import REGISTRY
from featavg.plot.read_views import parsed
from featavg.plot.views import Curves, HeatMaps, Line, Matrix, Panel, plain
from support.report_runs import Page, expectation, run_folder

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"'&{{ 7 * 7 }}"
CURVE = [{"kind": "curves", "title": "t", "x": "x", "x_scale": "linear", "start": None, "note": ""}]


def svg(extra: str = "") -> str:
    return f'<svg width="72pt" height="36pt" xmlns="http://www.w3.org/2000/svg">{extra}</svg>'


def png(size: int) -> bytes:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (20).to_bytes(4) + (10).to_bytes(4)
    return header.ljust(size, b"\x00")


def test_page_says_what_was_measured_with_what_and_how_to_do_it_again(tmp_path):
    folder = run_folder(tmp_path, provenance={"seconds": 83})
    (folder / "results.csv").write_text("seed\n0\n")
    written = write_report(tmp_path)
    shown = Page(written.path)
    text = " ".join(shown.text.split())
    for piece in (
        "2-class: averaging index 1 0.985 ± 0.009 ≥ 0.9 yes",
        "1 min 23 s",
        "1 of 1 expectations hold",
        "dim",
        "0123456789ab",
        "seed 1 0.8 s",
        "No command of this version repeats it",  # it has one parameter of fourteen
    ):
        assert piece in text, piece
    links = [a["href"] for a in shown.all("a")]
    assert f"figure2-synthetic/{folder.name}/results.csv" in links
    assert written.path == tmp_path / "report.html"
    assert written.size == written.path.stat().st_size


def test_links_start_from_where_the_page_is(tmp_path):
    folder = run_folder(tmp_path / "my runs")
    written = write_report(tmp_path / "my runs", tmp_path / "elsewhere" / "page.html")
    links = [a["href"] for a in Page(written.path).all("a")]
    assert f"../my%20runs/figure2-synthetic/{folder.name}/summary.json" in links


def test_what_does_not_hold_is_counted_and_marked(tmp_path):
    rows = [expectation(), expectation(holds=False), expectation(rule="reported", holds=True)]
    run_folder(tmp_path, summary={"expectations": rows})
    shown = Page(write_report(tmp_path).path)
    assert "1 of 2" in shown.text
    assert "not everything holds" in shown.text
    kinds = [row.get("class") for row in shown.all("tr")]
    assert kinds.count("violated") == 2  # in the table of results, and beside the figure


def test_every_text_of_a_run_is_only_text(tmp_path):
    line = {"label": HOSTILE, "x": [0, 1], "mean": [1, 0], "std": None}
    panel = {"title": HOSTILE, "y": HOSTILE, "marks": [], "y_scale": "linear"}
    panel["lines"] = [line | {"role": "coarse", "dash": "solid"}]
    claim = dict.fromkeys(("id", "section", "statement", "bound", "reading", "note"), HOSTILE)
    claim |= {"verdict": "violated", "measured": 1, "limit": 2, "slack": 0.5}
    claim |= {"violations": 1, "seeds": 2}
    run_folder(
        tmp_path,
        parameters={"dim": HOSTILE, HOSTILE: 1},
        summary={
            "conclusion": HOSTILE,
            "expectations": [expectation(statement=HOSTILE, paper=HOSTILE, rule=HOSTILE)],
        },
        provenance={"versions": {HOSTILE: HOSTILE}},
        views=[
            CURVE[0] | {"title": HOSTILE, "x": HOSTILE, "panels": [panel]},
            {"kind": "claims", "title": HOSTILE, "note": HOSTILE, "claims": [claim]},
        ],
    )
    strange = tmp_path / "<img src=x onerror=alert(3)>" / "a"
    strange.mkdir(parents=True)
    (strange / "parameters.json").touch()
    shown = Page(write_report(tmp_path).path)
    assert [s.get("type") for s in shown.all("script")] == ["application/json", None]
    assert shown.all("img") == []
    assert not [a for _, attributes in shown.elements for a in attributes if a.startswith("on")]
    assert all("style" not in attributes for _, attributes in shown.elements)
    assert all(":" not in a["href"] for a in shown.all("a"))
    assert shown.text.count(HOSTILE) > 15
    assert "49" not in shown.text.split("Results")[1].split("featavg")[0]
    assert "<img src=x onerror=alert(3)>/a" in shown.text


def test_policy_allows_our_style_our_script_and_nothing_from_the_network(tmp_path):
    run_folder(tmp_path)
    shown = Page(write_report(tmp_path).path)
    (policy,) = [m["content"] for m in shown.all("meta") if "http-equiv" in m]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "*" not in policy


@pytest.mark.parametrize(
    "views",
    [
        {"kind": "curves"},
        [{"kind": "<b>"}],
        [CURVE[0] | {"panels": "none"}],
        [CURVE[0] | {"panels": [{}] * 17}],
        [
            {
                "kind": "heat-maps",
                "frames": ["a"],
                "panels": [{"title": "", "mean": [[[1], [1, 2]]]}],
            }
        ],
        [{"kind": "heat-maps", "frames": ["a"], "panels": [{"title": "", "mean": [[]]}]}],
        [{"kind": "claims", "title": "", "note": "", "claims": [{"id": 3}]}],
    ],
)
def test_views_that_cannot_be_shown_do_not_hide_the_run(views, tmp_path):
    run_folder(tmp_path, views=views)
    shown = Page(write_report(tmp_path).path).text
    assert "views.json cannot be shown" in shown
    assert "0.985 ± 0.009" in shown


def test_views_survive_being_saved(rng):
    x = np.arange(4.0)
    curve = Line.over_seeds("a", x, rng.random((3, 4)), "fine", "dashed")
    gap = Line.over_seeds("b", [x, x + 1], [[1, np.inf, np.nan, 2.0]] * 2, "third")
    assert gap.mean == [1, None, None, 2]
    assert gap.x == [0.5, 1.5, 2.5, 3.5]
    views = [
        Curves("c", "x", [Panel("p", "y", [curve, gap])]),
        HeatMaps(
            "h",
            "r",
            "c",
            "v",
            [Matrix.over_seeds("m", rng.random((3, 2, 4, 5)))],
            low=-1,
            frame="f",
            frames=["1", "2"],
        ),
        HeatMaps("h", "r", "c", "v", [Matrix.over_seeds("m", rng.random((3, 1, 4, 5)))]),
    ]
    assert plain(parsed(json.loads(json.dumps(plain(views))))) == json.loads(
        json.dumps(plain(views))
    )


def test_the_smaller_figure_is_inside_the_page_and_a_link_is_not_followed(tmp_path):
    folder = run_folder(tmp_path)
    (folder / "figure.svg").write_text(svg("x" * 500))
    (folder / "figure.png").write_bytes(png(400))
    assert smallest_image(folder).source.startswith("data:image/png;base64,")
    (folder / "figure.png").write_bytes(png(900))
    image = smallest_image(folder)
    assert image.source.startswith("data:image/svg+xml;base64,")
    assert (image.width, image.height) == (72, 36)
    (folder / "figure.svg").rename(tmp_path / "outside.svg")
    (folder / "figure.svg").symlink_to(tmp_path / "outside.svg")
    assert smallest_image(folder).source.startswith("data:image/png")
    shown = Page(write_report(tmp_path).path)
    assert not any("figure.svg" in a["href"] for a in shown.all("a"))
    assert len(shown.all("img")) == 1


@pytest.mark.parametrize(
    "content",
    [
        svg().replace("<svg", "<!DOCTYPE s [<!ENTITY a 'b'>]><svg").encode(),
        svg().replace("72pt", "9e9pt").encode(),
        svg().replace("72pt", "999999pt").encode(),
        b"<html><script>alert(1)</script></html>",
        b"",
    ],
)
def test_what_is_no_figure_of_ours_is_not_shown(content, tmp_path):
    folder = run_folder(tmp_path)
    (folder / "figure.svg").write_bytes(content)
    (folder / "figure.png").write_bytes(b"GIF89a")
    assert smallest_image(folder) is None


def test_figures_that_would_make_the_page_too_large_are_linked_to(tmp_path, monkeypatch):
    for dim in (1, 2, 3):
        folder = run_folder(tmp_path, parameters={"dim": dim})
        (folder / "figure.svg").write_text(svg("x" * 60_000))
    usual = write_report(tmp_path).size
    monkeypatch.setattr(page_module, "LARGEST_PAGE", usual - 10_000)
    written = write_report(tmp_path)
    shown = Page(written.path)
    assert written.size <= usual - 10_000
    assert len(shown.all("img")) == 2
    assert "not in the page because of its size" in shown.text
    monkeypatch.setattr(page_module, "LARGEST_PAGE", 10_000)
    with pytest.raises(InputError, match="a report must be smaller than"):
        write_report(tmp_path)
    assert written.path.stat().st_size == written.size  # the old page is still there, whole


def test_a_run_of_an_older_revision_is_said_to_be_one(tmp_path):
    experiment = REGISTRY["figure3-synthetic"]
    parameters = experiment.describe(experiment.parameters)["parameters"]
    run_folder(tmp_path, experiment.id, parameters=parameters)
    assert experiment.revision == 2
    assert "made by revision 1 of the experiment" in Page(write_report(tmp_path).path).text


def test_a_folder_without_runs_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert main(["report", str(tmp_path / "none")]) == 2
    run_folder(tmp_path / "runs")
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in lines] == [
        "featavg: DIR must hold runs, as 'featavg run' leaves them",
        "featavg: DIR must be a folder of runs",
        "featavg: out must be a file, not a folder",
    ]
    assert list(tmp_path.glob("*.html")) == []


def changed(value):
    """Another value of the same kind that every experiment accepts, or the same."""
    return value + 1 if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize("name", REGISTRY)
def test_the_command_repeats_the_run(name, tmp_path):
    experiment = REGISTRY[name]
    own = experiment.parameters
    for field in fields(own):
        try:
            own = replace(own, **{field.name: changed(getattr(own, field.name))})
        except InputError:
            continue
    for parameters in (experiment.parameters, experiment.quick, own):
        described = json.loads(json.dumps(experiment.describe(parameters)))
        root = tmp_path / experiment.key(parameters)
        folder = run_folder(root, name, parameters=described["parameters"])
        assert (folder.name == experiment.key(parameters)) == (experiment.revision == 1)
        ((run,), _) = find_runs(root)
        options = build_parser().parse_args(shlex.split(command(run))[1:])
        start = experiment.quick if options.quick else experiment.parameters
        given = {
            f.name: getattr(options, f.name) for f in fields(start) if hasattr(options, f.name)
        }
        assert experiment.key(replace(start, **given)) == experiment.key(parameters)
        usual = experiment.quick_seeds if options.quick else experiment.seeds
        assert (options.seeds or usual) == 2


@pytest.mark.parametrize("value", ["a\nb", "\x1b[2J", None, True, [1]])
def test_no_command_is_made_of_values_that_no_flag_takes(value, tmp_path):
    experiment = REGISTRY["figure5"]
    parameters = experiment.describe(experiment.parameters)["parameters"]
    run_folder(tmp_path, "figure5", parameters=parameters | {"values": value})
    runs, unreadable = find_runs(tmp_path)
    assert [command(run) for run in runs] == ([] if unreadable else [None])


def test_reproduce_ends_with_a_report(tmp_path, monkeypatch, capsys):
    alone = {n: replace(e, in_reproduce=n == "figure1") for n, e in REGISTRY.items()}
    monkeypatch.setattr("featavg.apps.cli.main.REGISTRY", alone)
    assert main(["reproduce", "--quick", "--seeds", "1", "--out", str(tmp_path)]) == 0
    assert f"report: {tmp_path / 'report.html'}" in capsys.readouterr().out
    assert "Averaging leaves a short way out" in Page(tmp_path / "report.html").text


def test_runs_of_one_experiment_are_told_apart(tmp_path):
    for number in (7, 8):
        run_folder(tmp_path, parameters={"dim": number, "width": 2, "samples": 3, "clusters": 4})
    text = write_report(tmp_path).path.read_text(encoding="utf-8")
    contents = text[: text.index("<main>")]
    for number in (7, 8):
        assert f"(dim = {number}, width = 2, samples = 3, …)" in contents

from __future__ import annotations

from dataclasses import asdict

import pytest

from featavg import InputError
from featavg.apps.report import page as page_module
from featavg.apps.report.captions import CAPTIONS
from featavg.apps.report.page import write_report
from featavg.experiments import EXPERIMENTS
from featavg.theory import OURS
from support.report_runs import Page, expectation, run_folder, svg

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"'&{{ 7 * 7 }}"
CURVE = [{"kind": "curves", "title": "t", "x": "x", "x_scale": "linear", "start": None, "note": ""}]


def test_page_says_what_was_measured_with_what_and_how_to_do_it_again(tmp_path):
    folder = run_folder(tmp_path, provenance={"seconds": 83})
    (folder / "results.csv").write_text("seed\n0\n")
    written = write_report(tmp_path)
    shown = Page(written.path)
    text = " ".join(shown.text.split())
    for piece in (
        "2-class: averaging index 1 0.985 ± 0.009 ≥ 0.9 yes",
        "1 min 23 s",
        "1 of 1 checks hold",
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
    assert "not all checks hold" in shown.text
    kinds = [row.get("class") for row in shown.all("tr")]
    assert kinds.count("violated") == 1  # there is one table


CLAIM = {"section": "s", "statement": "it is so", "bound": "", "reading": "", "measured": 1}
CLAIM |= {"limit": 2, "slack": 0.5, "violations": 1, "seeds": 1, "note": ""}


def ledger_run(root, **parameters):
    """Write a run of four statements of the paper, of which one is violated, and one of ours."""
    verdicts = {"lemma-1": "holds", "lemma-2": "violated", "lemma-3": "holds"}
    verdicts |= {"lemma-4": "not stated at this scale", next(iter(OURS)): "violated"}
    claims = [CLAIM | {"id": name, "verdict": verdict} for name, verdict in verdicts.items()]
    view = {"kind": "claims", "title": "The claims", "note": "", "claims": claims}
    return run_folder(root, "ledger", views=[view], parameters={"dim": 7} | parameters)


def test_what_holds_comes_first_and_violations_are_named(tmp_path):
    contested = expectation(statement="η = 0.01: index, against the paper", rule="reported")
    rows = [expectation(), expectation(statement="this fails", holds=False), contested]
    run_folder(tmp_path, summary={"expectations": rows})
    ledger_run(tmp_path)
    text = " ".join(Page(write_report(tmp_path).path).text.split())
    before_figures = text[: text.index("Figures of the paper")]
    first, second, third = (
        before_figures.index(words)
        for words in ("2 of 3 checks hold", "2 of 4 statements of the paper", "1 disagreement with")
    )
    assert first < second < third
    assert "this fails: 0.985 ± 0.009, asked for ≥ 0.9" in before_figures[first:second]
    assert "1 is violated lemma-2 it is so" in before_figures[second:third]
    assert "and 1 say nothing at this scale" in before_figures[second:third]
    assert next(iter(OURS)) not in before_figures
    assert "η = 0.01: index: ours 0.985 ± 0.009, the paper “1”" in before_figures[third:]


def test_without_disagreements_the_page_says_so(tmp_path):
    run_folder(tmp_path)
    assert "No disagreement with the experiments of the paper in these runs" in " ".join(
        Page(write_report(tmp_path).path).text.split()
    )


def test_every_experiment_has_a_sentence_on_what_to_see():
    """A new experiment needs one in featavg/apps/report/captions.py."""
    assert set(CAPTIONS) == set(EXPERIMENTS)
    for sentence in CAPTIONS.values():
        assert sentence.endswith(".")
        assert ". " not in sentence
        assert 50 < len(sentence) < 230


def test_what_to_see_is_said_of_default_and_quick_parameters_alone(tmp_path):
    experiment = EXPERIMENTS["figure2-synthetic"]
    usual = asdict(experiment.parameters)
    settings = {
        "own": (usual | {"weight_scale": 1e-3}, 0),
        "paper": (usual, 1),
        "quick": (asdict(experiment.quick), 1),
    }
    for name, (parameters, times) in settings.items():
        run_folder(tmp_path / name, parameters=parameters)
        shown = Page(write_report(tmp_path / name).path)
        assert shown.text.count(CAPTIONS[experiment.id]) == times, name


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
            {
                "kind": "dots",
                **dict.fromkeys(("title", "note"), HOSTILE),
                "rows": [HOSTILE],
                "groups": [HOSTILE],
                "panels": [
                    {
                        **dict.fromkeys(("title", "x"), HOSTILE),
                        "series": [{"label": HOSTILE, "mean": [1]}],
                        "marks": [{"label": HOSTILE, "at": 1}],
                    }
                ],
            },
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
    assert "49" not in shown.text.split("Figures of the paper")[1].split("featavg")[0]
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
        [{"kind": "dots", "title": "", "rows": [], "panels": []}],
    ],
)
def test_views_that_cannot_be_shown_do_not_hide_the_run(views, tmp_path):
    run_folder(tmp_path, views=views)
    shown = Page(write_report(tmp_path).path).text
    assert "views.json cannot be shown" in shown
    assert "0.985 ± 0.009" in shown


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


def test_a_run_of_other_code_is_marked(tmp_path):
    experiment = EXPERIMENTS["figure3-synthetic"]
    parameters = experiment.describe(experiment.parameters)["parameters"]
    run_folder(tmp_path / "old", experiment.id, parameters=parameters)
    assert "Its code has changed" in Page(write_report(tmp_path / "old").path).text
    same = {"versions": {"source": experiment.source}}
    run_folder(tmp_path / "new", experiment.id, parameters=parameters, provenance=same)
    assert "Its code has changed" not in Page(write_report(tmp_path / "new").path).text


def test_runs_of_one_experiment_are_told_apart(tmp_path):
    for number in (7, 8):
        run_folder(tmp_path, parameters={"dim": number, "width": 2, "samples": 3, "clusters": 4})
    text = write_report(tmp_path).path.read_text(encoding="utf-8")
    contents = text[: text.index("<main>")]
    for number in (7, 8):
        assert f"(dim = {number}, width = 2, samples = 3, …)" in contents

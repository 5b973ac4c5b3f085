"""The report in a real browser: headless Chromium, from a file, without a network."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

from featavg.apps.report.comparison import write_comparison
from featavg.apps.report.page import write_report
from featavg.drawing.views import DotPanel, Dots, DotSeries, Mark, plain
from featavg.experiments import EXPERIMENTS, run
from featavg.experiments.ledger import entries
from featavg.theory import LEDGER
from support import ARTEFACTS
from support.report_runs import run_folder

SCREENSHOTS = ARTEFACTS / "report"
SCREENS = {"desktop": (1440, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Small runs of the paper's data, by the id of their experiment."""
    out = tmp_path_factory.mktemp("runs")
    small = {"samples": 200, "test_samples": 20}
    chosen = {
        "figure2-synthetic": (replace(EXPERIMENTS["figure2-synthetic"].parameters, **small), 2),
        "figure3-synthetic": (replace(EXPERIMENTS["figure3-synthetic"].parameters, **small), 2),
        "ledger": (EXPERIMENTS["ledger"].quick, 1),
    }
    return {
        name: run(EXPERIMENTS[name], parameters, seeds=seeds, out=out)
        for name, (parameters, seeds) in chosen.items()
    }


RADII = np.array([[17.4, 15.2, 38.0], [17.6, 15.4, 39.0]])
DOTS = Dots(
    "Dots of some learners",
    ["gradient descent", "<b>Adam</b> with a name that no telephone has room for", "fine labels"],
    [
        DotPanel(
            "Radius",
            "radius (L2)",
            [
                DotSeries.over_seeds("ours", RADII),
                DotSeries("theory", [17.5, None, 39.2], None, "paper", "bar"),
            ],
            [Mark("half", 17.5)],
        ),
        DotPanel("", "steps", [DotSeries("ours", [10, 1000, 100])], scale="log"),
    ],
    ["coarse", "coarse", "fine"],
    "Some note.",
)


@pytest.fixture(scope="module")
def address(runs):
    root = runs["ledger"].folder.parent.parent
    run_folder(root, "dots", views=plain([DOTS]))
    return write_report(root).path.as_uri()


@pytest.fixture
def opened(browser, address):
    """Open the page on a screen; afterwards, nothing may have gone wrong or left the machine."""
    contexts, wrong = [], []

    def on(screen="desktop", **options):
        width, height = SCREENS[screen]
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((address, "data:")) else wrong.append(request.url)
            ),
        )
        page.goto(address)
        return page

    yield on
    for context in contexts:
        context.close()
    assert wrong == []


def article(page, name):
    return page.locator(f"article[id^='{name}-']")


def drag_to(page, slider, share):
    """Drag the thumb of a slider from where it is to a share of its length."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    ends = {name: float(slider.get_attribute(name)) for name in ("min", "max")}
    now = (float(slider.input_value()) - ends["min"]) / (ends["max"] - ends["min"])
    thumb = 8  # half of it, which the track leaves free at both ends
    place = [box["x"] + thumb + s * (box["width"] - 2 * thumb) for s in (now, share)]
    page.mouse.move(place[0], middle)
    page.mouse.down()
    page.mouse.move(place[1], middle, steps=5)
    page.mouse.up()


def test_dragging_the_radius_reads_off_the_numbers_of_the_table(opened, runs):
    page = opened()
    figure = article(page, "figure3-synthetic")
    with (runs["figure3-synthetic"].folder / "results.csv").open(encoding="utf-8") as file:
        saved = list(csv.DictReader(file))
    seen = set()
    for share in (0.1, 0.35, 0.7, 1.0):
        drag_to(page, figure.locator("input[type=range]"), share)
        radius = float(figure.locator(".slider output").inner_text())
        seen.add(radius)
        rows = figure.locator(".readouts").first.locator("tr").all()
        shown = {row.locator("th").inner_text(): row.locator("td").inner_text() for row in rows}
        assert len(shown) == 10  # eight of ours, two of the paper's
        for label, text in shown.items():
            classes, method = label.split("-class, ")
            values = [
                float(row["robust_accuracy"])
                for row in saved
                if row["classes"] == classes
                and row["method"] == method
                and float(row["radius"]) == radius
            ]
            if method == "the paper's PGD":
                assert re.fullmatch(r"[01]\.\d{3}", text), text
            else:
                assert text == f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}", label
    assert len(seen) == 4
    assert max(seen) == 58


def test_the_papers_point_at_a_radius_is_the_papers(opened):
    page = opened()
    figure = article(page, "figure3-synthetic")
    figure.locator("input[type=range]").fill("8")  # the ninth radius, 16
    row = figure.locator(".readouts tr", has_text="2-class, the paper's PGD")
    assert figure.locator(".slider output").inner_text() == "16"
    assert row.locator("td").inner_text() == "0.315"


def test_dragging_the_picture_moves_the_slider_and_so_do_keys(opened):
    page = opened()
    figure = article(page, "figure3-synthetic")
    curve = figure.locator("svg.curve").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    radii = []
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    for x in (200, 400):
        page.mouse.move(box["x"] + x, box["y"] + 100)
        radii.append(float(figure.locator(".slider output").inner_text()))
    page.mouse.up()
    figure.locator("input[type=range]").press("ArrowRight")
    radii.append(float(figure.locator(".slider output").inner_text()))
    assert radii[0] < radii[1]
    assert radii[2] == radii[1] + 2


def test_pointing_at_a_cell_shows_the_entry_of_the_matrix(opened, runs):
    page = opened()
    figure = article(page, "figure2-synthetic")
    results = runs["figure2-synthetic"].results
    for panel, name in enumerate(("coarse_cosines", "fine_cosines")):
        for row, column in ((2, 3), (7, 7)):
            map_ = figure.locator(".heat-map").nth(panel)
            map_.locator(f"rect[data-row='{row}'][data-column='{column}']").hover()
            values = results[name][:, row, column]
            expected = f"{values.mean():.3f} ± {values.std(ddof=1):.3f}".replace("-0.000", "0.000")
            assert map_.locator("output").inner_text() == (
                f"centre {row + 1}, weight {column + 1}: cosine {expected}"
            )


def test_arrow_keys_walk_over_the_matrix(opened):
    page = opened()
    map_ = article(page, "figure2-synthetic").locator(".heat-map").first
    map_.locator("svg").focus()
    for key in ("ArrowUp", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert map_.locator("output").inner_text().startswith("centre 3, weight 2:")


def test_scrubbing_through_training_shows_the_matrix_of_that_step(opened, runs):
    page = opened()
    figure = article(page, "figure2-synthetic")
    results = runs["figure2-synthetic"].results
    figure.locator("input[type=range]").press("Home")
    assert figure.locator(".slider output").inner_text() == "0"
    text = figure.locator(".heat-map output").nth(1).inner_text()
    assert f"{results['fine_cosines_over_time'][:, 0, 0, 0].mean():.3f}" in text
    assert abs(float(text.split("cosine ")[1].split(" ")[0])) < 0.1  # nothing learned yet


def readings(figure):
    rows = figure.locator(".readouts tr").all()
    return {row.locator("th").inner_text(): row.locator("td").inner_text() for row in rows}


def test_pointing_at_a_row_reads_its_dots_off(opened):
    figure = article(opened(), "dots")
    figure.locator("rect[data-row='1']").hover()
    assert figure.locator(".readouts caption").inner_text() == DOTS.rows[1]
    assert readings(figure) == {"Radius, ours": "15.3 ± 0.1", "steps, ours": "1000"}
    figure.locator(".dots svg").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"):
        figure.page.keyboard.press(key)
    assert readings(figure) == {
        "Radius, ours": "17.5 ± 0.1",
        "Radius, theory": "17.5",
        "steps, ours": "10.0",
    }
    assert figure.locator(".stripe.chosen").get_attribute("data-row") == "0"


def test_dots_stand_where_the_axes_say(opened):
    figure = article(opened(), "dots")
    x = [float(dot.get_attribute("cx")) for dot in figure.locator(".dots circle").all()]
    mark = figure.locator(".dots .mark").get_attribute("d")
    assert x[0] == pytest.approx(float(re.match(r"M([\d.]+)", mark)[1]))  # a mean of 17.5
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx((15.3 - 17.5) / (38.5 - 17.5))
    assert x[5] - x[3] == pytest.approx((x[4] - x[3]) / 2)  # log scale: 10, 1000, 100
    y = [dot.bounding_box()["y"] for dot in figure.locator(".dots circle").all()]
    assert y[0] == y[3] < y[1] == y[4] < y[2] == y[5]
    assert figure.locator(".dots .heading").all_text_contents() == ["coarse", "fine"]


def test_on_a_phone_panels_of_dots_are_below_each_other(opened):
    figure = article(opened("phone"), "dots")
    assert figure.locator(".dots svg").count() == 2
    names = figure.locator(".dots .name").all_text_contents()
    assert names[3].startswith("<b>Adam</b>")
    assert names[3].endswith("…")
    for row in (1, 2):
        figure.locator(f".dots svg >> nth=1 >> rect[data-row='{row}']").hover()
        assert figure.locator(".readouts caption").inner_text() == DOTS.rows[row]


def top(locator):
    """Return how far from the top of the page something begins."""
    return locator.bounding_box()["y"] + locator.page.evaluate("scrollY")


def test_what_holds_is_said_first_in_this_order(opened, runs):
    page = opened()
    said = page.locator(".statements > li")
    texts = [" ".join(text.split()) for text in said.all_inner_texts()]
    kinds = ("checks hold", "statements of the paper hold", "disagreement")
    assert [next(kind for kind in kinds if kind in text) for text in texts] == list(kinds)
    assert top(said.last) < top(page.locator("article").first)
    ours = sum(entry.verdict == "holds" for entry in entries(runs["ledger"].results))
    assert texts[1].startswith(f"{ours} of {len(LEDGER)} ")
    violated = page.locator(".statements .paper details li")
    assert not violated.first.is_visible()
    page.locator(".statements .paper summary").click()
    assert violated.first.is_visible()
    assert violated.count() == (runs["ledger"].results["verdict"][0] == 0).sum()


def test_figures_of_known_parameters_have_a_sentence_and_every_table_is_there_once(opened):
    page = opened()
    sentence = article(page, "ledger").locator(".see")  # with the quick parameters
    assert sentence.inner_text().endswith(".")
    assert top(sentence) < top(article(page, "ledger").locator("svg, table").first)
    for name in ("figure2-synthetic", "figure3-synthetic"):  # with others
        assert article(page, name).locator(".see").count() == 0
    tables = page.locator("table.results")
    assert tables.count() == page.locator("article").count() == 4
    statements = page.locator("table.results tbody th[scope=row]").all_inner_texts()
    assert statements.count("10-class: clean accuracy") == 1


def test_the_navigation_is_short_and_leads_to_every_experiment(opened):
    page = opened("phone")
    nav = page.locator("nav")
    assert nav.bounding_box()["height"] < 120
    nav.get_by_text("All experiments").click()
    nav.get_by_role("link", name="ledger").click()
    assert abs(article(page, "ledger").bounding_box()["y"]) < 100


def test_on_a_phone_the_first_figure_is_within_two_screens(opened):
    page = opened("phone")
    figure = page.locator("article").first.locator(".view svg").first
    assert top(figure) + figure.bounding_box()["height"] < 2 * SCREENS["phone"][1]


@pytest.mark.parametrize("screen", SCREENS)
def test_two_runs_are_side_by_side_or_below_each_other(browser, runs, screen, tmp_path):
    folder = runs["figure2-synthetic"].folder
    other = write_comparison(folder, folder, tmp_path / "c.html").path
    width, height = SCREENS[screen]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(other.as_uri())
    boxes = [side.bounding_box() for side in page.locator(".sides section").all()]
    beside = boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    below = boxes[0]["x"] == boxes[1]["x"] and boxes[0]["y"] < boxes[1]["y"]
    assert (beside, below) == ((True, False) if screen == "desktop" else (False, True))
    assert page.locator(".sides .heat-map svg").count() == 4
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"comparison-{screen}.png", full_page=True)
    context.close()
    assert wrong == []


def visible_claims(page):
    return page.locator(".claims").first.locator("tbody tr:visible")  # those of the paper


def test_claims_can_be_filtered(opened, runs):
    page = opened()
    verdicts = runs["ledger"].results["verdict"][0]
    ledger = article(page, "ledger").locator(".claims").first
    assert visible_claims(page).count() == len(verdicts)
    ledger.get_by_role("radio", name="violated").check()
    assert visible_claims(page).count() == (verdicts == 0).sum()
    assert set(visible_claims(page).evaluate_all("rows => rows.map(r => r.dataset.verdict)")) == {
        "violated"
    }
    ledger.get_by_role("radio", name="all").check()
    ledger.get_by_label("Section").select_option(index=2)
    sections = set(visible_claims(page).evaluate_all("rows => rows.map(r => r.dataset.section)"))
    assert len(sections) == 1
    ledger.get_by_label("Section").select_option(index=0)
    ledger.get_by_label("Search").fill("LEMMA-5.1")
    assert visible_claims(page).count() >= 1
    assert all("lemma-5.1" in row.inner_text() for row in visible_claims(page).all())
    ledger.get_by_label("Search").fill("no such words")
    assert visible_claims(page).count() == 0
    assert ledger.locator("form output").inner_text() == f"0 of {len(verdicts)} claims"


def test_claims_can_be_sorted(opened):
    page = opened()
    heading = (
        article(page, "ledger").locator(".claims").first.get_by_role("button", name="Room (factor)")
    )
    orders = []
    for _ in range(2):
        heading.press("Enter")
        texts = visible_claims(page).evaluate_all("rows => rows.map(r => r.dataset.slack)")
        orders.append([float(text) for text in texts if text])
    assert orders[0] == sorted(orders[0])
    assert orders[1] == orders[0][::-1]


def test_the_theme_can_be_turned(opened):
    page = opened(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    dark = page.evaluate(ground)
    page.locator("#theme").click()
    assert light != dark
    assert page.evaluate(ground) == light


def test_printing_unfolds_everything(opened):
    page = opened()
    folded = page.locator("details:not([open])").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded > 0
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded
    assert page.pdf(print_background=True).startswith(b"%PDF")


def test_without_scripts_results_claims_and_figures_are_there(opened):
    page = opened(java_script_enabled=False)
    assert page.locator(".claims tbody tr").count() > 100
    assert page.locator("img").count() == 3
    assert page.locator(".results").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_is_wider_than_the_screen(opened, screen, scheme):
    page = opened(screen, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    loaded = page.locator("img").evaluate_all("all => all.map(i => i.complete && i.naturalWidth)")
    assert all(width > 0 for width in loaded)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.reload()
    page.screenshot(path=SCREENSHOTS / f"page-{screen}-{scheme}.png")
    for name in ("figure2-synthetic", "figure3-synthetic", "dots", "ledger"):
        article(page, name).screenshot(path=SCREENSHOTS / f"{name}-{screen}-{scheme}.png")

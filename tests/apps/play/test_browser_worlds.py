"""The worlds beyond the paper in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support import ARTEFACTS
from support.play_page import SMALL, number, wait_measured, what_is_shown

SCREENSHOTS = ARTEFACTS / "playground"


def test_worlds_beyond_the_paper_are_chosen_by_menus(open_page):
    page = open_page(f"?{SMALL}")
    expect(page.locator("#choice-optimiser")).to_be_hidden()
    page.click("#beyond summary")
    page.select_option("#choice-optimiser", label="momentum 0.9")
    page.select_option("#choice-loss", label="square")
    expect(page.locator("#note")).to_contain_text("Your own settings")
    page.click("#train")
    wait_measured(page)
    assert "optimiser=momentum&loss=square" in page.url
    expect(page.locator("#forward")).to_be_disabled()
    again = open_page(page.url[page.url.index("?") :])
    wait_measured(again)
    assert what_is_shown(again) == what_is_shown(page)
    expect(again.locator("#choice-loss")).to_have_value("square")  # and it is unfolded


def test_worlds_that_make_no_sense_are_refused_and_nothing_else_is_trained(open_page):
    page = open_page(f"?{SMALL}")
    page.click("#beyond summary")
    page.select_option("#choice-optimiser", "sam")
    page.select_option("#choice-objective", "radius")
    expect(page.locator("#message")).to_contain_text("so optimiser must be 'gd'; got 'sam'.")
    expect(page.locator("#choice-objective")).to_have_value("loss")
    page.fill("#choice-grouping", "1,4|5")
    page.press("#choice-grouping", "Enter")
    expect(page.locator("#message")).to_contain_text("groups of all 2 positive")
    expect(page.locator("#choice-grouping")).to_have_value("1,4|5")  # to be corrected
    expect(page.locator("#choice-grouping")).to_have_attribute("aria-invalid", "true")
    assert "grouping" not in page.url


DARK_PIXELS_OF_COLUMNS = """
([id, x, reach]) => {
  const canvas = document.getElementById(id), ratio = canvas.width / canvas.clientWidth;
  const wide = Math.round(2 * reach * ratio), left = Math.round((x - reach) * ratio);
  const pixels = canvas.getContext("2d").getImageData(left, 0, wide, canvas.height).data;
  const dark = new Array(wide).fill(0);
  for (let i = 0; i < pixels.length; i += 4) {
    const isDark = pixels[i] + pixels[i + 1] + pixels[i + 2] < 120;
    dark[(i / 4) % wide] += (isDark && pixels[i + 3] > 60) / ratio;
  }
  return dark;
}
"""


def test_the_granularity_law_is_drawn_beside_what_is_measured(open_page):
    page = open_page(f"?{SMALL}&grouping=1,1%7C2&radius=5")
    expect(page.locator("#panel-law")).to_be_visible()
    expect(page.locator("#heading-fine")).to_have_text("3-class labels 1,1|2")
    page.click("#train")
    wait_measured(page)
    law = (900 / 3) ** 0.5  # both kinds of label: 1 cluster against 2, and 2 against 1
    facts = page.inner_text("#law-facts")
    pairs = [(float(m), float(r)) for m, r in re.findall(r"([\d.]+) \(([\d.]+)\)", facts)]
    assert [predicted for _, predicted in pairs] == [17.3] * 3
    assert all(abs(measured / law - 1) < 0.1 for measured, _ in pairs)
    # the step of the law in the robustness curve: a dotted vertical line at its radius
    scale = page.evaluate("import('./state.js').then(({ state }) => state.scale)")
    at = scale["left"] + law / scale["high"] * (scale["right"] - scale["left"])
    dark = page.evaluate(DARK_PIXELS_OF_COLUMNS, ["robust", at, 10])
    assert max(dark[8:13]) > 40 > 4 * max(dark[:6] + dark[15:])
    page.fill("#knob-clusters", "6")
    page.press("#knob-clusters", "Enter")
    expect(page.locator("#panel-law")).to_be_hidden()  # the groups were for other sides


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("law", {}),
        ("law-phone", {"viewport": {"width": 390, "height": 844}}),
        ("law-dark", {"color_scheme": "dark"}),
    ],
)
def test_the_law_fits_any_screen(open_page, name, options):
    page = open_page(f"?{SMALL}&grouping=1,1%7C2", **options)
    page.click("#train")
    wait_measured(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def test_pieces_are_trained_on_the_radius(open_page):
    page = open_page(f"?{SMALL}&objective=radius")
    page.click("#train")
    wait_measured(page)
    assert number(page, "#index-coarse") > 0.9 > 0.3 > number(page, "#index-fine")
    expect(page.locator("#fine-name")).to_have_text("radius-trained")
    expect(page.locator("#lambda-legend")).not_to_contain_text("log ηt")
    expect(page.locator("#intro-text")).to_contain_text("told only its side, the radius-trained")
    page.locator("#heading-fine").hover()
    expect(page.locator("#explanation")).to_contain_text("this network is told only its side.")

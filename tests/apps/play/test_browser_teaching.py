"""What the page of the playground teaches, in a real browser."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from support.play_page import SMALL, number, places_of_colours, wait_measured

WRITTEN = """() => {
window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.written.push(text);
  return write.call(this, text, ...rest);
};
}"""


def test_it_opens_trained_with_one_sentence_on_what_is_seen(open_page):
    page = open_page()
    wait_measured(page)
    assert number(page, "#index-coarse") > 0.9
    assert number(page, "#index-fine") < 0.1
    told = page.inner_text("#intro-text")
    medians = re.search(r"median radius (\S+) and (\S+)", page.inner_text("#robust-facts")).groups()
    assert all(median in told for median in medians)
    assert "take the tour" in told


def test_the_tour_has_four_steps_and_points_at_the_panels(open_page):
    page = open_page(f"?{SMALL}&at=60")
    wait_measured(page)
    page.click("#tour")
    titles = []
    for panels in (["intro"], ["coarse", "fine"], ["slice"], ["robust"]):
        titles.append(page.inner_text("#intro-title"))
        spots = page.eval_on_selector_all(".panel.spot", "(found) => found.map((e) => e.id)")
        assert set(spots) == {"panel-intro", *(f"panel-{name}" for name in panels)}
        if len(titles) < 4:
            page.keyboard.press("Enter")  # "Next" has the focus
    assert titles == [
        "1 of 4: The data",
        "2 of 4: What the neurons learned",
        "3 of 4: How far the nearest turn is",
        "4 of 4: What finer labels change",
    ]
    page.click("#tour-back")
    exact = [
        re.search(r"exact ([\d.]+)", page.inner_text(f"#slice-facts-{n}")).group(1)
        for n in ("coarse", "fine")
    ]
    assert all(radius in page.inner_text("#intro-text") for radius in exact)
    page.keyboard.press("Escape")
    expect(page.locator("#intro-title")).to_have_text("What you see")


def test_the_data_is_drawn_with_the_sides_on_either_side_of_the_diagonal(open_page):
    page = open_page(f"?{SMALL}&at=60")
    wait_measured(page)
    page.click("#tour")
    wait_measured(page)
    size = page.eval_on_selector("#data", "(canvas) => [canvas.width, canvas.height]")
    found = places_of_colours(page, "data", "plus", "minus")
    for sign, (rows, columns) in zip((1, -1), found, strict=True):
        right, up = np.array(columns) - size[0] / 2, size[1] / 2 - np.array(rows)
        assert len(rows) > 20
        assert (sign * (right + up) > 0).all()
        assert min(np.ptp(right), np.ptp(up)) > 50  # two clusters apart from each other


def test_hovering_focusing_or_tapping_a_term_explains_it(open_page):
    page = open_page(f"?{SMALL}")
    note = page.locator("#explanation")
    expect(note).to_be_hidden()
    page.hover("#panel-coarse .score dfn")
    expect(note).to_contain_text("1 if every neuron has the same share")
    page.mouse.move(2, 2)
    expect(note).to_be_hidden()
    page.focus("#panel-margins h2 dfn")
    expect(note).to_contain_text("The margin of a training point")
    page.keyboard.press("Escape")
    expect(note).to_be_hidden()
    phone = open_page(f"?{SMALL}", viewport={"width": 390, "height": 844}, has_touch=True)
    phone.tap("#panel-lambda h2 dfn")
    expect(phone.locator("#explanation")).to_contain_text("how much of each centre")
    box = phone.locator("#explanation").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    phone.tap("#panel-lambda canvas")
    expect(phone.locator("#explanation")).to_be_hidden()


def test_every_term_of_the_page_has_an_explanation(open_page):
    page = open_page(f"?{SMALL}")
    terms = page.locator(".term")
    assert terms.count() > 30  # with the symbols of the settings
    for i in range(terms.count()):
        terms.nth(i).dispatch_event("focusin")
        assert len(page.locator("#explanation").text_content()) > 10


def test_a_sign_of_work_from_the_start_and_captions_that_stay(open_page):
    page = open_page(f"?{SMALL}")
    page.evaluate(WRITTEN)
    captions = page.eval_on_selector_all(".caption", "(all) => all.map((e) => e.textContent)")
    held = []
    page.route("**/run?*", lambda route: held.append(route))  # the server says nothing
    page.click("#train")
    page.wait_for_selector('body[data-state="training"]')
    expect(page.locator("#time")).to_contain_text("drawing points")
    moving = "getComputedStyle(document.querySelector('.bar'), '::after').animationName"
    assert page.evaluate(moving) == "work"
    expect(page.locator("#time")).to_contain_text(re.compile(r"drawing points, \d+ s"))
    assert "training …" in page.evaluate("written")
    assert "press Train" not in page.evaluate("written")
    assert "press Train" not in page.inner_text("#intro-text")
    during = page.eval_on_selector_all(".caption", "(all) => all.map((e) => e.textContent)")
    assert during == captions
    held[0].continue_()
    wait_measured(page)
    assert "press Train" not in page.evaluate("written")
    after = page.eval_on_selector_all(".caption", "(all) => all.map((e) => e.textContent)")
    assert [text.split()[0] for text in after[:2]] == ["cosine", "loss"]


def test_fast_forward_goes_on_from_where_it_is_and_says_what_becomes_of_t(open_page):
    page = open_page(f"?{SMALL}")
    page.click("#train")
    wait_measured(page)
    frames = int(page.get_attribute("#scrub", "max"))
    page.evaluate(
        "window.times = []; new MutationObserver(() => times.push(document.getElementById('time')"
        ".textContent)).observe(document.getElementById('time'), {childList: true})"
    )
    expect(page.locator("#forward")).to_have_text(re.compile("To T = 6000"))
    for steps in ("6000", "600,000"):
        page.click("#forward")
        expect(page.locator("#message")).to_contain_text(f"T is now {steps}, 100 times as many")
        expect(page.locator("#time")).to_contain_text(re.compile(f"t = {steps[0]}.*00 of"))
        wait_measured(page)
        assert int(page.get_attribute("#scrub", "max")) > frames
        frames = int(page.get_attribute("#scrub", "max"))
    shown = [re.match(r"t = ([\d,.]+) of", text) for text in page.evaluate("times")]
    assert all(shown)  # never "to go", as after a reset
    times = [float(found.group(1).replace(",", "")) for found in shown]
    assert times == sorted(times)
    assert times[0] >= 60


def test_fast_forward_before_the_end_leaves_t_as_it_is(open_page):
    page = open_page(f"?{SMALL}")
    page.click("#step")
    wait_measured(page)
    page.click("#forward")
    expect(page.locator("#time")).to_contain_text("t = 60 of 60")
    wait_measured(page)
    expect(page.locator("#message")).to_be_hidden()


def test_after_a_reset_training_is_seen_again(open_page):
    page = open_page(f"?{SMALL}")
    for _ in range(2):
        page.click("#train")
        wait_measured(page)
        assert int(page.get_attribute("#scrub", "max")) > 20
        page.click("#reset")
        expect(page.locator("#index-fine")).to_have_text("–")


def test_a_learning_rate_of_1_is_drawn_on_an_axis_that_can_be_read(open_page):
    page = open_page(f"?{SMALL.replace('0.002', '1')}")
    page.evaluate(WRITTEN)
    page.click("#train")
    wait_measured(page)
    assert {"λ, axis bent like a logarithm", "10", "100", "−10"} <= set(page.evaluate("written"))
    height = page.eval_on_selector("#margins", "(canvas) => canvas.height")
    found = places_of_colours(page, "margins", "coarse", "fine")
    coarse, fine = (np.median(rows) for rows, _ in found)
    assert coarse - fine > 0.15 * height  # the lines of the two medians


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("k=abc", "The playground has no setting 'k' (did you mean 'clusters'?)."),
        ("preset=nonsense", "The playground has no preset 'nonsense'."),
        (
            f"{SMALL}&at=1e99",
            "At must be a whole number from 0 to 60, so the end of training is shown; got '1e99'.",
        ),
        (
            f"{SMALL}&at=-1&radius=far&point=100",
            "At must be a whole number from 0 to 60, so the end of training is shown; got '-1'. "
            "Radius must be a number from 0, so the usual radius is shown; got 'far'. "
            "Point must be a whole number from 0 to 99, so the first point is shown; got '100'.",
        ),
    ],
)
def test_bad_values_in_the_address_get_a_message_that_stays(open_page, query, message):
    page = open_page(f"?{query}")
    expect(page.locator("#message")).to_contain_text(message)
    expect(page.locator("#time")).to_contain_text("t = ")  # what is shown instead
    expect(page.locator("#message")).to_contain_text(message)


def test_a_link_can_name_a_preset(open_page):
    page = open_page("?preset=the theorems")
    expect(page.locator("#knob-dim")).to_have_value("59,049")
    expect(page.locator("#preset option:checked")).to_have_text("The theorems")


def test_scrubbing_back_says_which_time_the_radii_are_of(open_page):
    page = open_page(f"?{SMALL}")
    page.click("#train")
    wait_measured(page)
    expect(page.locator("#late-robust")).to_have_text("")
    page.locator("#scrub").focus()
    page.keyboard.press("Home")
    for panel in ("robust", "slice"):
        late = page.locator(f"#late-{panel}")
        expect(late).to_have_text("At t = 60, where training is now.")
    told = page.inner_text("#intro-text")
    index = page.inner_text("#index-coarse")
    assert f"This is t = 0. The 2-class network has an averaging index of {index}" in told
    assert "median radius" not in told  # it is not known at this time
    page.keyboard.press("End")
    expect(page.locator("#late-robust")).to_have_text("")

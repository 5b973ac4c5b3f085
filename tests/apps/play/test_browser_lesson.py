"""A lesson opened from the disk in a real browser, without a network."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from support import ARTEFACTS
from support.play_page import number, wait_measured

SHORT = "clusters=4&dim=900&samples=120&width=3&learning_rate=0.008&steps=15"


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """A lesson of two settings, of 4 and of 2 clusters."""
    path = tmp_path_factory.mktemp("lesson") / "lesson.html"
    links = [SHORT, SHORT.replace("clusters=4", "clusters=2")]
    more = [part for link in links for part in ("--link", link)]
    command = [sys.executable, "-m", "featavg", "play", "--save", str(path), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"The lesson is in {path} (0.")
    assert path.stat().st_size < 1_000_000
    return path.as_uri()


def test_it_is_there_at_once_and_is_scrubbed_and_dragged(open_page, lesson):
    page = open_page(at=lesson)
    wait_measured(page)
    assert "t = 15 of 15" in page.inner_text("#time")
    assert number(page, "#index-coarse") > 0.9
    assert number(page, "#index-fine") < 0.1
    page.locator("#radius").focus()
    page.keyboard.press("Home")
    assert number(page, "#accuracy-coarse") == 100
    box = page.locator("#robust").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 13, middle, steps=4)
    page.mouse.up()
    assert number(page, "#accuracy-coarse") == number(page, "#accuracy-fine") == 0
    late = page.inner_text("#robust-facts")
    assert "keeps them apart" in page.inner_text("#intro-text")
    expect(page.locator("#late-slice")).to_have_text("")
    page.locator("#scrub").focus()
    page.keyboard.press("Home")
    expect(page.locator("#time")).to_contain_text("t = 0 of 15")
    facts = page.locator("#robust-facts")
    expect(facts).not_to_have_text(late)  # radii are recorded for all times
    expect(facts).to_contain_text("25 fresh points")
    told = page.inner_text("#intro-text")
    assert told.startswith("This is t = 0. ")
    assert f"averaging index of {page.inner_text('#index-fine')}" in told
    medians = re.search(r"median radius (\S+) and (\S+)", facts.inner_text()).groups()
    assert all(f"median radius of {median}" in told for median in medians)
    expect(page.locator("#late-slice")).to_have_text("At t = 15, where training is now.")


def test_it_is_played_paused_and_stepped(open_page, lesson):
    page = open_page(at=lesson)
    wait_measured(page)
    page.click("#reset")
    expect(page.locator("#index-fine")).to_have_text("–")
    page.click("#step")
    wait_measured(page)
    assert "t = 1 of 15" in page.inner_text("#time")
    page.click("#train")
    page.click("#pause")
    wait_measured(page)
    page.click("#train")
    expect(page.locator("#time")).to_contain_text("t = 15 of 15")
    wait_measured(page)
    first = page.inner_text("#slice-facts-coarse")
    page.click("#another")
    wait_measured(page)
    expect(page.locator("#slice-facts-coarse")).not_to_have_text(first)


def test_other_recordings_and_the_tour_are_clicked_through(open_page, lesson):
    page = open_page(at=lesson)
    wait_measured(page)
    assert page.locator("#preset optgroup option").count() == 2
    page.select_option("#preset", index=2)
    expect(page.locator("#knob-clusters")).to_have_value("2")
    wait_measured(page)
    assert "t = 15 of 15" in page.inner_text("#time")
    page.click("#tour")
    assert "come in 2 clusters" in page.inner_text("#intro-text")
    for hidden in ("#forward", "#share", "#slider-clusters"):
        expect(page.locator(hidden)).to_be_hidden()
    expect(page.locator("#knob-clusters")).to_be_disabled()
    for _ in range(3):
        page.click("#tour-next")
    expect(page.locator("#intro-text")).to_contain_text("then choose another preset.")


def test_an_address_that_is_not_recorded_gets_a_message(open_page, lesson):
    page = open_page("?clusters=7", at=lesson)
    expect(page.locator("#message")).to_contain_text("This lesson has no recording of these")
    wait_measured(page)
    assert re.search(r"index of \d|mixes", page.inner_text("#intro-text"))


@pytest.mark.parametrize(("name", "width"), [("desktop", 1440), ("phone", 390)])
def test_screenshots(open_page, lesson, name, width):
    page = open_page(at=lesson, viewport={"width": width, "height": 844})
    wait_measured(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    folder = ARTEFACTS / "playground"
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"lesson-{name}.png", full_page=True)


def test_on_a_phone_the_tour_leaves_its_panels_visible(open_page, lesson):
    viewport = {"width": 390, "height": 844}
    page = open_page(at=lesson, viewport=viewport, reduced_motion="reduce")
    wait_measured(page)
    page.click("#tour")
    for _ in range(3):
        page.click("#tour-next")
        strip = page.locator("#panel-intro").bounding_box()
        for spot in page.locator(".spot:not(#panel-intro)").all():
            box = spot.bounding_box()
            assert 0 <= box["y"] < box["y"] + box["height"] <= strip["y"]

"""The playground in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import re
import signal

import pytest
from playwright.sync_api import expect

from featavg.apps.play.server import create_app
from support import ARTEFACTS
from support.play_page import SMALL, number, places_of_colours, wait_measured, what_is_shown
from support.play_server import playground, served

SCREENSHOTS = ARTEFACTS / "playground"
LONG = "samples=1500&steps=1e20&learning_rate=1e-6"


def test_the_paper_with_coarse_and_with_fine_labels(open_page):
    page = open_page("?clusters=4")
    page.select_option("#preset", label="The paper: Figures 2 and 3")
    expect(page.locator("#knob-clusters")).to_have_value("10")
    for labels in ("coarse", "fine"):
        page.get_by_text(labels, exact=True).click()
        expect(page.locator(f"input[value={labels}]")).to_be_checked()
        page.click("#train")
        wait_measured(page)
        index = number(page, f"#index-{labels}")
        assert index > 0.9 if labels == "coarse" else index < 0.1
        other = {"coarse": "fine", "fine": "coarse"}[labels]
        expect(page.locator(f"#panel-{other}")).to_be_hidden()


def hold_checks(page):
    """Hold back the answers on settings; returns those held, and a function that lets them go."""
    held = []
    is_holding = True

    def hold(route):
        if is_holding:
            held.append(route)
        else:
            route.continue_()

    def release():
        nonlocal is_holding
        is_holding = False
        for route in held:
            route.continue_()

    page.route("**/check?*", hold)
    return held, release


def test_who_trains_before_the_settings_are_answered_trains_those(open_page):
    page = open_page(f"?{SMALL}")
    held, release = hold_checks(page)
    with page.expect_request("**/check?*"):
        page.get_by_text("coarse", exact=True).click()
    page.click("#train")
    page.fill("#knob-samples", "110")
    page.press("#knob-samples", "Enter")
    page.fill("#knob-samples", "100")
    page.press("#knob-samples", "Enter")
    assert len(held) == 1  # the next is asked when this one is answered
    with page.expect_request("**/run?*") as asked:
        release()
    assert {"labels=coarse", "samples=100"} <= set(asked.value.url.split("?")[1].split("&"))
    wait_measured(page)
    assert "labels=coarse" in page.url
    assert "samples=100" in page.url
    expect(page.locator("#panel-fine")).to_be_hidden()


def test_nothing_is_trained_where_the_settings_are_refused(open_page):
    page = open_page(f"?{SMALL}")
    _, release = hold_checks(page)
    runs = []
    page.on("request", lambda r: runs.append(r.url) if "/run?" in r.url else None)
    page.fill("#knob-clusters", "99")
    with page.expect_request("**/check?*"):
        page.press("#knob-clusters", "Enter")
    page.click("#train")
    release()
    expect(page.locator("#message")).to_contain_text("got 99")
    assert page.evaluate("document.body.dataset.state") == "idle"
    assert runs == []
    page.click("#train")  # what was there before is still there
    wait_measured(page)
    assert "clusters=4" in page.url


def test_a_change_while_training_ends_it(open_page):
    page = open_page(f"?{LONG}")
    page.click("#train")
    expect(page.locator("#index-fine")).not_to_have_text("–")
    page.get_by_text("fine", exact=True).click()
    page.wait_for_selector('body[data-state="idle"]')
    expect(page.locator("#train")).to_be_enabled()
    expect(page.locator("#index-fine")).to_have_text("–")


def test_both_side_by_side_and_the_radius_is_dragged(open_page):
    page = open_page()  # trained at once
    wait_measured(page)
    assert number(page, "#index-coarse") > 0.9
    assert number(page, "#index-fine") < 0.1
    assert "t = 100 of 100" in page.inner_text("#time")
    assert number(page, "#accuracy-coarse") < 10  # half way between the two predictions
    assert number(page, "#accuracy-fine") > 90
    box = page.locator("#robust").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.2, middle, steps=5)
    page.mouse.up()
    assert number(page, "#radius-value") < 10
    assert number(page, "#accuracy-coarse") == number(page, "#accuracy-fine") == 100
    page.locator("#radius").focus()
    page.keyboard.press("End")
    assert number(page, "#accuracy-coarse") == number(page, "#accuracy-fine") == 0
    found = re.search(r"median radius (\S+) and (\S+)", page.inner_text("#robust-facts"))
    coarse, fine = map(float, found.groups())
    assert coarse == pytest.approx(17.5, rel=0.05)
    assert fine == pytest.approx(39.2, rel=0.05)


def test_the_two_circles_have_the_ratio_of_the_exact_radii(open_page):
    page = open_page(device_scale_factor=2)
    wait_measured(page)
    drawn, told = {}, {}
    for name in ("coarse", "fine"):
        drawn[name] = circle_in_pixels(page, name)
        facts = page.inner_text(f"#slice-facts-{name}")
        told[name] = float(re.search(r"exact ([\d.]+)", facts).group(1))
    assert told["fine"] > 2 * told["coarse"]
    assert drawn["fine"] / drawn["coarse"] == pytest.approx(told["fine"] / told["coarse"], rel=0.05)


def circle_in_pixels(page, name):
    """Return the radius of the circle in a picture: half the extent of the pixels of its colour.

    The arrow of the exact perturbation has the same colour and ends on the circle.
    """
    (places,) = places_of_colours(page, f"slice-{name}", "third")
    extent = [max(along) - min(along) + 1 for along in places]
    assert extent[0] == pytest.approx(extent[1], rel=0.05)  # all of it is in the picture
    return sum(extent) / 4


def test_a_shared_link_and_a_reload_give_the_same_state(open_page):
    page = open_page(f"?{SMALL}")
    page.click("#train")
    wait_measured(page)
    page.locator("#radius").focus()
    page.keyboard.press("Home")
    for key in ["PageUp"] * 3 + ["ArrowRight"] * 7:
        page.keyboard.press(key)
    page.click("#another")
    expect(page).to_have_url(re.compile("point=1"))
    wait_measured(page)
    link, shown = page.url, what_is_shown(page)
    planes = [page.inner_text(f"#slice-facts-{name}") for name in ("coarse", "fine")]
    assert "at=60" in link
    page.reload()
    wait_measured(page)
    assert what_is_shown(page) == shown
    other = open_page(link[link.index("?") :])
    wait_measured(other)
    assert what_is_shown(other) == shown
    assert [other.inner_text(f"#slice-facts-{name}") for name in ("coarse", "fine")] == planes
    assert other.url == link


def test_step_pause_reset_and_fast_forward(open_page):
    page = open_page(f"?{SMALL}")
    page.click("#step")
    wait_measured(page)
    assert "t = 1 of 60" in page.inner_text("#time")
    page.click("#step")
    expect(page.locator("#time")).to_contain_text("t = 2 of 60")
    wait_measured(page)
    page.click("#reset")
    expect(page.locator("#index-coarse")).to_have_text("–")
    page.click("#train")
    wait_measured(page)
    expect(page.locator("#train")).to_be_disabled()
    page.click("#forward")
    expect(page.locator("#time")).to_contain_text("t = 6000 of 6000")
    wait_measured(page)
    assert "literal=60" in page.url
    assert number(page, "#index-fine") < 0.1


def test_a_long_training_is_paused_and_goes_on(open_page):
    page = open_page(f"?{LONG}")
    page.click("#train")
    expect(page.locator("#index-fine")).not_to_have_text("–")
    expect(page.locator("#scrub")).to_be_enabled()
    page.locator("h1").click()
    page.keyboard.press(" ")  # pauses
    wait_measured(page)
    here = int(re.search(r"at=(\d+)", page.url).group(1))
    assert here < 60
    expect(page.locator("#train")).to_be_enabled()
    page.click("#step")
    expect(page).to_have_url(re.compile(f"at={here + 1}(&|$)"))
    page.locator("#scrub").focus()
    page.keyboard.press("Home")
    expect(page.locator("#time")).to_contain_text("t = 0 of")


def test_what_is_out_of_range_is_refused_with_a_message(open_page):
    page = open_page()
    field = page.locator("#knob-clusters")
    field.fill("99")
    field.press("Enter")
    expect(page.locator("#message")).to_have_text("Clusters must be from 2 to 30; got 99.")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("6")
    field.press("Enter")
    expect(page.locator("#message")).to_be_hidden()
    expect(page.locator("#knob-positive")).to_have_value("3")
    assert "clusters=6" in page.url
    linked = open_page("?dim=3")
    refusal = "Dim must be from 10 to 1e+12; got 3. This is the paper's setting instead."
    expect(linked.locator("#message")).to_have_text(refusal)
    expect(linked.locator("#knob-dim")).to_have_value("3072")


def test_a_playground_that_is_gone_is_told_and_what_was_set_is_kept(browser):
    with playground() as (address, process):
        page = browser.new_page()
        page.goto(f"{address}?{SMALL}")
        page.wait_for_selector("body[data-state]")
        process.send_signal(signal.SIGINT)
        process.wait()
        gone = "The playground does not answer; is it still running?"
        page.get_by_text("fine", exact=True).click()
        expect(page.locator("#message")).to_have_text(gone)
        expect(page.locator("input[value=both]")).to_be_checked()
        with page.expect_event("requestfailed"):
            page.click("#train")
        expect(page.locator("body")).to_have_attribute("data-state", "idle")
        expect(page.locator("#message")).to_have_text(gone)
        expect(page.locator("#message")).to_be_visible()
        page.close()


def test_a_trillion_dimensions_by_slider(open_page):
    page = open_page(f"?{SMALL}")
    page.locator("#slider-dim").focus()
    page.keyboard.press("End")
    expect(page.locator("#knob-dim")).to_have_value("10¹²")
    page.click("#train")
    wait_measured(page)
    assert number(page, "#index-coarse") > 0.9
    assert number(page, "#accuracy-fine") > number(page, "#accuracy-coarse")


def test_it_can_be_used_by_keyboard_alone(open_page):
    page = open_page(f"?{SMALL}")
    page.locator("h1").click()
    page.keyboard.press(" ")
    wait_measured(page)
    assert "averaging index" in page.inner_text("#live")
    page.locator("#heat-coarse").focus()
    page.keyboard.press("ArrowRight")
    assert re.match(r"cos\(μ1, w2\) = 0\.\d+", page.inner_text("#tip"))
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, select, canvas')].filter((e) =>"
        " !e.ariaLabel && !e.labels?.length && !e.textContent.trim()).map((e) => e.id)"
    )
    assert nameless == []


def test_light_and_dark(open_page):
    page = open_page(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("#theme")
    light = page.evaluate(background)
    assert sum(map(int, re.findall(r"\d+", light))) > 600 > sum(map(int, re.findall(r"\d+", dark)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "width", "height"), [("desktop", 1440, 900), ("phone", 390, 844)])
def test_screenshots(open_page, name, width, height, scheme):
    page = open_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    wait_measured(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    file = SCREENSHOTS / f"{name}-{scheme}.png"
    page.screenshot(path=file, full_page=True)
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_page_for_other_machines_needs_the_token_once(browser):
    app = create_app(workers=2, token="the-token")  # noqa: S106
    with served(app) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}?clusters=4")
        expect(page.locator("#message")).to_contain_text("The address lacks the token")
        page.goto(f"{address}?token=the-token&clusters=4&samples=120")
        page.wait_for_selector('body[data-state="idle"]')
        assert page.url == f"{address}?clusters=4&samples=120"  # what is shared lacks the token
        page.click("#train")
        page.wait_for_selector('body[data-state="measured"]')
        with page.expect_response(lambda answer: "leave" in answer.url) as left:
            page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))")
        assert left.value.status == 204
        context.close()

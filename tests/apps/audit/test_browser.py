"""The page of an audit in a real browser: headless Chromium, from a file, without a network."""

from __future__ import annotations

import pytest

from featavg.apps.audit.page import Source, page
from support import ARTEFACTS

SCREENSHOTS = ARTEFACTS / "audit"
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture
def address(audited_by_three, tmp_path):
    ids = [f"ticket-{i:04}" for i in range(120)]
    source = Source("tickets.csv", "featavg audit tickets.csv --id=ticket --seed=0", ids, "id")
    path = tmp_path / "audit.html"
    path.write_text(page(audited_by_three, source, ["A hint."]), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_the_page_fits_the_screen_and_says_what_to_do(browser, address, screen, scheme):
    width, height = SCREENS[screen]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    shown, wrong = context.new_page(), []
    shown.on("console", lambda message: wrong.append(message.text))
    shown.on("request", lambda r: r.url.startswith((address, "data:")) or wrong.append(r.url))
    shown.goto(address)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    loaded = shown.locator("img").evaluate_all("all => all.map(i => i.complete && i.naturalWidth)")
    assert len(loaded) == 2
    assert all(loaded)
    assert shown.locator("figcaption").count() == 2
    assert shown.locator("h2").all_inner_texts()[0] == "Three classifiers"
    suggested = shown.get_by_role("heading", name="What to label next").locator("~ table").first
    assert suggested.locator("tbody tr").count() > 3
    assert suggested.locator("tbody th").first.inner_text().startswith("ticket-")
    assert shown.get_by_text("--id=ticket --seed=0").is_visible()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shown.screenshot(path=SCREENSHOTS / f"audit-{screen}-{scheme}.png", full_page=True)
    context.close()
    assert wrong == []

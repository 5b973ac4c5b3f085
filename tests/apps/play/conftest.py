"""Pages of the playground in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import pytest

from support.play_server import playground


@pytest.fixture(scope="session")
def address():
    """The address of a playground in a process of its own."""
    with playground() as (address, _):
        yield address


@pytest.fixture
def open_page(browser, address):
    """Open pages that must neither complain nor call anybody else."""
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    contexts, complaints, strangers = [], [], []

    def opened(query="", *, at=None, **options):
        options = {"viewport": {"width": 1440, "height": 900}} | options
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        home = at or address
        page.on("request", lambda r: None if r.url.startswith(home) else strangers.append(r.url))
        if at:
            context.set_offline(True)
        page.goto(home + query)
        page.wait_for_selector("body[data-state]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not strangers
    # the browser itself reports refused settings, which is what some tests ask for
    assert [text for text in complaints if "status of 400" not in text] == []

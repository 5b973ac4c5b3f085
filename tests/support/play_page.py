"""What tests read off a page of the playground."""

from __future__ import annotations

SMALL = "clusters=4&dim=900&samples=120&width=3&learning_rate=0.002&steps=60"


def wait_measured(page):
    """Wait until the last numbers have come, and are drawn."""
    page.wait_for_selector('body[data-state="measured"]')
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def number(page, selector):
    return float(page.inner_text(selector).replace("−", "-").rstrip("%\u00a0 "))


def what_is_shown(page):
    shown = ("#index-coarse", "#index-fine", "#time", "#accuracy-coarse", "#accuracy-fine")
    return [page.inner_text(s) for s in (*shown, "#radius-value", "#robust-facts")]

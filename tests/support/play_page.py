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


def places_of_colours(page, canvas, *names):
    """Return rows and columns of the pixels of a canvas in each of some colours of the page."""
    return page.evaluate(
        """([id, names]) => {
          const canvas = document.getElementById(id);
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          const style = getComputedStyle(document.documentElement);
          return names.map((name) => {
            const colour = style.getPropertyValue(`--${name}`).match(/[0-9a-f]{2}/gi);
            const wanted = colour.map((byte) => parseInt(byte, 16));
            const rows = [], columns = [];
            for (let i = 0; i < width * height; i += 1) {
              if (wanted.some((value, c) => Math.abs(data[4 * i + c] - value) > 24)) continue;
              rows.push(Math.floor(i / width));
              columns.push(i % width);
            }
            return [rows, columns];
          });
        }""",
        [canvas, names],
    )

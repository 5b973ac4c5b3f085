"""Time the playground as a visitor sees it: in a browser, and with many visitors at once.

From the click on "Train" to all panels at the paper's setting, how often the heat map is drawn
meanwhile, and how long each of 20 clients waits when all of them train at once.

    python benchmarks/playground.py [--clients 20]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import httpx2
from playwright.sync_api import sync_playwright

# Counts the updates of the heat map that are drawn, and when all panels are there.
WATCH = """() => new Promise((done) => {
  const start = performance.now();
  const drawn = [];
  let last = "";
  const look = () => {
    const now = document.getElementById("time").textContent;
    if (now !== last && now.startsWith("t =")) {
      drawn.push(performance.now() - start);
      last = now;
    }
    if (document.body.dataset.state === "measured") {
      requestAnimationFrame(() => done({ all: performance.now() - start, drawn }));
    } else requestAnimationFrame(look);
  };
  document.getElementById("train").click();
  look();
})"""


def in_browser(address: str, times: int) -> None:
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=next(found), args=arguments)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        waits, rates = [], []
        for _ in range(times):
            page.goto(address)
            page.wait_for_selector('body[data-state="idle"]')
            seen = page.evaluate(WATCH)
            waits.append(seen["all"] / 1000)
            training = (seen["drawn"][-1] - seen["drawn"][0]) / 1000
            rates.append((len(seen["drawn"]) - 1) / training)
        browser.close()
    print(
        f"paper preset, click to all panels: median {statistics.median(waits):.2f} s, "
        f"largest {max(waits):.2f} s of {times} (goal 1.5 s)"
    )
    print(
        f"heat map drawn while training: median {statistics.median(rates):.0f} times a second, "
        f"least {min(rates):.0f} (goal 10)"
    )


async def client(address: str, number: int) -> float:
    start = time.perf_counter()
    last = ""
    async with (
        httpx2.AsyncClient(timeout=120) as session,
        session.stream("GET", f"{address}run?tab={number:016x}&until=100") as answer,
    ):
        async for line in answer.aiter_lines():
            last = line if line.startswith("event: ") else last
    if last != "event: done":
        raise RuntimeError(f"client {number} was left with {last!r}")
    return time.perf_counter() - start


async def at_once(address: str, clients: int) -> None:
    waits = await asyncio.gather(*(client(address, number) for number in range(clients)))
    print(
        f"{clients} clients at once, paper preset: median {statistics.median(waits):.1f} s, "
        f"largest {max(waits):.1f} s (goal 20 s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    command = [sys.executable, "-m", "featavg", "play", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            said = server.stdout.readline() if server.stdout else ""
            found = re.search(r"http://\S+", said)
            if found is None:
                raise RuntimeError(f"the playground said {said!r}")
            asyncio.run(client(found.group(), 10**9))  # its processes are up from now on
            in_browser(found.group(), options.times)
            asyncio.run(at_once(found.group(), options.clients))
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()

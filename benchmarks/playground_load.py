"""Measure the memory of the playground while many pages train at once, and after they are closed.

Every client opens the paper's preset at the same moment and trains to the end, or is told why not.
Then the even ones say that they are closed, as browsers do, and the odd ones only vanish. The
memory is that of the server and its worker processes, where shared pages count once (PSS).

    python benchmarks/playground_load.py [--clients 100]

The start is the smallest memory before the first page: that of the server alone, after its worker
processes have ended for lack of work. The exit code is 1 if memory exceeds the cap by more than
20 %, if a client is left without an answer, or if memory is not back to within 20 % of the start a
minute after the last page closes. Run it with an environment that no other process uses, whose
shared pages would count as theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import httpx2

CAP = 2e9


def memory(server: int) -> float:
    """Return the bytes of a process and its descendants."""
    total, waiting = 0.0, [server]
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        try:
            for thread in (folder / "task").iterdir():  # each has the children that it started
                waiting += map(int, (thread / "children").read_text().split())
            found = re.search(r"^Pss:\s+(\d+)", (folder / "smaps_rollup").read_text(), re.M)
        except OSError:  # it has ended
            continue
        total += 1024 * float(found.group(1)) if found else 0
    return total


async def client(session: httpx2.AsyncClient, number: int, until: int = 100) -> str:
    """Train to the end; return the last event, and why if it was refused."""
    name, reason = "", ""
    try:
        async with session.stream("GET", f"run?tab={number:016x}&until={until}") as answer:
            if answer.status_code != 200:
                return f"status {answer.status_code}"
            async for line in answer.aiter_lines():
                name = line.removeprefix("event: ") if line.startswith("event: ") else name
                reason = line if line.startswith("data: ") and name == "refused" else reason
    except httpx2.HTTPError as error:
        return type(error).__name__
    return f"{name}: {reason}" if reason else name


def at_rest(server: int, seconds: int = 20) -> float:
    """Return the smallest memory of some seconds without a page."""
    seen = []
    for _ in range(seconds):
        time.sleep(1)
        seen.append(memory(server))
    print(f"memory: {seen[3] / 1e6:.0f} MB as it starts, {min(seen) / 1e6:.0f} MB at rest")
    return min(seen)


async def load(address: str, server: int, clients: int, start: float) -> bool:
    """Let all clients train at once; return whether memory stayed within its bounds."""
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=address, timeout=1800, limits=limits) as session:
        await session.get("about.json")
        most = start

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, memory(server))
                await asyncio.sleep(0.2)

        watching = asyncio.create_task(watch())
        began = time.monotonic()
        ends = Counter(await asyncio.gather(*(client(session, n) for n in range(clients))))
        seconds = time.monotonic() - began
        for number in range(0, clients, 2):
            await session.post(f"leave?tab={number:016x}")
    closed = time.monotonic()
    after = memory(server)
    while after > 1.2 * start and time.monotonic() - closed < 60:
        await asyncio.sleep(1)
        after = memory(server)
    waited = time.monotonic() - closed
    watching.cancel()
    answered = ends["done"] + sum(n for end, n in ends.items() if end.startswith("refused: data"))
    print(f"{clients} clients at once, {seconds:.0f} s: {dict(ends)}")
    print(
        f"memory: {start / 1e6:.0f} MB at the start, at most {most / 1e6:.0f} MB "
        f"(cap {CAP / 1e6:.0f} MB), {after / 1e6:.0f} MB {waited:.0f} s after the last page closed"
    )
    return answered == clients and most <= 1.2 * CAP and after <= 1.2 * start


def main() -> int:
    """Start a playground and load it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=100)
    options = parser.parse_args()
    command = [sys.executable, "-m", "featavg", "play", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            found = re.search(r"http://\S+", server.stdout.readline() if server.stdout else "")
            if found is None:
                raise RuntimeError("the playground did not start")
            start = at_rest(server.pid)
            return int(not asyncio.run(load(found.group(), server.pid, options.clients, start)))
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())

"""A playground in a process of its own, and a browser to look at it with."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

TAB = "0123456789abcdef"


@contextmanager
def playground(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `featavg play` on a free port; give its address and the process."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "featavg",
            "play",
            "--port",
            "0",
            "--no-open",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )
    try:
        first = process.stdout.readline()
        found = re.search(r"http://\S+", first)
        assert found, f"it said {first!r} and {process.stderr.read()!r}"
        yield found.group(), process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve an application on a free port of this machine, in a thread; give its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()

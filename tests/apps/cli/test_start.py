"""The command on odd terminals: other encodings, closed streams, and Ctrl-C at any time."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from featavg.apps.cli import start
from featavg.apps.cli.terminal import print_json

PROGRAM = [sys.executable, "-m", "featavg"]


def shell(line, *arguments, **environment):
    """Run a line of shell in which `$@` is `featavg ARGUMENTS`."""
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", *PROGRAM, *map(str, arguments)],
        capture_output=True,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_a_terminal_lacks_are_replaced(encoding):
    done = shell('"$@"', "list", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "figure2-synthetic" in done.stdout.decode(encoding)


def test_json_keeps_all_characters_where_the_terminal_lacks_them(monkeypatch):
    value = {"title": "naïve √d", "median": 1.5}
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    print_json(value)
    sys.stdout.flush()
    assert json.loads(written.getvalue()) == value


@pytest.mark.parametrize(
    ("line", "arguments", "code"),
    [
        ('"$@" >&-', ["list"], 0),
        ('"$@" <&- >&- 2>&-', ["run", "nope"], 2),
        ('"$@" 2>/dev/full', ["run", "nope"], 2),
        ('"$@" >/dev/full', ["list"], 2),
    ],
)
def test_closed_and_full_streams_do_not_change_the_meaning_of_exit_codes(line, arguments, code):
    done = shell(line, *arguments)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_an_interrupt_during_imports_is_one_line(tmp_path):
    interrupting = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit(99)\n"
    (tmp_path / "numpy.py").write_text(interrupting)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = shell('"$@"', "list", PYTHONPATH=path)
    assert done.stderr == b"featavg: interrupted.\n"
    assert done.returncode == 130


def test_an_interrupted_command_ends_without_waiting_for_its_workers(monkeypatch, capsys):
    worker = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    worker.start()
    monkeypatch.setattr("featavg.apps.cli.main.main", lambda: 130)
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as stop:
        start.main()
    assert stop.value.code == 130
    worker.join()
    assert worker.exitcode == -signal.SIGKILL


def test_an_error_of_ours_has_an_exit_code_of_its_own(monkeypatch, capsys):
    """Not 1, which says that an expectation does not hold."""

    def broken():
        raise ZeroDivisionError

    monkeypatch.setattr("featavg.apps.cli.main.main", broken)
    assert start.main() == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_package_itself_imports_nothing_slow():
    code = "import sys, featavg; sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

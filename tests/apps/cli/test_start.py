"""The command on odd terminals: other encodings, closed streams, and Ctrl-C at any time."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.markup import escape
from rich.table import Table

from featavg.apps.cli import start
from featavg.apps.cli.terminal import Terminal, complain, print_json

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


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("line", "arguments", "code"),
    [
        ('"$@" >&-', ["list"], 0),
        ('"$@" <&- >&- 2>&-', ["run", "nope"], 2),
        ('"$@" 2>/dev/full', ["run", "nope"], 2),
        ('"$@" >/dev/full', ["list"], 2),
        ('"$@" >/dev/full', ["--version"], 2),
        ('"$@" >/dev/full', ["run", "figure1", "--help"], 2),
        ('"$@" 2>/dev/full', ["--no-such-flag"], 2),
    ],
)
def test_closed_and_full_streams_do_not_change_the_meaning_of_exit_codes(
    line, arguments, code, unbuffered
):
    done = shell(line, *arguments, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_an_interrupt_during_imports_is_one_line(tmp_path):
    interrupting = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit(99)\n"
    (tmp_path / "numpy.py").write_text(interrupting)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = shell('"$@"', "list", PYTHONPATH=path)
    assert done.stderr == b"featavg: interrupted.\n"
    assert done.returncode == 130


INTERRUPTED_WITH_WORKERS = """
import multiprocessing, os, sys, time
from joblib import Parallel, delayed
from featavg.apps.cli import main, start

def run():
    spawn = multiprocessing.get_context("spawn")
    spawn.Process(target=time.sleep, args=(600,), daemon=True).start()
    Parallel(n_jobs=2)(delayed(os.getpid)() for _ in range(2))
    print(*(child.pid for child in multiprocessing.active_children()))
    return 130

main.main = run
sys.exit(start.main())
"""


INTERRUPTED_AT = """
import os, signal, sys
from featavg.apps.cli import main, start

def interrupted(*_):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()

if sys.argv[1] == "parser":
    main.build_parser = interrupted
else:
    main.main = lambda: 0
    start._drop_what_cannot_be_written = interrupted
sys.argv[1:] = ["list"]
sys.exit(start.main())
"""


@pytest.mark.parametrize("place", ["parser", "streams"])
def test_an_interrupt_before_or_after_a_command_is_no_traceback(place):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, place], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "featavg: interrupted.\n"


def test_an_interrupted_command_ends_without_waiting_for_its_workers():
    """Those of joblib, too. In a process of its own: what is left of this one could not go on."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WITH_WORKERS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    workers = done.stdout.split()
    assert len(workers) >= 3
    while any(map(is_running, workers)):  # until the signals have arrived
        time.sleep(0.01)


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return False
    return state[0] not in "ZX"


def test_an_error_of_ours_has_an_exit_code_of_its_own(monkeypatch, capsys):
    """Not 1, which says that an expectation does not hold."""

    def broken():
        raise ZeroDivisionError

    monkeypatch.setattr(start, "_end_at_interrupts", lambda at_once: None)  # it would stay so
    monkeypatch.setattr("featavg.apps.cli.main.main", broken)
    assert start.main() == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_package_itself_imports_nothing_slow():
    code = "import sys, featavg; sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_control_characters_of_files_do_not_reach_the_terminal(capsys):
    hostile = "a\x1b[31mX\nfeatavg: fine\x9b\u202e"
    escaped = r"a\x1b[31mX\nfeatavg: fine\x9b\u202e"
    complain(f"{hostile} is damaged.")
    assert capsys.readouterr().err == f"featavg: {escaped} is damaged.\n"
    Terminal().print_plain(hostile)
    shown = capsys.readouterr().out
    assert r"a\x1b[31mX" in shown
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    table = Table("class")
    table.add_row(escape("\x1b[31mX"))
    Terminal().print(table)
    assert r"\x1b[31mX" in capsys.readouterr().out

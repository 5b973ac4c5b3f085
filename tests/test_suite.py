"""The tests themselves: they must not depend on how, where or in which order they are run."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

INTERRUPTED = """
import signal, subprocess, sys
import pytest

@pytest.fixture(scope="module")
def child():  # set up before every fixture of a single test
    program = "import time; print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()

def test_a_child_can_be_interrupted(child):
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=10) == -signal.SIGINT

def test_a_library_replaces_the_handler():
    signal.signal(signal.SIGINT, lambda *_: sys.exit())  # as dask_jobqueue does

def test_an_interrupt_is_an_exception():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.slow
def test_interrupts_arrive_also_in_the_background_of_a_shell(tmp_path):
    """A shell without job control ignores Ctrl-C in its background, and children inherit that."""
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_interrupts.py").write_text(INTERRUPTED)
    options = ["-q", "-c", "/dev/null", "--rootdir", tmp_path, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--import-mode=importlib", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join([*sys.path, str(TESTS)])},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_test_relies_on_a_path_outside_its_own_folder_being_absent():
    """The usual name is the home of nobody on Debian, and anybody may have made it."""
    name = "/non" + "existent"
    assert [path for path in TESTS.rglob("*.py") if name in path.read_text("utf-8")] == []

"""SIGKILL inside writes: the same bytes as if nothing had happened, and nothing is left over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import TESTS, killed_in_writes
from support.sweep_faults import ROUNDS

pytestmark = pytest.mark.faults
# What depends on time: that of a seed or a training, and what is named by a hash of it.
TIMES = ("provenance.json", "manifest.json", "net.pt")
FULL = ROUNDS > 2  # 'make test-faults'
WORK = ["run", "sweep"]
if FULL:  # otherwise their own tests are enough
    WORK += [pytest.param(what, marks=pytest.mark.vision) for what in ("train", "attack")]


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files that do not depend on time; of those that do, the names."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.parent.name != "parts":
            timed = path.name in TIMES or (path.parent.name, path.suffix) == ("seeds", ".json")
            files[name] = b"" if timed else path.read_bytes()
    return files


def start(what: str, folder: Path, seed: int) -> list[int]:
    command = [sys.executable, "-m", killed_in_writes.__name__, what, str(folder), str(seed)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=TESTS, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return what the work leaves if nothing happens to it."""
    found = {}

    def of(what: str) -> dict[str, bytes]:
        if what not in found:
            folder = tmp_path_factory.mktemp(what)
            code = f"from support.killed_in_writes import *; WORK[{what!r}](Path({str(folder)!r}))"
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            subprocess.run([sys.executable, "-c", code], cwd=TESTS, env=environment, check=True)
            found[what] = contents(folder)
        return found[what]

    return of


@pytest.mark.parametrize("number", range(ROUNDS if FULL else 1))
@pytest.mark.parametrize("what", WORK)
def test_killed_inside_writes_it_ends_with_the_same_bytes_and_no_leftovers(
    what, number, tmp_path, undisturbed
):
    kills, left = start(what, tmp_path, number)
    assert kills >= 1
    assert left >= 1  # so that there was something to clear
    assert killed_in_writes.left_over(tmp_path) == []
    assert contents(tmp_path) == undisturbed(what)

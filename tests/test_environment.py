"""The files that say which versions of other packages featavg is used and tested with."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from featavg.robustness.exact.nearest import Rows, second_opinion

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["play"]]


def pins(name):
    """Return the versions of a file of constraints."""
    found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.M)
    return {canonicalize_name(package): version for package, version in found}


@pytest.mark.parametrize("line", NEEDED)
def test_the_lowest_versions_are_the_lowest_that_are_allowed(line):
    need = Requirement(line)
    lowest = pins("constraints-lowest.txt")[canonicalize_name(need.name)]
    (bound,) = (part.version for part in need.specifier if part.operator == ">=")
    assert lowest in need.specifier
    assert Version(lowest) == Version(bound)
    assert pins("constraints.txt")[canonicalize_name(need.name)] in need.specifier


def test_the_lock_has_hashes_of_all_that_is_pinned():
    checked = subprocess.run([sys.executable, ROOT / "tools" / "lock.py", "--check"], check=False)
    assert checked.returncode == 0


def test_what_was_not_looked_up_is_not_taken_to_be_free_of_vulnerabilities(tmp_path):
    """As behind a mirror without advisories, where pip-audit itself ends with 0."""
    program = tmp_path / "pip-audit"
    skipped = '{"dependencies": [{"name": "numpy", "skip_reason": "not found"}], "fixes": []}'
    program.write_text(f"#!/bin/sh\necho '{skipped}'\n")
    program.chmod(0o755)
    command = [sys.executable, ROOT / "tools" / "dependencies.py", "--core", "--pip-audit", program]
    for strict, code in (([], 0), (["--strict"], 1)):
        done = subprocess.run([*command, *strict], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout
        assert "Vulnerabilities of 1 packages were NOT checked" in done.stdout


@pytest.mark.parametrize("seed", [6, 175, 2989])
def test_the_second_solver_is_right_about_rows_that_repeat(seed):
    """SciPy 1.13 and 1.14 gave up on the last, and 1.15 was wrong about the first two."""
    rng = np.random.default_rng(seed)
    count, dim = int(rng.integers(1, 60)), int(rng.integers(1, 30))
    A = rng.standard_normal((count, dim))
    if seed % 6 == 1:
        A = A[rng.integers(0, count, count)]
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = rng.standard_normal(len(A)) - 0.3
    answer = second_opinion(Rows.of(A, b), np.inf)
    if answer.point is None:
        assert answer.distance > 1e9  # as much as rounding allows
    else:
        assert (A @ answer.point <= b + 1e-9).all()
        assert np.linalg.norm(answer.point) == pytest.approx(answer.distance, rel=1e-6)

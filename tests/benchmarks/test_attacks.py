from __future__ import annotations

import csv
import importlib
import subprocess
import sys

import numpy as np
import pytest

from support import ROOT

BENCHMARKS = ROOT / "benchmarks"
RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def modules():
    """The modules of the benchmark, which import each other by their bare names."""
    sys.path.insert(0, str(BENCHMARKS))
    names = ("attack_zoo", "attack_suite", "attack_tables", "attacks")
    yield {name: importlib.import_module(name) for name in names}
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def case(modules):
    return modules["attack_zoo"].digits(True, 10, 3, 0)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.long
def test_quick_run_writes_every_file_and_can_draw_them_again(tmp_path):
    command = [sys.executable, BENCHMARKS / "attacks.py", "--quick", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "attacks.csv",
        "attacks-points.csv",
        "attacks.json",
        "attacks-table.txt",
        "attacks.png",
    }
    rows = rows_of(tmp_path / "attacks.csv")
    assert {row["network"] for row in rows} == {
        "digits, 2 classes, 10 hidden",
        "digits, 10 classes, 10 hidden",
    }
    for row in rows:
        assert row["points"] or row["note"]
    gaps = [float(row["median_gap"]) for row in rows if row["points"]]
    assert min(gaps) >= -1e-9
    ddn = [row for row in rows if row["attack"] == "DDN (Foolbox)"]
    assert all(float(row["failed"]) == 0 for row in ddn)
    table = (tmp_path / "attacks-table.txt").read_bytes()
    (tmp_path / "attacks-table.txt").unlink()
    subprocess.run([*command, "--draw"], capture_output=True, check=True)
    assert (tmp_path / "attacks-table.txt").read_bytes() == table


def test_perturbations_count_only_if_they_turn_the_decision(modules, case):
    verified = modules["attack_suite"].verified
    exact = case.points + case.radii.perturbations
    assert verified(case, exact) == pytest.approx(case.radii.upper, rel=1e-4)
    short = case.points + 0.9995 * case.radii.perturbations  # within the push of 0.1 %
    assert verified(case, short) == pytest.approx(case.radii.upper, rel=1e-3)
    assert np.isinf(verified(case, case.points + 0.99 * case.radii.perturbations)).all()
    assert np.isinf(verified(case, np.full_like(case.points, np.nan))).all()


def test_a_fixed_radius_attack_is_bisected_to_its_gap(modules, case):
    def succeeds_above(share):
        def run(case, rows, radii):
            return np.where(radii >= share * case.radii.upper[rows], radii, np.inf)

        return lambda: run

    bisected = modules["attack_suite"].bisected
    norms = bisected(succeeds_above(1.1), case)
    assert ((norms >= 1.1 * case.radii.upper) & (norms <= 1.107 * case.radii.upper)).all()
    assert np.isinf(bisected(succeeds_above(2.1), case)).all()


def test_a_norm_below_the_lower_bound_is_an_error(modules, case):
    attacks = modules["attacks"]
    wrong = attacks.Attack("Magic", lambda case: 0.99 * case.radii.lower, ({},))
    with pytest.raises(RuntimeError, match="Magic refutes exact_radii"):
        attacks.measured(case, wrong, {}, seed=0)


def test_the_table_of_the_documentation_is_that_of_its_results(modules):
    rows, points = (rows_of(RESULTS / name) for name in ("attacks.csv", "attacks-points.csv"))
    table = (RESULTS / "attacks-table.txt").read_text(encoding="utf-8")
    assert modules["attack_tables"].tables(rows, points) == table
    for row in points:
        lower, exact = float(row.pop("lower")), float(row.pop("exact"))
        assert lower == pytest.approx(exact, rel=1e-5)
        found = [float(value) for key, value in row.items() if ", " in key and value]
        assert min(found) >= -1e-6

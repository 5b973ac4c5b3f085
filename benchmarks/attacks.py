"""Measure how far attacks are from the exact L2 radii, over a zoo of networks.

    python benchmarks/attacks.py [--points 50] [--slow-points 10] [--networks digits] [--out DIR]
    python benchmarks/attacks.py --draw     # table and figure of the results that are there

Attacks of Foolbox and ART run with their default budgets and with a few step sizes; the gap of a
point is (norm found / exact radius - 1). Inputs lie in [0, 1] and are not bounded. PGD and APGD
attack balls of a given radius; the smallest radius at which they succeed is found by bisection.
A perturbation counts only if it turns the decision in double precision. One that is smaller than
the lower bound of `exact_radii` would refute it, and ends the benchmark with an error. Carlini and
Wagner's attack of Foolbox is slow: it gets fewer points, and another step size only where it needs
one. Brendel and Bethge's needs Numba and is left out without it. `docs/attacks.md` has the results.

Into DIR, docs/results by default, go attacks.csv (a row for each network, attack and step size),
attacks-points.csv (the gap of each point), attacks.json (versions and commands), attacks-table.txt
(Markdown) and attacks.png.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import platform
import shlex
import sys
import time
import warnings
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import featavg as fa
from attack_suite import ATTACKS, BOUNDS, GOOD_ENOUGH, SLOW, Attack, compile_brendel_bethge
from attack_tables import draw, tables
from attack_zoo import NO_EMBEDDINGS, Array, Case, zoo
from featavg.files import write_atomically

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LIBRARIES = ("featavg", "foolbox", "adversarial-robustness-toolbox", "numba", "torch", "numpy")
COLUMNS = [
    "network",
    "attack",
    "steps",
    "setting",
    "points",
    "failed",
    "not_found",
    "median_gap",
    "gap_90",
    "within_1_percent",
    "cpu_seconds",
    "note",
]
Row = dict[str, Any]


def measured(case: Case, attack: Attack, setting: Row, seed: int) -> tuple[Array, Row] | None:
    """Return the gap of each point, and what the table says; None if the attack is not for it."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  ART draws from it
    begin = time.process_time()
    norms = attack.norms(case, **setting)
    seconds = (time.process_time() - begin) / len(case.points)
    if norms is None:
        return None
    below = norms < case.radii.lower * (1 - 1e-9)
    if below.any():
        i = int(np.flatnonzero(below)[0])
        raise RuntimeError(
            f"{attack.name} refutes exact_radii on '{case.name}', point {i}: it found "
            f"{norms[i]!r}, below the lower bound {case.radii.lower[i]!r}."
        )
    gaps = norms / case.radii.upper - 1
    return gaps, {
        "network": case.name,
        "attack": attack.name,
        "setting": ", ".join(f"{name}={value}" for name, value in setting.items()),
        "points": len(gaps),
        "failed": np.mean(gaps > 1),
        "not_found": np.mean(np.isinf(gaps)),
        "median_gap": np.quantile(gaps, 0.5, method="higher"),
        "gap_90": np.quantile(gaps, 0.9, method="higher"),
        "within_1_percent": np.mean(gaps <= 0.01),
        "cpu_seconds": seconds,
    }


def first(case: Case, points: int) -> Case:
    """Return a case with its first points alone."""
    radii = fa.Radii(
        case.radii.lower[:points],
        case.radii.upper[:points],
        case.radii.perturbations[:points],
        case.radii.norm,
        case.radii.turns[:points],
    )
    return replace(
        case,
        points=case.points[:points],
        labels=case.labels[:points],
        starts=case.starts[:points],
        radii=radii,
    )


def attacked(case: Case, options: argparse.Namespace) -> tuple[list[Row], dict[str, Array]]:
    """Return the rows of a network, and the gaps of its points by each attack."""
    rows: list[Row] = []
    columns: dict[str, Array] = {"lower": case.radii.lower, "exact": case.radii.upper}
    for attack in ATTACKS:
        slow = attack.name in SLOW
        some = first(case, options.slow_points) if slow else case
        settings = attack.settings
        if options.quick:
            settings = ({**attack.settings[0], **attack.quick},)
        results = []
        for setting in settings:
            result = measured(some, attack, setting, options.seed)
            if result is None:
                break
            results.append(result)
            if slow and result[1]["median_gap"] <= GOOD_ENOUGH:
                break
        if not results:
            rows.append({"network": case.name, "attack": attack.name, "note": attack.needs})
            continue
        best = min(results, key=lambda result: float(np.minimum(result[0], 1).mean()))
        kept = (("default", results[0]), ("best", best))
        for steps, (gaps, row) in kept:
            rows.append({**row, "steps": steps})
            padded = np.full(len(case.points), np.nan)
            padded[: len(gaps)] = gaps
            columns[f"{attack.name}, {steps}"] = padded
            if steps == "default":
                print(
                    f"  {attack.name:22} failed {row['failed']:4.0%}, median gap "
                    f"{row['median_gap']:8.2%}, within 1 % {row['within_1_percent']:4.0%}, "
                    f"{row['cpu_seconds']:.3f} s a point",
                    flush=True,
                )
    exact = {"network": case.name, "attack": "featavg.exact_radii", "steps": "default"}
    zeros = {"failed": 0, "not_found": 0, "median_gap": 0, "gap_90": 0, "within_1_percent": 1}
    rows.append({**exact, **zeros, "points": len(case.points), "cpu_seconds": case.seconds})
    return rows, columns


def checked(case: Case) -> Case:
    """Return the case, whose exact perturbations must not come near the bounds of attacks."""
    ends = case.points + case.radii.perturbations
    if ends.min() < BOUNDS[0] + 0.25 or ends.max() > BOUNDS[1] - 0.25:
        raise RuntimeError(
            f"the bounds {BOUNDS} would be in the way of attacks on '{case.name}': exact "
            f"perturbations reach from {ends.min():g} to {ends.max():g}."
        )
    return case


def run(options: argparse.Namespace) -> None:
    """Attack each network, and write what is known after each."""
    rows = read(options.out / "attacks.csv") if options.networks else []
    points = read(options.out / "attacks-points.csv") if options.networks else []
    for name, make in zoo(options.points, options.seed, options.quick):
        if options.networks and not any(part in name for part in options.networks):
            continue
        print(f"{name}: training, and exact radii", flush=True)
        case = make()
        rows = [row for row in rows if row["network"] != name]
        points = [row for row in points if row["network"] != name]
        if case is None:
            print(f"  {NO_EMBEDDINGS}", flush=True)
            rows.append({"network": name, "note": NO_EMBEDDINGS})
        else:
            print(f"  {case.radii}, {case.seconds:.3f} s a point", flush=True)
            if not points:
                compile_brendel_bethge(first(case, 1))
            found, columns = attacked(checked(case), options)
            rows += found
            points += [
                {"network": name, "point": i, **{key: known[i] for key, known in columns.items()}}
                for i in range(len(case.points))
            ]
        write(options.out / "attacks.csv", rows, COLUMNS)
        keys = list(dict.fromkeys(key for row in points for key in row))
        write(options.out / "attacks-points.csv", points, keys)
    note(options)


def note(options: argparse.Namespace) -> None:
    """Write what the results were made with, and by which commands if networks were replaced."""
    path = options.out / "attacks.json"
    commands = [shlex.join(["python", "benchmarks/attacks.py", *sys.argv[1:]])]
    if options.networks and path.exists():
        commands = json.loads(path.read_text(encoding="utf-8"))["commands"] + commands
    about = {
        "commands": commands,
        "seed": options.seed,
        "points": options.points,
        "slow_points": options.slow_points,
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in LIBRARIES},
        "processor_time": "of one thread",
    }
    write_atomically(path, (json.dumps(about, indent=2) + "\n").encode())


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def write(path: Path, rows: list[Row], columns: list[str]) -> None:
    """Write rows as CSV, numbers with six digits; what is missing is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: written(value) for key, value in row.items()})
    write_atomically(path, text.getvalue().encode())


def written(value: Any) -> Any:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    return value


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=50, help="of each network, at most 100")
    parser.add_argument("--slow-points", type=int, default=10, help="for the slow attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--networks", nargs="*", help="replace the results of these alone")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="two small networks, few points")
    parser.add_argument("--draw", action="store_true", help="draw what is there, run nothing")
    options = parser.parse_args()
    if options.quick:
        options.points, options.slow_points = min(options.points, 4), 1
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if not options.draw:
        run(options)
    rows, points = (read(options.out / name) for name in ("attacks.csv", "attacks-points.csv"))
    text = tables(rows, points)
    write_atomically(options.out / "attacks-table.txt", text.encode())
    write_atomically(options.out / "attacks.png", draw(rows, points))
    print(f"\n{text}")


if __name__ == "__main__":
    main()

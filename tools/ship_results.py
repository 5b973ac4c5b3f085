"""Put the numbers of finished runs into docs/results/shipped, for builds that have not run them.

    python tools/ship_results.py RUNS [ID ...]

Only numbers, parameters and versions are copied: no arrays and no pictures. Tables above 300 kB are
left out. A run that is already there with the same parameters is replaced.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from featavg.files import write_atomically

SHIPPED = Path(__file__).parents[1] / "docs" / "results" / "shipped"
FILES = ("parameters.json", "summary.json", "provenance.json", "scalars.csv", "results.csv")
LARGEST = 300_000


def ship(run: Path, to: Path) -> int:
    """Copy the small files of a run; return how many bytes they have."""
    copied = 0
    for name in FILES:
        content = (run / name).read_bytes()
        if len(content) <= LARGEST:
            write_atomically(to / name, content)
            copied += len(content)
    return copied


def main() -> int:
    """Copy what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", type=Path, help="the folder of runs")
    parser.add_argument("ids", nargs="*", metavar="ID", help="which experiments (default: all)")
    options = parser.parse_args()
    finished = sorted(path.parent for path in options.runs.glob("*/*/manifest.json"))
    for run in finished:
        if not options.ids or run.parent.name in options.ids:
            copied = ship(run, SHIPPED / run.parent.name / run.name)
            print(f"{run.parent.name}/{run.name}: {copied / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run the results beyond the paper once more, on seeds that nothing was settled with.

    python benchmarks/other_seeds.py [ID ...] [--first 100] [--seeds 5] [--out runs/other-seeds]

Every expectation is judged as in `featavg run`, and those that fail are listed at the end. Finished
seeds are saved, and the same command continues. All of them take about 20 minutes on two cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from joblib import cpu_count

from featavg.experiments import EXPERIMENTS, Experiment, run


def shifted(
    measure: Callable[[Any, int], Mapping[str, Any]], first: int, parameters: Any, seed: int
) -> Mapping[str, Any]:
    """Measure another seed than the one asked for."""
    return measure(parameters, first + seed)


def on_other_seeds(experiment: Experiment, first: int) -> Experiment:
    """Return the same experiment, with seeds that are numbered from `first`."""
    return replace(experiment, measure=partial(shifted, experiment.measure, first))


def main() -> int:
    """Run everything, print each expectation, and return 1 if one fails."""
    beyond = [name for name, one in EXPERIMENTS.items() if one.series == "beyond"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("ids", nargs="*", default=beyond, metavar="ID", help=", ".join(beyond))
    parser.add_argument("--first", type=int, default=100, help="the number of the first seed")
    parser.add_argument("--seeds", type=int, help="how many (default: as many as usual)")
    parser.add_argument("--out", type=Path, default=Path("runs") / "other-seeds")
    options = parser.parse_args()
    failed = []
    for name in options.ids:
        experiment = on_other_seeds(EXPERIMENTS[name], options.first)
        finished = run(
            experiment, seeds=options.seeds, out=options.out, workers=cpu_count(), progress=True
        )
        lines = [
            f"{name}: {'holds' if outcome.holds else 'FAILS'}: {outcome.summary()}"
            for outcome in finished.outcomes
        ]
        print("\n".join(lines), f"{name}: {finished.seconds:.0f} s of measuring", "", sep="\n")
        failed += [line for line in lines if ": FAILS: " in line]
    print("\n".join(failed) if failed else "Every expectation holds on other seeds too.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

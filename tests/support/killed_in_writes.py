"""Do something in processes that are killed inside their writes, until one of them finishes it.

Arguments: what to do ("run", "sweep", "train" or "attack"), the folder, and the seed of the random
moments. Prints the number of kills, and how many temporary files they left in all.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.die_in_write import MOMENTS, die_in_write

_MOST_STARTS = 100


def run(folder: Path) -> None:
    from featavg.experiments import run
    from support.probe import Probe

    run(Probe().experiment, out=folder)


def sweep(folder: Path) -> None:
    """Sweep without worker processes, which write nothing and take seconds to start."""
    from featavg.lab.sweeps import engine
    from featavg.lab.sweeps.workers import WorkerPool
    from support.sweep_faults import small

    @contextlib.contextmanager
    def pool(*_: object) -> Iterator[WorkerPool]:
        yield WorkerPool(lambda: ThreadPoolExecutor(1), 1, lambda: None)

    engine.worker_pool = pool
    engine._SECONDS_OF_A_BATCH = 1e-9  # a part for each run
    engine.sweep(small(axes={"learning_rate": [1e-3, 1e-2, 1e-1], "width": [1, 2]}), folder)


def train(folder: Path) -> None:
    import torch

    from featavg.vision.training import train
    from support import train_until_killed as small

    torch.set_num_threads(1)
    path = folder / "net.pt"
    train(small.network(), *small.data(), small.RECIPE, seed=3, checkpoint=path, accelerator="cpu")


def attack(folder: Path) -> None:
    import torch

    from support import attack_until_killed as small

    torch.set_num_threads(1)
    small.attack(folder)


WORK: dict[str, Callable[[Path], None]] = {
    "run": run,
    "sweep": sweep,
    "train": train,
    "attack": attack,
}
MODULES = {
    "run": "support.probe",
    "sweep": "support.sweep_faults",
    "train": "support.train_until_killed",
    "attack": "support.attack_until_killed",
}


def finishes(work: Callable[[Path], None], folder: Path, number: int, moment: str) -> bool:
    """Do the work in a process of its own; return whether it was not killed."""
    child = os.fork()
    if child == 0:
        try:
            die_in_write(number, moment)
            work(folder)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -9):
        sys.exit(f"it ended with {code}")
    return code == 0


def left_over(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


def main(what: str, folder: Path, seed: int) -> None:
    __import__(MODULES[what])  # once, and not in each process
    rng = random.Random(seed)  # noqa: S311
    left = 0
    for attempt in range(_MOST_STARTS):
        moment = rng.choice(MOMENTS) if attempt else "inside"
        # later and later, so that it ends
        if finishes(WORK[what], folder, rng.randint(1, 3 + 4 * attempt), moment):
            print(attempt, left)
            return
        left += len(left_over(folder))
    sys.exit("it did not end")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

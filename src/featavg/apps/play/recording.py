"""Trainings that are recorded, for a page that shows them without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from featavg.apps.play.description import described
from featavg.apps.play.settings import TEST_POINTS, Settings
from featavg.apps.play.workers import Pool, RemoteRun, ask_all, ask_for_planes

PLANES = 8
"""The number of fresh points whose planes are recorded, at the end of training."""

_PATIENCE = 3600.0  # seconds that a training may compute: nobody waits for it at a page
_POINTS = 25  # of which radii are recorded on the way; at the end, of all


def record(
    wanted: Sequence[Settings], report: Callable[[], None] = lambda: None
) -> list[dict[str, Any]]:
    """Train with each of the settings; return all that the page can show.

    Paper: none, an extension. `report` is called `steps_to_record` times. The numbers are those
    that the server sends, with exact radii at every recorded time.
    """

    async def all_of_them() -> list[dict[str, Any]]:
        return [await _record_one(pool, settings, report) for settings in wanted]

    pool = Pool(2, seconds_in_all=_PATIENCE)
    try:
        return asyncio.run(all_of_them())
    finally:
        pool.stop()


def steps_to_record(wanted: Sequence[Settings]) -> int:
    """Return how often `record` reports progress."""
    return sum(len(settings.schedule) + 1 for settings in wanted)


async def _record_one(pool: Pool, settings: Settings, report: Callable[[], None]) -> dict[str, Any]:
    runs = pool.runs(settings)
    await asyncio.gather(*(run.open() for run in runs))
    data = await runs[0].ask("data")
    frames = []
    for position in settings.schedule.tolist():
        is_last = position == settings.end
        frames.append(await _frame(runs, position, TEST_POINTS if is_last else _POINTS))
        report()
    planes = [await ask_for_planes(runs, point) for point in range(PLANES)]
    report()
    # not after an interruption: it would wait for the answer to the last question
    await asyncio.gather(*(run.close() for run in runs))
    return {"described": described(settings), "data": data, "frames": frames, "planes": planes}


async def _frame(runs: Sequence[RemoteRun], position: int, points: int) -> dict[str, Any]:
    """Train up to a position; return what is shown there, with the radii of some fresh points."""
    reached = -1
    while reached < position:
        answers = await ask_all(runs, "advance", position)
        reached = min(place for place, _ in answers.values())
    radii: dict[str, Any] = {}
    while not (radii and all(found["complete"] for found in radii.values())):
        radii = await ask_all(runs, "measure", points)
    # the page shows the upper ends, which are the radii themselves where these are exact
    shown = {
        name: {key: value for key, value in found.items() if key != "lower"}
        for name, found in radii.items()
    }
    seen = {name: view for name, (_, view) in answers.items()}
    return {"position": position, **seen, "radii": shown}

from __future__ import annotations

import asyncio

import pytest

import featavg as fa
from featavg.apps.play.settings import Settings
from featavg.apps.play.workers import Pool, WorkerLostError


@pytest.mark.slow
def test_a_process_that_dies_is_replaced():
    settings = Settings(clusters=3, dim=500, samples=40, width=2, steps=5, labels="coarse")
    pool = Pool(1)

    async def scenario():
        (run,) = pool.runs(settings)
        await run.open()
        pool._workers[0]._process.kill()
        with pytest.raises(WorkerLostError, match="train again"):
            await run.ask("advance", 5)
        with pytest.raises(fa.InputError, match="no longer kept; train again"):
            await run.ask("advance", 5)  # the new process knows nothing of it
        (again,) = pool.runs(settings)
        await again.open()
        position, seen = await again.ask("advance", 5)
        assert (position, seen["steps"]) == (5, 5)

    try:
        asyncio.run(scenario())
    finally:
        pool.stop()

from __future__ import annotations

import asyncio

import pytest

import featavg as fa
from featavg.apps.play import workers
from featavg.apps.play.settings import Settings
from featavg.apps.play.workers import Pool, WorkerLostError

SETTINGS = Settings(clusters=3, dim=500, samples=40, width=2, steps=5, labels="coarse")


@pytest.mark.slow
def test_a_process_that_dies_is_replaced():
    pool = Pool(1)

    async def scenario():
        (run,) = pool.runs(SETTINGS)
        await run.open()
        pool._workers[0]._process.kill()
        with pytest.raises(WorkerLostError, match="train again"):
            await run.ask("advance", 5)
        with pytest.raises(fa.InputError, match="no longer kept; train again"):
            await run.ask("advance", 5)  # the new process knows nothing of it
        (again,) = pool.runs(SETTINGS)
        await again.open()
        position, seen = await again.ask("advance", 5)
        assert (position, seen["steps"]) == (5, 5)

    try:
        asyncio.run(scenario())
    finally:
        pool.stop()


@pytest.mark.slow
def test_a_process_without_trainings_ends_and_is_started_again(monkeypatch):
    """Memory is returned for certain by ending the process; nothing but a training keeps one."""
    monkeypatch.setattr(workers, "_REST", 0.0)
    pool = Pool(1)

    async def scenario():
        assert pool.running == 0
        pool.wake()
        await pool.end_unused()  # after it has been started, because requests keep their order
        assert pool.running == 0
        (run,) = pool.runs(SETTINGS)
        await run.open()
        process = pool._workers[0]._process
        await pool.end_unused()
        assert pool.running == 1
        await run.close()
        await pool.end_unused()
        assert pool.running == 0
        with pytest.raises(ValueError, match="closed"):  # it has ended, and was waited for
            process.is_alive()
        await run.close()  # needs no process
        assert pool.running == 0
        with pytest.raises(fa.InputError, match="no longer kept; train again"):
            await run.ask("advance", 5)
        (again,) = pool.runs(SETTINGS)
        await again.open()
        assert (await again.ask("advance", 5))[0] == 5

    try:
        asyncio.run(scenario())
    finally:
        pool.stop()
    assert pool.running == 0


def test_a_process_rests_only_after_a_while():
    pool = Pool(1)

    async def scenario():
        pool.wake()
        await pool.end_unused()
        assert pool.running == 1

    try:
        asyncio.run(scenario())
    finally:
        pool.stop()

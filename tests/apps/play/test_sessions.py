from __future__ import annotations

import asyncio

from featavg.apps.play.sessions import SessionRegistry
from featavg.apps.play.settings import Settings
from featavg.apps.play.workers import WorkerLostError
from support.play_server import TAB


class FakeRun:
    """A training that never ends, and remembers what it was asked."""

    def __init__(self, network, fails_at=None):
        self.network, self.calls, self.is_open = network, 0, False
        self.fails_at = fails_at

    async def open(self):
        self.is_open = True

    async def close(self):
        self.is_open = False

    async def ask(self, command, *_):
        if command == "where":
            return 0
        await asyncio.sleep(0)
        self.calls += 1
        if self.calls == self.fails_at:
            raise WorkerLostError("the computation was lost.")
        return 0, {"calls": self.calls}


class FakePool:
    def __init__(self, **options):
        self.made, self.options = [], options

    def runs(self, settings):
        runs = [FakeRun(network, **self.options) for network in settings.networks]
        self.made += runs
        return runs


def test_a_closed_tab_stops_its_work():
    async def scenario():
        pool = FakePool()
        sessions = SessionRegistry(pool)
        events = sessions.events(TAB, Settings(), 100, -1, 0)
        await anext(events)
        assert sessions.busy == 1
        await events.aclose()  # what the server does when the connection ends
        calls = [run.calls for run in pool.made]
        for _ in range(20):
            await asyncio.sleep(0)
        assert [run.calls for run in pool.made] == calls
        assert sessions.busy == 0
        await sessions.leave(TAB)
        assert not any(run.is_open for run in pool.made)

    asyncio.run(scenario())


def test_a_newer_request_of_a_page_ends_the_older_one():
    async def scenario():
        sessions = SessionRegistry(FakePool())
        older = sessions.events(TAB, Settings(), 100, -1, 0)
        await anext(older)
        newer = sessions.events(TAB, Settings(), 100, -1, 0)
        first = asyncio.ensure_future(anext(newer))
        await asyncio.sleep(0)
        assert [event async for event in older] == []
        assert b"event: frame" in await first
        await newer.aclose()

    asyncio.run(scenario())


def test_a_lost_process_is_reported_and_the_session_is_cleared():
    async def scenario():
        pool = FakePool(fails_at=3)
        sessions = SessionRegistry(pool)
        events = [event async for event in sessions.events(TAB, Settings(), 100, -1, 0)]
        assert b"event: refused" in events[-1]
        assert b"the computation was lost" in events[-1]
        assert not any(run.is_open for run in pool.made)

    asyncio.run(scenario())


def test_idle_sessions_are_dropped_if_memory_is_needed(monkeypatch):
    settings = Settings()
    monkeypatch.setattr("featavg.apps.play.sessions._MEMORY", 2.5 * 2 * settings.bytes)

    async def scenario():
        pool = FakePool()
        sessions = SessionRegistry(pool)
        open_events = []
        for tab in "ab":
            events = sessions.events(tab * 16, settings, 100, -1, 0)
            await anext(events)
            open_events.append(events)
        refused = [event async for event in sessions.events("c" * 16, settings, 100, -1, 0)]
        assert b"too many pages are training at once" in refused[-1]
        await open_events[0].aclose()  # paused: its place can be taken
        third = sessions.events("d" * 16, settings, 100, -1, 0)
        assert b"event: frame" in await anext(third)
        assert [run.is_open for run in pool.made] == [False, False, True, True, True, True]
        for events in (open_events[1], third):
            await events.aclose()

    asyncio.run(scenario())

from __future__ import annotations

import asyncio
import time

import pytest

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
    size = 0

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
        assert b"event: data" in await first
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


@pytest.fixture
def room_for_two(monkeypatch):
    """Memory for the trainings of two pages."""
    monkeypatch.setattr("featavg.apps.play.sessions._PROCESS", 0)
    return 2.5 * Settings().total_bytes


def test_idle_sessions_are_dropped_if_memory_is_needed(room_for_two, monkeypatch):
    monkeypatch.setattr("featavg.apps.play.sessions._PATIENCE", 0)

    async def scenario():
        pool = FakePool()
        sessions = SessionRegistry(pool, room_for_two)
        open_events = []
        for tab in "ab":
            events = sessions.events(tab * 16, Settings(), 100, -1, 0)
            await anext(events)
            open_events.append(events)
        refused = [event async for event in sessions.events("c" * 16, Settings(), 100, -1, 0)]
        assert b"event: waiting" in refused[0]
        assert b"too many pages are training at once" in refused[-1]
        await open_events[0].aclose()  # paused: its place can be taken
        monkeypatch.setattr("featavg.apps.play.sessions._PATIENCE", 60)
        third = sessions.events("d" * 16, Settings(), 100, -1, 0)
        assert b"event: waiting" in await anext(third)
        assert b"event: data" in await anext(third)
        assert [run.is_open for run in pool.made] == [False, False, True, True, True, True]
        for events in (open_events[1], third):
            await events.aclose()

    asyncio.run(scenario())


def test_what_is_still_being_opened_counts(room_for_two):
    """Ten pages at once: never more than two are open or opening, and all get their turn."""

    class SlowRun(FakeRun):
        async def open(self):
            pool.most = max(pool.most, pool.promised())
            for _ in range(5):
                await asyncio.sleep(0)
            await super().open()

        async def close(self):
            for _ in range(5):  # memory is in use until the process has dropped it
                await asyncio.sleep(0)
            await super().close()
            self.is_closed = True

    class SlowPool(FakePool):
        most = 0

        def runs(self, settings):
            runs = [SlowRun(network) for network in settings.networks]
            self.made += runs
            return runs

        def promised(self):
            return sum(not hasattr(run, "is_closed") for run in self.made)

    async def visit(sessions, number):
        events = sessions.events(f"{number:016x}", Settings(), 100, -1, 0)
        async for event in events:
            if b"event: frame" in event:
                break
        await events.aclose()

    async def scenario():
        sessions = SessionRegistry(pool, room_for_two)
        await asyncio.gather(*(visit(sessions, number) for number in range(10)))
        assert len(pool.made) == 20
        assert pool.most == 4  # two pages with two networks each

    pool = SlowPool()
    asyncio.run(scenario())


def test_pages_that_are_closed_without_a_word_are_dropped_by_time(monkeypatch):
    async def scenario():
        pool = FakePool()
        sessions = SessionRegistry(pool)
        for tab in "ab":
            events = sessions.events(tab * 16, Settings(), 100, -1, 0)
            await anext(events)
            await events.aclose()
        await sessions.drop_idle()
        assert [run.is_open for run in pool.made] == [True] * 4
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 50)
        sessions.alive("b" * 16)
        await sessions.drop_idle()
        assert [run.is_open for run in pool.made] == [False, False, True, True]
        monkeypatch.setattr(time, "monotonic", lambda: now + 1000)
        sessions.alive("b" * 16)
        await sessions.drop_idle()
        assert not any(run.is_open for run in pool.made)

    asyncio.run(scenario())


class SlowlyClosed(FakeRun):
    """A training whose process takes a while to drop it."""

    async def close(self):
        for _ in range(5):
            await asyncio.sleep(0)
        await super().close()


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_page_may_leave_and_come_back_while_others_are_dropped(comes_back, monkeypatch):
    async def scenario():
        pool = FakePool()
        pool.runs = lambda settings: [SlowlyClosed("fine")]
        sessions = SessionRegistry(pool)
        for tab in "abcd":
            events = sessions.events(tab * 16, Settings(labels="fine"), 100, -1, 0)
            await anext(events)
            await events.aclose()
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 50)
        dropping = asyncio.ensure_future(sessions.drop_idle())
        await asyncio.sleep(0)
        assert len(sessions._sessions) == 3  # the first one is being dropped
        leaving = asyncio.ensure_future(sessions.leave("d" * 16))
        await asyncio.sleep(0)
        if comes_back:
            events = sessions.events("d" * 16, Settings(labels="fine"), 100, -1, 0)
            await anext(events)
        await asyncio.gather(dropping, leaving)
        assert list(sessions._sessions) == ["d" * 16] * comes_back
        assert sessions.busy == comes_back
        if comes_back:
            await events.aclose()

    asyncio.run(scenario())


def test_an_error_does_not_end_the_tidying(monkeypatch):
    monkeypatch.setattr("featavg.apps.play.sessions._BETWEEN_CHECKS", 0)

    async def scenario():
        rounds, reported, third = [], [], asyncio.Event()

        async def fail():
            rounds.append(None)
            if len(rounds) == 3:
                third.set()
            raise RuntimeError("a fault of the program")

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: reported.append(str(about["exception"])))
        pool = FakePool()
        pool.end_unused = fail
        tidying = asyncio.create_task(SessionRegistry(pool).keep_tidy())
        waiting = asyncio.create_task(third.wait())
        await asyncio.wait({tidying, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert not tidying.done()
        assert reported[:2] == ["a fault of the program"] * 2
        tidying.cancel()
        await asyncio.gather(tidying, return_exceptions=True)
        assert tidying.cancelled()

    asyncio.run(scenario())


def test_a_request_that_is_cancelled_while_it_opens_leaves_nothing():
    async def scenario():
        opened = asyncio.Event()

        class HangingRun(FakeRun):
            async def open(self):
                await super().open()
                opened.set()
                await asyncio.sleep(3600)

        pool = FakePool()
        pool.runs = lambda settings: pool.made or pool.made.append(HangingRun("fine")) or pool.made
        sessions = SessionRegistry(pool)
        first = asyncio.ensure_future(anext(sessions.events(TAB, Settings(), 100, -1, 0)))
        await opened.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await sessions.leave(TAB)
        assert not any(run.is_open for run in pool.made)
        assert sessions._promised == 0

    asyncio.run(scenario())


def test_a_page_continues_where_it_is_if_its_training_was_dropped():
    async def scenario():
        pool = FakePool()
        asked = []

        class Counting(FakeRun):
            async def ask(self, command, *arguments):
                asked.append((command, *arguments))
                return await super().ask(command, *arguments)

        pool.runs = lambda settings: [Counting("fine")]
        events = SessionRegistry(pool).events(TAB, Settings(labels="fine"), None, 40, 0)
        await anext(events)
        assert ("advance", 40) in asked
        await events.aclose()

    asyncio.run(scenario())

"""Who is training what: one desk for each open page."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Any

from featavg.apps.play.settings import TEST_POINTS, Settings
from featavg.apps.play.workers import Pool, RemoteRun, WorkerLostError
from featavg.errors import InputError

_MEMORY = 2e9  # bytes for all desks together
_DESKS = 200
_CROWD = 4
_FRAME = 1 / 80  # seconds: nobody sees more, and the browser needs the time to draw
_IDLE = 900.0  # seconds after which a training that nobody looks at is forgotten


class Desk:
    """The trainings of one page, kept while it is paused so that it can go on."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.turn = 0  # a newer request of the same page ends an older one
        self.settings: Settings | None = None
        self.runs: list[RemoteRun] = []
        self.last_used = time.monotonic()

    @property
    def bytes(self) -> int:
        """The memory its trainings take."""
        return self.settings.bytes * len(self.runs) if self.settings else 0

    async def clear(self) -> None:
        """Forget the trainings."""
        runs, self.runs, self.settings = self.runs, [], None
        await asyncio.gather(*(run.close() for run in runs), return_exceptions=True)


class Hall:
    """All desks, within a limit of memory."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._desks: dict[str, Desk] = {}

    @property
    def busy(self) -> int:
        """How many desks are training or measuring now."""
        return sum(desk.lock.locked() for desk in self._desks.values())

    def close(self) -> None:
        """Have everything that is under way end at its next moment."""
        for desk in self._desks.values():
            desk.turn += 1

    async def leave(self, tab: str) -> None:
        """Forget the desk of a page that was closed."""
        desk = self._desks.pop(tab, None)
        if desk is not None:
            desk.turn += 1
            async with desk.lock:
                await desk.clear()

    async def events(
        self, tab: str, settings: Settings, until: int | None, since: int, point: int
    ) -> AsyncGenerator[bytes, None]:
        """Train to a position and measure there; yield what the page shows on the way.

        Where a training of the same settings waits at the desk it goes on, or else all is drawn
        anew and what the page has seen already, up to the position `since`, is not sent again.
        Without `until` it stays where it is.
        """
        desk = self._desks.setdefault(tab, Desk())
        desk.turn += 1
        turn = desk.turn
        try:
            async with (
                desk.lock,
                aclosing(self._work(desk, settings, until, since, point)) as work,
            ):
                async for name, content in work:
                    yield _event(name, content)
                    if desk.turn != turn:
                        return
        except (InputError, WorkerLostError) as error:
            await desk.clear()
            yield _event("refused", {"message": str(error)})
        finally:
            desk.last_used = time.monotonic()

    async def _work(
        self, desk: Desk, settings: Settings, until: int | None, since: int, point: int
    ) -> AsyncGenerator[tuple[str, Any], None]:
        where = await self._take_place(desk, settings, until)
        goal = min(max(where) if until is None else until, settings.end)
        wanted = [int(p) for p in settings.schedule if p > since and max(where) <= p < goal]
        for i, stop in enumerate([*wanted, goal]):
            # the more pages are at work, the fewer moments each of them is shown
            if stop != goal and i % (1 + self.busy // _CROWD):
                continue
            began = time.monotonic()
            async with aclosing(_train(desk.runs, stop)) as training:
                async for name, content in training:
                    yield name, content
            await asyncio.sleep(began + _FRAME - time.monotonic())
        complete = False
        while not complete:
            radii = await _from_all(desk.runs, "measure")
            complete = all(found["complete"] for found in radii.values())
            yield "radii", radii
        yield "slices", await _from_all(desk.runs, "slice", point)
        yield "done", {"position": goal, "end": settings.end}

    async def _take_place(self, desk: Desk, settings: Settings, until: int | None) -> list[int]:
        """See to it that the desk has these trainings; return their positions."""
        if desk.settings == settings:
            where = await asyncio.gather(*(run.where() for run in desk.runs))
            if until is None or max(where) <= until:
                return list(where)
        await desk.clear()
        await self._make_room(settings.bytes * len(settings.networks))
        runs = self._pool.runs(settings)
        try:
            await asyncio.gather(*(run.open() for run in runs))
        except BaseException:  # also when the page is closed meanwhile
            desk.runs = runs
            raise
        desk.runs, desk.settings = runs, settings
        return [0] * len(runs)

    async def _make_room(self, size: int) -> None:
        """Forget what nobody looks at, the oldest first, as far as is needed."""
        idle = sorted(
            ((tab, desk) for tab, desk in self._desks.items() if not desk.lock.locked()),
            key=lambda pair: pair[1].last_used,
        )
        for tab, desk in idle:
            is_old = time.monotonic() - desk.last_used > _IDLE
            if is_old or self._taken + size > _MEMORY or len(self._desks) > _DESKS:
                del self._desks[tab]
                await desk.clear()
        if self._taken + size > _MEMORY or len(self._desks) > _DESKS:
            raise InputError(
                "too many pages are training at once for the memory that the playground allows; "
                "try again in a moment, or take fewer samples."
            )

    @property
    def _taken(self) -> int:
        return sum(desk.bytes for desk in self._desks.values())


async def _train(runs: list[RemoteRun], stop: int) -> AsyncGenerator[tuple[str, Any], None]:
    """Train all networks to a position; yield a frame there and glimpses on the way."""
    while True:
        answers = await _gathered(*(run.advance(stop) for run in runs))
        seen = {run.network: view for run, (_, view) in zip(runs, answers, strict=True)}
        if all(position >= stop for position, _ in answers):
            yield "frame", {"position": stop, **seen}
            return
        yield "glimpse", {"position": min(position for position, _ in answers), **seen}


async def _from_all(runs: list[RemoteRun], question: str, *arguments: Any) -> dict[str, Any]:
    answers = await _gathered(*(getattr(run, question)(*arguments) for run in runs))
    return {run.network: answer for run, answer in zip(runs, answers, strict=True)}


async def _gathered(*questions: Awaitable[Any]) -> list[Any]:
    """Return all answers; wait for all of them even where one is refused."""
    answers = await asyncio.gather(*questions, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers


def point_of(text: str) -> int:
    """Return the number of a fresh point."""
    if not text.isdecimal() or len(text) > 9 or int(text) >= TEST_POINTS:
        raise InputError(f"point must be from 0 to {TEST_POINTS - 1}; got {text[:40]!r}.")
    return int(text)


def _event(name: str, content: Any) -> bytes:
    """Return a server-sent event."""
    return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()

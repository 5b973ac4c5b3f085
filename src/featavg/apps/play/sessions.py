"""The sessions of the playground: one for each open page, with its trainings."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from featavg.apps.play.settings import Settings
from featavg.apps.play.workers import Pool, RemoteRun, WorkerLostError
from featavg.errors import InputError

_MEMORY = 2e9  # bytes for all sessions together
_MOST_SESSIONS = 200
_CROWD = 4  # busy sessions for which each one skips one more frame
_FRAME = 1 / 80  # seconds: more frames cannot be seen, and the browser needs time to draw
_IDLE = 900.0  # seconds after which a paused training is dropped


class Session:
    """The trainings of one page, kept while it is paused so that they can be continued."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.turn = 0  # a newer request of the same page ends an older one
        self.settings: Settings | None = None
        self.runs: list[RemoteRun] = []
        self.last_used = time.monotonic()

    @property
    def bytes(self) -> int:
        """The memory of the trainings."""
        return self.settings.bytes * len(self.runs) if self.settings else 0

    async def clear(self) -> None:
        """Drop the trainings."""
        runs, self.runs, self.settings = self.runs, [], None
        await asyncio.gather(*(run.close() for run in runs), return_exceptions=True)


class SessionRegistry:
    """All sessions by the tab of their page, within a limit of memory."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._sessions: dict[str, Session] = {}

    @property
    def busy(self) -> int:
        """The number of sessions that are training or measuring now."""
        return sum(session.lock.locked() for session in self._sessions.values())

    def close(self) -> None:
        """End every request at its next event."""
        for session in self._sessions.values():
            session.turn += 1

    async def leave(self, tab: str) -> None:
        """Drop the session of a page that was closed."""
        session = self._sessions.pop(tab, None)
        if session is not None:
            session.turn += 1
            async with session.lock:
                await session.clear()

    async def events(
        self, tab: str, settings: Settings, until: int | None, since: int, point: int
    ) -> AsyncGenerator[bytes, None]:
        """Train to a position and measure there; yield the events that the page shows.

        A training of the same settings that the session has kept is continued. Otherwise a new one
        starts, and the positions up to `since`, which the page has shown already, are not sent
        again. Without `until` the training stays where it is.
        """
        session = self._sessions.setdefault(tab, Session())
        session.turn += 1
        turn = session.turn
        try:
            async with (
                session.lock,
                aclosing(self._train_and_measure(session, settings, until, since, point)) as work,
            ):
                async for name, content in work:
                    yield _event(name, content)
                    if session.turn != turn:
                        return
        except (InputError, WorkerLostError) as error:
            await session.clear()
            yield _event("refused", {"message": str(error)})
        finally:
            session.last_used = time.monotonic()

    async def _train_and_measure(
        self, session: Session, settings: Settings, until: int | None, since: int, point: int
    ) -> AsyncGenerator[tuple[str, Any], None]:
        where = await self._open_runs(session, settings, until)
        goal = min(max(where) if until is None else until, settings.end)
        wanted = [int(p) for p in settings.schedule if p > since and max(where) <= p < goal]
        for i, stop in enumerate([*wanted, goal]):
            if stop != goal and i % (1 + self.busy // _CROWD):
                continue
            began = time.monotonic()
            reached = -1
            while reached < stop:  # a frame at the stop, and glimpses on the way
                answers = await _from_all(session.runs, "advance", stop)
                reached = min(position for position, _ in answers.values())
                seen = {network: view for network, (_, view) in answers.items()}
                name = "glimpse" if reached < stop else "frame"
                yield name, {"position": min(reached, stop), **seen}
            await asyncio.sleep(began + _FRAME - time.monotonic())
        complete = False
        while not complete:
            radii = await _from_all(session.runs, "measure")
            complete = all(found["complete"] for found in radii.values())
            yield "radii", radii
        yield "slices", await _from_all(session.runs, "slice", point)
        yield "done", {"position": goal, "end": settings.end}

    async def _open_runs(
        self, session: Session, settings: Settings, until: int | None
    ) -> list[int]:
        """Open the trainings of these settings unless the session has them; return positions."""
        if session.settings == settings:
            where = await asyncio.gather(*(run.ask("where") for run in session.runs))
            if until is None or max(where) <= until:
                return list(where)
        await session.clear()
        await self._make_room(settings.bytes * len(settings.networks))
        runs = self._pool.runs(settings)
        try:
            await asyncio.gather(*(run.open() for run in runs))
        except BaseException:  # also if the page is closed meanwhile
            session.runs = runs
            raise
        session.runs, session.settings = runs, settings
        return [0] * len(runs)

    async def _make_room(self, size: int) -> None:
        """Drop idle sessions, the oldest first, until `size` bytes are free."""
        for tab, session in sorted(self._sessions.items(), key=lambda item: item[1].last_used):
            if session.lock.locked():
                continue
            if time.monotonic() - session.last_used > _IDLE or self._is_full(size):
                del self._sessions[tab]
                await session.clear()
        if self._is_full(size):
            raise InputError(
                "too many pages are training at once for the memory that the playground allows; "
                "try again in a moment, or take fewer samples."
            )

    def _is_full(self, size: int) -> bool:
        taken = sum(session.bytes for session in self._sessions.values())
        return taken + size > _MEMORY or len(self._sessions) > _MOST_SESSIONS


async def _from_all(runs: list[RemoteRun], command: str, *arguments: Any) -> dict[str, Any]:
    """Return the answer of each network; wait for all of them even if one is refused."""
    questions = (run.ask(command, *arguments) for run in runs)
    answers = await asyncio.gather(*questions, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return {run.network: answer for run, answer in zip(runs, answers, strict=True)}


def _event(name: str, content: Any) -> bytes:
    """Return a server-sent event."""
    return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()

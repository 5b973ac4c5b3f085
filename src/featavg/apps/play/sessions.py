"""The sessions of the playground: one for each open page, with its trainings."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from featavg.apps.play.settings import TEST_POINTS, Settings
from featavg.apps.play.workers import Pool, RemoteRun, WorkerLostError, ask_all, ask_for_planes
from featavg.errors import InputError

_MEMORY = 2e9  # bytes for all processes of the playground together
_PROCESS = 120e6  # of these for each process without trainings
_MOST_SESSIONS = 200
_CROWD = 4  # busy sessions for which each one skips one more frame
_FRAME = 1 / 80  # seconds: more frames cannot be seen, and the browser needs time to draw
_PATIENCE = 60.0  # seconds that a page waits for memory
_IDLE = 900.0  # seconds after which a paused training is dropped
_GONE = 40.0  # seconds without a sign of life after which a page counts as closed
_BETWEEN_CHECKS = 5.0


class Session:
    """The trainings of one page, kept while it is paused so that they can be continued."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.turn = 0  # a newer request of the same page ends an older one
        self.settings: Settings | None = None
        self.runs: list[RemoteRun] = []
        self.promised = 0  # bytes, also while the trainings are still being opened
        self.last_used = self.last_seen = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether no request of the page is being answered."""
        return not self.lock.locked()

    def touch(self) -> None:
        """Note that the page is in use."""
        self.last_used = self.last_seen = time.monotonic()


class SessionRegistry:
    """All sessions by the tab of their page, within a limit of memory.

    The memory of a training counts from before it is opened until its process has dropped it. A
    page for which there is none waits until another one is paused or closed, in order of arrival.
    """

    def __init__(self, pool: Pool, memory: float = _MEMORY) -> None:
        self._pool = pool
        self._memory = memory - _PROCESS * (1 + pool.size)
        self._sessions: dict[str, Session] = {}
        self._promised = 0
        self._line = asyncio.Lock()
        self._changed = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def busy(self) -> int:
        """The number of sessions that are training or measuring now."""
        return sum(not session.is_idle for session in self._sessions.values())

    def close(self) -> None:
        """End every request at its next event."""
        self._is_closed = True
        self._changed.set()
        for session in self._sessions.values():
            session.turn += 1

    def wake(self) -> None:
        """Start the processes, because a page is being opened."""
        self._pool.wake()

    def alive(self, tab: str) -> None:
        """Note that a page is still open."""
        if tab in self._sessions:
            self._sessions[tab].last_seen = time.monotonic()

    async def leave(self, tab: str) -> None:
        """Drop the session of a page that was closed."""
        session = self._sessions.pop(tab, None)
        if session is not None:
            session.turn += 1
            async with session.lock:
                await self._clear(session)

    async def keep_tidy(self) -> None:
        """Drop the sessions of pages that are closed or unused, for as long as the server runs.

        An error is reported and does not end it, or else memory would never be freed again.
        """
        while True:
            await asyncio.sleep(_BETWEEN_CHECKS)
            try:
                await self.drop_idle()
                await self._pool.end_unused()
            except Exception as error:
                about = {"message": "sessions cannot be tidied", "exception": error}
                asyncio.get_running_loop().call_exception_handler(about)

    async def drop_idle(self) -> None:
        """Drop the sessions of pages that are closed or have not been used for long."""
        now = time.monotonic()
        for tab, session in list(self._sessions.items()):
            is_over = now - session.last_seen > _GONE or now - session.last_used > _IDLE
            # while another one was dropped, this one may have ended, or its page been opened again
            is_kept = self._sessions.get(tab) is session
            if is_kept and session.is_idle and is_over:
                await self._drop(tab)

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
                while session.turn == turn:  # until a newer request, or the page is closed
                    try:
                        name, content = await anext(work)
                    except StopAsyncIteration:
                        return
                    yield _event(name, content)
        except (InputError, WorkerLostError) as error:
            await self._clear(session)
            yield _event("refused", {"message": str(error)})
        finally:
            session.touch()
            self._changed.set()

    async def _train_and_measure(
        self, session: Session, settings: Settings, until: int | None, since: int, point: int
    ) -> AsyncGenerator[tuple[str, Any], None]:
        if session.settings != settings and self._is_full(settings.total_bytes):
            yield "waiting", {"message": "many pages are training; this one waits for its turn."}
        where = await self._open_runs(session, settings, until, since)
        if since < 0:
            yield "data", await session.runs[0].ask("data")
        # the page may be further than a training that had to be opened again
        goal = min(max(*where, since) if until is None else until, settings.end)
        wanted = [int(p) for p in settings.schedule if p > since and max(where) <= p < goal]
        for i, stop in enumerate([*wanted, goal]):
            if stop != goal and i % (1 + self.busy // _CROWD):
                continue
            began = time.monotonic()
            reached = -1
            while reached < stop:  # a frame at the stop, and glimpses on the way
                answers = await ask_all(session.runs, "advance", stop)
                reached = min(position for position, _ in answers.values())
                seen = {network: view for network, (_, view) in answers.items()}
                name = "glimpse" if reached < stop else "frame"
                yield name, {"position": min(reached, stop), **seen}
            await asyncio.sleep(began + _FRAME - time.monotonic())
        complete = False
        while not complete:
            radii = await ask_all(session.runs, "measure", TEST_POINTS)
            complete = all(found["complete"] for found in radii.values())
            yield "radii", radii
        yield "slices", await ask_for_planes(session.runs, point)
        yield "done", {"position": goal, "end": settings.end}

    async def _open_runs(
        self, session: Session, settings: Settings, until: int | None, since: int
    ) -> list[int]:
        """Open the trainings of these settings unless the session has them; return positions."""
        if session.settings == settings:
            where = await asyncio.gather(*(run.ask("where") for run in session.runs))
            is_reset = since < 0 < max(where)
            if until is None or (max(where) <= until and not is_reset):
                return list(where)
        await self._clear(session)
        await self._reserve(session, settings.total_bytes)
        session.runs = self._pool.runs(settings)
        await asyncio.gather(*(run.open() for run in session.runs))
        session.settings = settings
        return [0] * len(session.runs)

    async def _reserve(self, session: Session, size: int) -> None:
        """Promise memory to a session; wait for it if necessary."""
        try:
            async with asyncio.timeout(_PATIENCE), self._line:
                while self._is_full(size) and not self._is_closed:
                    self._changed.clear()
                    if not await self._drop_oldest():
                        await self._changed.wait()
                if self._is_closed:
                    raise InputError("the playground is being closed.")
                self._promised += size
                session.promised = size
        except TimeoutError:
            raise InputError(
                "too many pages are training at once for the memory that the playground allows; "
                "try again in a moment, or take fewer samples."
            ) from None

    def _is_full(self, size: int) -> bool:
        return self._promised + size > self._memory or len(self._sessions) > _MOST_SESSIONS

    async def _drop_oldest(self) -> bool:
        """Drop the idle session that was used longest ago; return whether there was one."""
        idle = [(s.last_used, tab) for tab, s in self._sessions.items() if s.is_idle]
        if idle:
            await self._drop(min(idle)[1])
        return bool(idle)

    async def _drop(self, tab: str) -> None:
        if session := self._sessions.pop(tab, None):
            await self._clear(session)

    async def _clear(self, session: Session) -> None:
        """Drop the trainings of a session, even if the request that asks for it is cancelled."""
        runs, session.runs, session.settings = session.runs, [], None
        size, session.promised = session.promised, 0

        async def close() -> None:
            await asyncio.gather(*(run.close() for run in runs), return_exceptions=True)
            self._promised -= size
            self._changed.set()

        if runs or size:
            closing = asyncio.create_task(close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            await asyncio.shield(closing)


def _event(name: str, content: Any) -> bytes:
    """Return a server-sent event."""
    return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()

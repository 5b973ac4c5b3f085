"""The web server of the playground: its page, and the requests of the page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from featavg.apps.play.description import about, described
from featavg.apps.play.guard import Guard
from featavg.apps.play.presets import presets, settings_of_query
from featavg.apps.play.sessions import SessionRegistry
from featavg.apps.play.settings import TEST_POINTS
from featavg.apps.play.workers import Pool
from featavg.errors import InputError

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_TAB = re.compile(r"[0-9a-f]{16}")


def create_app(
    host: str = "127.0.0.1", workers: int | None = None, token: str | None = None
) -> Starlette:
    """Return the application; `host` is where it will be served.

    All files of the page are read now, once: no request reads from the disk. With a token, only
    the files of the page are served to those who do not have it.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        pool = Pool(workers)
        pool.wake()
        app.state.sessions = SessionRegistry(pool)
        tidying = asyncio.create_task(app.state.sessions.keep_tidy())
        try:
            yield
        finally:
            tidying.cancel()
            pool.stop()

    static = files("featavg.apps.play").joinpath("static")
    pages = [
        Route("/" if file.name == "index.html" else f"/{file.name}", _file(file.read_bytes(), kind))
        for file in sorted(static.iterdir(), key=lambda file: file.name)
        if (kind := _TYPES.get(file.name.rpartition(".")[2]))
    ]
    app = Starlette(
        routes=[
            *pages,
            Route("/about.json", _about),
            Route("/check", _check),
            Route("/run", _run),
            Route("/alive", _alive, methods=["POST"]),
            Route("/leave", _leave, methods=["POST"]),
        ],
        lifespan=lifespan,
        exception_handlers={InputError: _refuse},
    )
    files_of_page = frozenset(page.path for page in pages)
    app.add_middleware(Guard, host=host, token=token, open_paths=files_of_page)
    return app


def _file(content: bytes, kind: str) -> Any:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


async def _about(request: Request) -> Response:
    """Return the sliders and the presets."""
    request.app.state.sessions.wake()
    return JSONResponse(about(presets()))


def _query(request: Request) -> dict[str, str]:
    """Return the query without the token, which the guard has checked."""
    return {name: value for name, value in request.query_params.items() if name != "token"}


async def _check(request: Request) -> Response:
    """Return the settings of a query, or why they are refused."""
    return JSONResponse(described(settings_of_query(_query(request))))


async def _run(request: Request) -> Response:
    """Train and measure; send every event as it happens."""
    query = _query(request)
    tab = query.pop("tab", "")
    if not _TAB.fullmatch(tab):
        raise InputError("tab must be 16 hexadecimal digits.")
    until, since = query.pop("until", "now"), _position("since", query.pop("since", "-1"))
    stop = None if until == "now" else _position("until", until)
    point = query.pop("point", "0")
    if not point.isdecimal() or len(point) > 9 or int(point) >= TEST_POINTS:
        raise InputError(f"point must be from 0 to {TEST_POINTS - 1}; got {point[:40]!r}.")
    settings = settings_of_query(query)
    events = request.app.state.sessions.events(tab, settings, stop, since, int(point))
    return StreamingResponse(events, media_type="text/event-stream")


async def _alive(request: Request) -> Response:
    """Keep the trainings of a page that is open."""
    request.app.state.sessions.alive(request.query_params.get("tab", ""))
    return Response(status_code=204)


async def _leave(request: Request) -> Response:
    """Drop the trainings of a page that is being closed."""
    await request.app.state.sessions.leave(request.query_params.get("tab", ""))
    return Response(status_code=204)


def _position(name: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise InputError(f"{name} must be a whole number; got {text[:40]!r}.")
    return int(text)


async def _refuse(_: Request, error: Exception) -> Response:
    return JSONResponse({"message": str(error)}, status_code=400)

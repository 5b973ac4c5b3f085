"""The playground's web server: our own page, and what it asks for."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from featavg import __version__
from featavg.apps.play.presets import presets
from featavg.apps.play.sessions import Hall, point_of
from featavg.apps.play.settings import KNOBS, LITERAL_STEPS, TEST_POINTS, Settings
from featavg.apps.play.workers import Pool
from featavg.errors import InputError

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
# Nothing but what this server sends, and nobody else may put the page into a frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
_TAB = re.compile(r"[0-9a-f]{16}")


def create_app(host: str = "127.0.0.1", workers: int | None = None) -> Starlette:
    """Return the application; `host` is where it will be served.

    All files of the page are read now, once: nothing is read from disk for a visitor.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        pool = Pool(workers)
        app.state.hall = Hall(pool)
        try:
            yield
        finally:
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
            Route("/leave", _leave, methods=["POST"]),
        ],
        lifespan=lifespan,
        exception_handlers={InputError: _refuse},
    )
    app.add_middleware(_Guard, host=host)
    return app


class _Guard:
    """Answer only those who mean this server, and say what a page may do.

    A web site that points a name of its own at this machine (DNS rebinding) gives itself away by
    the Host header, and one that makes its visitors' browsers call us by Sec-Fetch-Site.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in _HEADERS.items()),
                ]
            await send(message)

        headers = Headers(scope=scope)
        app: ASGIApp = self._app
        if not self._is_ours(headers.get("host", "")):
            app = PlainTextResponse("This name is not the playground's.", status_code=421)
        elif scope["path"] != "/" and headers.get("sec-fetch-site", "none") not in (
            "same-origin",
            "none",
        ):
            app = PlainTextResponse("The playground answers its own page only.", status_code=403)
        await app(scope, receive, send_with_headers)

    def _is_ours(self, host: str) -> bool:
        name = re.sub(r":\d+$", "", host).strip("[]").lower()
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)  # a number cannot be pointed anywhere else
        except ValueError:
            return False
        return True


def _file(content: bytes, kind: str) -> Any:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


async def _about(_: Request) -> Response:
    """Return what the page is made of: sliders and presets."""
    return JSONResponse(
        {
            "version": __version__,
            "knobs": {name: asdict(knob) for name, knob in KNOBS.items()},
            "presets": [
                {
                    "group": preset.group,
                    "name": preset.name,
                    "query": preset.settings.to_query(),
                    "note": preset.note,
                }
                for preset in presets()
            ],
            "points": TEST_POINTS,
            "literal_steps": LITERAL_STEPS,
        }
    )


def _described(settings: Settings) -> dict[str, Any]:
    """Return settings, complete, and what follows from them."""
    values = asdict(settings)
    radii = [float(radius) for radius in settings.setting.predicted]
    return {
        "values": values,
        "query": settings.to_query(),
        "end": settings.end,
        "signs": settings.law.signs.tolist(),
        "networks": settings.networks,
        "predicted": dict(zip(("coarse", "fine"), radii, strict=True)),
        "formulas": dict(zip(("coarse", "fine"), settings.setting.formulas, strict=True)),
    }


async def _check(request: Request) -> Response:
    """Return the settings that a query means, or say why they are refused."""
    return JSONResponse(_described(Settings.from_query(request.query_params)))


async def _run(request: Request) -> Response:
    """Train and measure; everything is sent as it happens."""
    query = dict(request.query_params)
    tab = query.pop("tab", "")
    if not _TAB.fullmatch(tab):
        raise InputError("tab must be 16 hexadecimal digits.")
    until, since = query.pop("until", "now"), query.pop("since", "-1")
    point = point_of(query.pop("point", "0"))
    settings = Settings.from_query(query)
    events = request.app.state.hall.events(
        tab,
        settings,
        None if until == "now" else _position("until", until),
        _position("since", since),
        point,
    )
    return StreamingResponse(events, media_type="text/event-stream")


async def _leave(request: Request) -> Response:
    """Forget the trainings of a page that is being closed."""
    await request.app.state.hall.leave(request.query_params.get("tab", ""))
    return Response(status_code=204)


def _position(name: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise InputError(f"{name} must be a whole number; got {text[:40]!r}.")
    return int(text)


async def _refuse(_: Request, error: Exception) -> Response:
    return JSONResponse({"message": str(error)}, status_code=400)

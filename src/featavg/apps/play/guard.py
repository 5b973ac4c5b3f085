"""Who may use the playground: requests of other sites and of strangers are refused."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
import socket
from collections.abc import Collection
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Nothing is loaded from elsewhere, and no other site may put the page into a frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # without one, browsers would send "Origin: null" to us
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
_OWN_SITE = ("same-origin", "none")
_SENDING = 30.0  # seconds in which a client has to take what it is sent


class Guard:
    """Refuse requests of other sites and of those without the token; add the security headers.

    A web site that resolves its own name to this machine (DNS rebinding) is recognised by the Host
    header, and one that sends requests from its visitors' browsers by Origin and Sec-Fetch-Site.
    Browsers send neither with a picture or a script that another site requests from a plain http
    address other than loopback. There it takes the token, which the first address of the page
    holds and which becomes a cookie that is not sent with the requests of other sites.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    host : str
        The address that is listened on.
    token : str, optional
        What requests have to know.
    open_paths : collection of str
        The files of the page, which anybody may have.
    """

    def __init__(
        self, app: ASGIApp, host: str, token: str | None, open_paths: Collection[str]
    ) -> None:
        self._app, self._token, self._open_paths = app, token, open_paths
        name = socket.gethostname().lower()
        self._names = {"localhost", host.lower(), name, f"{name}.local", socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        cookie = f"featavg-{scope['server'][1] if scope.get('server') else 0}"
        is_given = self._is_token(parse_qs(scope["query_string"].decode("latin-1")).get("token"))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                answered.update(_HEADERS)
                if self._token and is_given:
                    rules = "HttpOnly; SameSite=Strict; Path=/"
                    answered.append("set-cookie", f"{cookie}={self._token}; {rules}")
            async with asyncio.timeout(_SENDING):
                await send(message)

        status, reason = 200, ""
        if not self._is_ours(headers.get("host", "")):
            status, reason = 421, "this is not the host name of the playground."
        elif not self._is_own_site(scope["path"], headers):
            status, reason = 403, "requests of other sites are refused."
        elif scope["path"] not in self._open_paths and not (
            is_given or self._is_token([cookie_parser(headers.get("cookie", "")).get(cookie, "")])
        ):
            status = 403
            reason = "the address lacks the token; open the one that 'featavg play' has printed."
        refusal = JSONResponse({"message": reason}, status_code=status)
        try:
            await (self._app if status == 200 else refusal)(scope, receive, send_with_headers)
        except TimeoutError:  # the client takes nothing: the connection is given up
            return

    def _is_ours(self, host: str) -> bool:
        name = re.sub(r":\d+$", "", host).strip("[]").lower()
        try:
            ipaddress.ip_address(name)  # an address needs no name resolution
        except ValueError:
            return name in self._names
        return True

    def _is_own_site(self, path: str, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{headers.get('host', '').lower()}":
            return False
        return path == "/" or headers.get("sec-fetch-site", "none") in _OWN_SITE

    def _is_token(self, given: list[str] | None) -> bool:
        """Return whether a token is the right one; any is if none is needed."""
        if self._token is None:
            return True
        return secrets.compare_digest((given or [""])[0].encode(), self._token.encode())

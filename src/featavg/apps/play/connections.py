"""Connections of the playground that do not stay open for ever."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from uvicorn.protocols.http.h11_impl import H11Protocol

_REQUEST = 15.0  # seconds in which a request has to be complete
_SILENCE = 60  # seconds after which a peer that acknowledges nothing is given up


class TimedProtocol(H11Protocol):
    """Close connections on which no complete request arrives, or whose other end is gone.

    uvicorn itself limits only the time between two requests.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        connected = transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):  # not every system has these
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENCE // 2)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _SILENCE)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Answer a request, or wait for the rest of it."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._deadline is None:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(_REQUEST, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

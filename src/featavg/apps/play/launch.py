"""`featavg play`: start the playground and open it in the browser."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import os
import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Any

from featavg.errors import InputError, optional_imports

DEFAULT_PORT = 8080


def add_parsers(commands: Any) -> None:
    """Add `play` to the commands."""
    parser = commands.add_parser(
        "play",
        help="open the playground in the browser",
        description=(
            "Start the playground: a page on which to change every setting, train both networks "
            "and watch the heat map, the coefficients and the exact robustness curve. It runs on "
            "this machine alone: no request leaves it, and nothing is written. Ctrl-C ends it. "
            "With --save, record trainings and write the page as one file instead, which anybody "
            "can open, scrub, drag and click through without this program or a network."
        ),
        epilog=(
            "Examples: featavg play; featavg play --port 9000 --no-open. For a class on the same "
            "network: featavg play --host 0.0.0.0, and give out the address that it prints: it "
            "holds a token, without which nobody else can use the playground. The address of the "
            "page holds the settings, so it can be shared. A lesson: featavg play --save "
            "lesson.html records the paper's setting in less than a minute; add --link "
            "'?preset=The theorems' or the address of a page for other settings, or --all for all "
            "presets. Needs the extra, except for --save: pip install 'featavg[play]'."
        ),
    )
    host = "where to listen (default 127.0.0.1, for this machine only)"
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help=host)
    port = f"the port; 0 takes any (default {DEFAULT_PORT}, or any if that is taken)"
    parser.add_argument("--port", type=int, metavar="N", help=port)
    browser = "open the browser (default: on a desktop only)"
    parser.add_argument("--open", action=argparse.BooleanOptionalAction, help=browser)
    save = "record trainings and write them as a page that needs no server"
    parser.add_argument("--save", type=Path, metavar="FILE.html", help=save)
    link = "start with the settings of an address of the page; with --save, also several times"
    parser.add_argument("--link", action="append", default=[], metavar="ADDRESS", help=link)
    every = "with --save, record all presets (takes minutes)"
    parser.add_argument("--all", action="store_true", help=every)
    parser.set_defaults(command=play)


def play(options: argparse.Namespace) -> int:
    """Serve the playground until Ctrl-C, or save a lesson."""
    if options.save is not None:
        return _save(options)
    if options.all or len(options.link) > 1:
        raise InputError("the playground opens with one setting; --all and more links need --save.")
    with optional_imports("the playground"):
        import uvicorn

        from featavg.apps.play.connections import TimedProtocol
        from featavg.apps.play.presets import preset_of_link
        from featavg.apps.play.server import create_app
    query = preset_of_link(options.link[0]).settings.to_query() if options.link else ""
    listening = _listen(options.host, options.port)
    ip, port = listening.getsockname()[:2]
    token = None if _is_loopback(ip) else secrets.token_urlsafe(24)
    address, announcement, warning = announce(options.host, ip, port, token, query)

    class Announced(uvicorn.Server):
        """Print the address once the server has started: from then on it handles Ctrl-C."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.should_exit:
                return
            print(announcement, flush=True)
            if warning:
                print(f"featavg: {warning}", file=sys.stderr, flush=True)
            if _is_desktop() if options.open is None else options.open:
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.sessions.close()  # or uvicorn would report the pages that train as errors
            await super().shutdown(sockets)

    app = create_app(options.host, token=token)
    config = uvicorn.Config(
        app, http=TimedProtocol, log_level="warning", timeout_graceful_shutdown=5
    )
    server = Announced(config)
    with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])  # raises KeyboardInterrupt after closing everything
    print("The playground is closed.", file=sys.stderr)
    return 0


def _save(options: argparse.Namespace) -> int:
    """Record trainings and write a lesson."""
    from featavg.apps.play.lesson import save_lesson
    from featavg.apps.play.presets import preset_of_link, presets

    menu = presets() if options.all else [preset_of_link(link) for link in options.link or [""]]
    size = save_lesson(options.save, menu)
    print(f"The lesson is in {options.save} ({size / 1e6:.1f} MB). Open it in a browser.")
    return 0


def _listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket, by default on the default port or else on any free one."""
    if port is not None and not 0 <= port <= 65535:
        raise InputError(f"port must be from 0 to 65535; got {port}.")
    try:
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    except OSError as error:
        raise InputError(f"host must be an address of this machine; got {host!r}.") from error
    reason = ""
    for number in [DEFAULT_PORT, 0] if port is None else [port]:
        try:  # from now on, requests wait until the server is up
            return socket.create_server((host, number), family=family)
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
    raise InputError(f"cannot listen on {host} port {number}: {reason}.")


def announce(
    host: str, ip: str, port: int, token: str | None, query: str = ""
) -> tuple[str, str, str]:
    """Return the address to open here, the lines that announce it, and a warning.

    The address holds the token and the settings of `query`. A server on all addresses is reached
    on loopback from this machine, and on the address of its network from others.
    """
    is_everywhere = ipaddress.ip_address(ip.partition("%")[0]).is_unspecified
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}[ip] if is_everywhere else host  # noqa: S104
    address = _address(here, port, token, query)
    lines = f"The playground is at {address} (Ctrl-C ends it)."
    if token is None:
        return address, lines, ""
    others = _address(_network_address(ip) if is_everywhere else host, port, token, query)
    lines += f"\nOther machines on the network open {others}"
    return (
        address,
        lines,
        "whoever has this address can make this machine compute, and the connection is not "
        "encrypted; do this on a network that you trust.",
    )


def _address(host: str, port: int, token: str | None, query: str) -> str:
    """Return the address of the page on a host."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    held = [f"token={token}"] * (token is not None) + [query] * (query != "")
    return f"http://{name}:{port}/" + (f"?{'&'.join(held)}" if held else "")


def _network_address(ip: str) -> str:
    """Return the address of this machine on its network, or its name if it has none."""
    family, elsewhere = socket.AF_INET, "192.0.2.1"  # reserved for documentation
    if ":" in ip:
        family, elsewhere = socket.AF_INET6, "2001:db8::1"
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((elsewhere, 9))  # sends nothing
        return str(probe.getsockname()[0])
    return socket.gethostname()


def _is_loopback(ip: str) -> bool:
    return ipaddress.ip_address(ip.partition("%")[0]).is_loopback


def _is_desktop() -> bool:
    """Return whether somebody would see a browser that is opened here."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

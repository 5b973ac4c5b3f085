"""The playground's server: what it answers, to whom, and when it stops."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
import threading
import time
from importlib.resources import files

import httpx2
import pytest
import uvicorn
from starlette.testclient import TestClient

import featavg as fa
from featavg.apps.cli.main import main
from featavg.apps.play.server import create_app
from featavg.apps.play.sessions import SessionRegistry
from featavg.apps.play.settings import NETWORKS, Settings
from featavg.apps.play.workers import Pool, WorkerLostError
from play_server import playground

TAB = "0123456789abcdef"
SMALL = "clusters=4&dim=900&samples=120&width=3&learning_rate=0.002&steps=60"


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(workers=2), base_url="http://localhost") as client:
        yield client


def run(client, query):
    """Return the events of a run, in order."""
    answer = client.get(f"/run?{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = answer.text.strip().split("\n\n")
    pairs = [block.split("\n") for block in blocks]
    return [(e.removeprefix("event: "), json.loads(d.removeprefix("data: "))) for e, d in pairs]


def test_a_run_sends_frames_planes_radii_and_that_it_is_done(client):
    events = run(client, f"{SMALL}&tab={TAB}&until=60")
    names = [name for name, _ in events]
    frames = [content for name, content in events if name == "frame"]
    assert [f["position"] for f in frames] == sorted({f["position"] for f in frames})
    assert (frames[0]["position"], frames[-1]["position"]) == (0, 60)
    assert names[-1] == "done"
    assert names.index("slices") > names.index("frame")
    radii = [content for name, content in events if name == "radii"][-1]
    for network in NETWORKS:
        assert radii[network]["complete"]
        assert len(frames[-1][network]["cosines"]) == 4
    assert frames[-1]["coarse"]["index"] > 0.9 > 0.1 > frames[-1]["fine"]["index"]


def test_going_on_gives_what_going_at_once_gives(client):
    at_once = dict(run(client, f"{SMALL}&tab={'a' * 16}&until=60"))
    tab = "b" * 16
    first = run(client, f"{SMALL}&tab={tab}&until=13")
    assert [c["position"] for n, c in first if n == "frame"][-1] == 13
    here = run(client, f"{SMALL}&tab={tab}&until=now&since=13&point=7")
    assert [c["position"] for n, c in here if n == "frame"] == [13]
    assert dict(here)["slices"]["coarse"]["point"] == 7
    rest = run(client, f"{SMALL}&tab={tab}&until=60&since=13")
    assert next(c["position"] for n, c in rest if n == "frame") > 13
    assert dict(rest)["frame"] == at_once["frame"]
    assert dict(rest)["radii"] == at_once["radii"]
    again = run(client, f"{SMALL}&tab={tab}&until=13")  # back: drawn anew
    assert dict(again)["frame"] == dict(first)["frame"]
    assert client.post(f"/leave?tab={tab}").status_code == 204


def test_one_network_alone(client):
    events = dict(run(client, f"{SMALL}&labels=fine&tab={TAB}&until=5"))
    assert "fine" in events["frame"]
    assert "coarse" not in events["frame"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (f"{SMALL}&tab=../../etc&until=1", "tab must be 16 hexadecimal digits."),
        (f"{SMALL}&tab={TAB}&until=soon", "until must be a whole number; got 'soon'."),
        (f"{SMALL}&tab={TAB}&until=1&point=100", "point must be from 0 to 99; got '100'."),
        (f"tab={TAB}&until=1&samples=1000000", "samples must be from 10 to 10000; got 1000000."),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(client, query, sentence):
    answer = client.get(f"/run?{query}")
    assert answer.status_code == 400
    assert answer.json() == {"message": sentence}


def test_settings_are_completed_and_refused(client):
    answer = client.get("/check?clusters=4&dim=10000").json()
    assert answer["values"]["positive"] == 2
    assert answer["signs"] == [1, 1, -1, -1]
    assert answer["predicted"] == {"coarse": 50.0, "fine": pytest.approx(5000**0.5)}
    assert answer["formulas"] == {"coarse": "√(d/k)", "fine": "√(d/2)"}
    refused = client.get("/check?clusters=99")
    assert refused.status_code == 400
    assert refused.json()["message"] == "clusters must be from 2 to 30; got 99."


def test_the_page_knows_every_slider_and_preset(client):
    about = client.get("/about.json").json()
    assert list(about["knobs"])[:3] == ["clusters", "dim", "samples"]
    assert about["knobs"]["positive"]["whole"]
    assert not about["knobs"]["cosine"]["whole"]
    assert about["presets"][0]["query"] == ""
    assert about["version"] == fa.__version__


def test_only_our_own_files_are_served_and_nothing_may_leave(client):
    for file in files("featavg.apps.play").joinpath("static").iterdir():
        path = "/" if file.name == "index.html" else f"/{file.name}"
        answer = client.get(path)
        assert answer.content == file.read_bytes()
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "http" not in policy
        assert "unsafe" not in policy
    for path in ("/static/index.html", "/../pyproject.toml", "/%2e%2e/cli.py", "/settings.py"):
        assert client.get(path).status_code == 404


def test_the_page_names_no_other_machine():
    for file in files("featavg.apps.play").joinpath("static").iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"\b(?:https?|wss?):", text) == [], file.name


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:8080", 200),
        ("192.168.1.20:8080", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8080", 421),
        ("", 421),
    ],
)
def test_other_names_are_not_answered(client, host, status):
    assert client.get("/", headers={"host": host}).status_code == status


def test_other_sites_cannot_make_it_work(client):
    query = f"/run?{SMALL}&tab={TAB}&until=1"
    assert client.get(query, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


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


def test_a_process_that_dies_is_replaced():
    settings = Settings(clusters=3, dim=500, samples=40, width=2, steps=5, labels="coarse")
    pool = Pool(1)

    async def scenario():
        (run,) = pool.runs(settings)
        await run.open()
        pool._workers[0]._process.kill()
        with pytest.raises(WorkerLostError, match="train again"):
            await run.ask("advance", 5)
        with pytest.raises(fa.InputError, match="no longer kept; train again"):
            await run.ask("advance", 5)  # the new process knows nothing of it
        (again,) = pool.runs(settings)
        await again.open()
        position, seen = await again.ask("advance", 5)
        assert (position, seen["steps"]) == (5, 5)

    try:
        asyncio.run(scenario())
    finally:
        pool.stop()


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


def test_a_closed_connection_stops_the_work_of_a_real_server():
    app = create_app(workers=2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            # a training that would go on for much longer than all of this test
            long = f"samples=2000&width=8&steps=1e25&learning_rate=1e-7&tab={TAB}&until=99"
            with httpx2.stream("GET", f"{address}/run?{long}", timeout=60) as answer:
                lines = answer.iter_lines()  # the connection is closed where nobody holds these
                assert next(lines) == "event: frame"
                assert app.state.sessions.busy == 1
            patience = time.monotonic() + 60  # until it has learnt that nobody listens
            while app.state.sessions.busy and time.monotonic() < patience:
                httpx2.get(f"{address}/about.json", timeout=60)
            assert app.state.sessions.busy == 0
        finally:
            server.should_exit = True
            thread.join()


def test_the_command_ends_cleanly_with_ctrl_c():
    with playground() as (address, process):
        assert address.startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in out + error
        assert error == "The playground is closed.\n"


def test_ctrl_c_while_a_page_trains_ends_as_cleanly():
    with playground() as (address, process):
        url = f"{address}run?samples=1500&steps=1e20&learning_rate=1e-6&tab={TAB}&until=1000000"
        with httpx2.stream("GET", url, timeout=60) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("event: ")
            process.send_signal(signal.SIGINT)
            assert "event: done" not in list(lines)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0
        assert error == "The playground is closed.\n"


def command(capsys, *arguments):
    try:
        code = main(["play", *arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, error = command(capsys)
    assert code == 2
    assert error == "featavg: the playground needs an extra: pip install 'featavg[play]'.\n"


def test_ports_and_hosts_that_cannot_be_are_one_sentence(capsys):
    assert "port must be from 0 to 65535; got 70000." in command(capsys, "--port", "70000")[2]
    host = command(capsys, "--host", "no such host")[2]
    assert host == "featavg: host must be an address of this machine; got 'no such host'.\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, error = command(capsys, "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "address already in use" in error


def test_help_teaches(capsys):
    code, out, _ = command(capsys, "--help")
    text = " ".join(out.split())
    assert code == 0
    for taught in ("Ctrl-C ends it", "--host 0.0.0.0", "pip install 'featavg[play]'", "127.0.0.1"):
        assert taught in text

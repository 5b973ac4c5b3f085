"""The playground's server: what it answers, to whom, and when it stops."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from importlib.resources import files

import httpx2
import pytest
import uvicorn
from starlette.testclient import TestClient
from uvicorn.server import ServerState

import featavg as fa
from featavg.apps.play.connections import TimedProtocol
from featavg.apps.play.server import create_app
from featavg.apps.play.settings import NETWORKS
from support.play_server import TAB, served

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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200),
        ("http://localhost:8080", 403),
        ("https://evil.example", 403),
        ("http://evil.example", 403),
        ("null", 403),
    ],
)
def test_requests_of_pages_of_another_origin_are_refused(client, origin, status):
    assert client.get("/check?clusters=4", headers={"origin": origin}).status_code == status
    left = client.post(f"/leave?tab={TAB}", headers={"origin": origin}).status_code
    assert left == (204 if status == 200 else 403)


@pytest.fixture(scope="module")
def guarded():
    """A playground that is open to other machines."""
    app = create_app(workers=1, token="the-token")  # noqa: S106
    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("path", ["/about.json", "/check", f"/run?tab={TAB}&until=1"])
def test_without_the_token_nothing_is_computed(guarded, path):
    guarded.cookies.clear()
    for given in ("", "token=wrong", "token=", "token=%C3%A9"):
        answer = guarded.get(path + ("&" if "?" in path else "?") + given)
        assert answer.status_code == 403
        assert "open the one that 'featavg play' has printed" in answer.json()["message"]
        assert "set-cookie" not in answer.headers
    assert guarded.get("/").status_code == guarded.get("/app.js").status_code == 200


def test_the_token_in_the_address_becomes_a_cookie_of_this_site_alone(guarded):
    guarded.cookies.clear()
    page = guarded.get("/?token=the-token&clusters=4")
    assert "HttpOnly; SameSite=Strict" in page.headers["set-cookie"]
    assert guarded.get("/check?clusters=4").status_code == 200  # by the cookie
    guarded.cookies.clear()
    assert guarded.get("/check?clusters=4&token=the-token").json()["values"]["clusters"] == 4


def test_a_request_that_is_never_completed_is_closed(monkeypatch):
    monkeypatch.setattr("featavg.apps.play.connections._REQUEST", 0.05)
    config = uvicorn.Config(_empty, http=TimedProtocol, log_level="warning", lifespan="off")
    halves = [b"", b"GET / HTTP/1.1\r\nHost: loc"]
    whole = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def scenario():
        server = await asyncio.get_running_loop().create_server(
            lambda: TimedProtocol(config, ServerState(), {}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        for sent in (*halves, whole + halves[1]):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            with suppress(ConnectionResetError):
                answer = await asyncio.wait_for(reader.read(), timeout=30)
                assert answer.startswith(b"HTTP/1.1 204") == sent.startswith(whole)
            writer.close()
        server.close()

    config.load()
    asyncio.run(scenario())


async def _empty(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.slow
def test_a_closed_connection_stops_the_work_of_a_real_server():
    app = create_app(workers=2)
    with served(app) as address:
        # a training that would go on for much longer than all of this test
        long = f"samples=2000&width=8&steps=1e25&learning_rate=1e-7&tab={TAB}&until=99"
        with httpx2.stream("GET", f"{address}run?{long}", timeout=60) as answer:
            lines = answer.iter_lines()  # the connection is closed where nobody holds these
            assert next(lines) == "event: data"
            assert app.state.sessions.busy == 1
        patience = time.monotonic() + 60  # until it has learnt that nobody listens
        while app.state.sessions.busy and time.monotonic() < patience:
            httpx2.get(f"{address}about.json", timeout=60)
        assert app.state.sessions.busy == 0

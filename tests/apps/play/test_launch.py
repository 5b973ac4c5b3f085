"""The command `featavg play`."""

from __future__ import annotations

import signal
import socket
import sys

import httpx2
import pytest

from featavg.apps.play import launch
from support.command import command
from support.play_server import TAB, playground


def test_the_command_ends_cleanly_with_ctrl_c():
    with playground() as (address, process):
        assert address.startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in out + error
        assert error == "The playground is closed.\n"


@pytest.mark.slow
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


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, error = command(capsys, "play")
    assert code == 2
    assert error == "featavg: the playground needs an extra: pip install 'featavg[play]'.\n"


def test_ports_and_hosts_that_cannot_be_are_one_sentence(capsys):
    assert (
        "port must be from 0 to 65535; got 70000." in command(capsys, "play", "--port", "70000")[2]
    )
    host = command(capsys, "play", "--host", "no such host")[2]
    assert host == "featavg: host must be an address of this machine; got 'no such host'.\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, error = command(capsys, "play", "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "address already in use" in error


def test_a_server_for_other_machines_has_a_token_and_says_so(monkeypatch):
    monkeypatch.setattr(launch, "_network_address", lambda ip: "192.0.2.7")
    address, lines, warning = launch.announce("0.0.0.0", "0.0.0.0", 8080, "abc")  # noqa: S104
    assert address == "http://127.0.0.1:8080/?token=abc"
    assert "Other machines on the network open http://192.0.2.7:8080/?token=abc" in lines
    assert "not encrypted" in warning
    assert launch.announce("::", "::", 80, "abc")[0] == "http://[::1]:80/?token=abc"
    assert "http://lab:80/?token=abc" in launch.announce("lab", "192.0.2.7", 80, "abc")[1]
    alone = launch.announce("127.0.0.1", "127.0.0.1", 8080, None)
    assert alone[0] == "http://127.0.0.1:8080/"
    assert alone[2] == ""


def test_help_teaches(capsys):
    code, out, _ = command(capsys, "play", "--help")
    text = " ".join(out.split())
    assert code == 0
    for taught in (
        "--save lesson.html",
        "--all",
        "?preset=",
        "Ctrl-C ends it",
        "--host 0.0.0.0",
        "pip install 'featavg[play]'",
        "127.0.0.1",
    ):
        assert taught in text


def test_links_open_the_playground_and_bad_ones_are_one_sentence(capsys):
    assert launch.announce("127.0.0.1", "127.0.0.1", 80, None, "clusters=4")[0].endswith(
        ":80/?clusters=4"
    )
    assert launch.announce("::1", "::1", 80, "abc", "seed=1")[0].endswith("/?token=abc&seed=1")
    refusals = {
        ("--link", "?k=4"): "the playground has no setting 'k' (did you mean 'clusters'?).",
        ("--link", "?preset=poster"): "the playground has no preset 'poster' (did you mean 'The "
        "poster'?).",
        ("--all",): "the playground opens with one setting; --all and more links need --save.",
        ("--save", "/", "--link", "seed=1"): "the lesson must be a file; '/' is a folder.",
        ("--save", "a.txt"): "the lesson is a page, and its name ends in .html; got 'a.txt'.",
    }
    for arguments, message in refusals.items():
        code, _, error = command(capsys, "play", "--port", "0", "--no-open", *arguments)
        assert code == 2
        assert error == f"featavg: {message}\n"

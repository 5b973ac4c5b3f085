from __future__ import annotations

import pytest

from featavg.progress import ProgressReporter, counted, wanted


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by 31 s each time it is asked."""
    times = iter(range(0, 10**6, 31))
    monkeypatch.setattr("featavg.progress.time.monotonic", lambda: next(times))


def test_a_part_names_the_whole(clock, capsys):
    with ProgressReporter("all", 2) as whole:
        for _ in counted(2, "part", enabled=wanted()):
            pass
        whole.advance()
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == "all 0/2, part: 1/2, about 93 s left"


def test_nothing_is_wanted_outside_of_a_report(capsys):
    assert not wanted()
    with ProgressReporter("silent", 2, enabled=False):
        assert not wanted()
    assert not wanted()


def test_a_report_that_fails_is_closed():
    def fail():
        with ProgressReporter("all", 2):
            assert wanted()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not wanted()


def test_a_report_that_is_not_asked_for_is_silent(clock, capsys):
    for _ in counted(9, "quiet", enabled=False):
        pass
    assert capsys.readouterr().err == ""

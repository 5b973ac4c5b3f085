from __future__ import annotations

import json

import pytest

from featavg.files import write_atomically
from featavg.lab.run_folder import to_json


def test_numbers_that_json_lacks_become_null():
    assert json.loads(to_json({"a": [float("inf"), 1.5], "b": (float("nan"), "x")})) == {
        "a": [None, 1.5],
        "b": [None, "x"],
    }


def test_a_write_that_fails_leaves_the_old_file_and_no_debris(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_atomically(target, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]

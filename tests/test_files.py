"""Atomic writes, what killed ones leave behind, and JSON with a checksum."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from featavg import DamagedFileWarning, InputError
from featavg.files import _temporary, clear_leftovers, discard, to_json, write_atomically
from featavg.seals import read_sealed_json, to_sealed_json
from support import TESTS


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


def killed_write(path):
    """Kill a process inside a write of a file."""
    code = (
        "import sys; from pathlib import Path; from featavg.files import write_atomically;"
        "from support.die_in_write import die_in_write; die_in_write(1, 'inside');"
        "write_atomically(Path(sys.argv[1]), b'new content')"
    )
    assert subprocess.run([sys.executable, "-c", code, path], cwd=TESTS).returncode == -9


def test_what_a_killed_write_leaves_is_removed_by_the_next_one(tmp_path):
    path = tmp_path / "figure.png"
    killed_write(path)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".figure.png.")
    write_atomically(tmp_path / "other.png", b"")
    assert left.exists()  # that of another file
    write_atomically(path, b"whole")
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "other.png"]
    killed_write(path)
    clear_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "other.png"]
    assert path.read_bytes() == b"whole"


def test_what_a_live_process_writes_and_files_of_others_stay(tmp_path):
    handle, written = _temporary(tmp_path / "results.csv")
    others = [".bashrc.a1b2c3d4", ".results.csv.backup1.old", "results.csv.abcdefgh", ".csv.abc"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / "target").write_text("mine")
    (tmp_path / ".link.json.abcdefgh").symlink_to(tmp_path / "target")
    (tmp_path / ".folder.json.abcdefgh").mkdir()
    os.mkfifo(tmp_path / ".pipe.json.abcdefgh")
    before = set(tmp_path.iterdir())
    clear_leftovers(tmp_path)
    assert set(tmp_path.iterdir()) == before
    os.close(handle)
    clear_leftovers(tmp_path)
    assert set(tmp_path.iterdir()) == before - {written}
    clear_leftovers(tmp_path / "missing")


def test_without_locks_nothing_is_removed_and_files_are_still_written(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    (tmp_path / ".a.json.abcdefgh").write_text("who knows")
    monkeypatch.setattr("fcntl.flock", unsupported)
    write_atomically(tmp_path / "a.json", b"{}")
    assert {p.name for p in tmp_path.iterdir()} == {"a.json", ".a.json.abcdefgh"}


def test_a_temporary_file_that_was_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    from featavg import files

    lock, taken = files._lock, []

    def late(handle):
        """Let another process clear the folder before the first file is locked."""
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        return lock(handle)

    monkeypatch.setattr(files, "_lock", late)
    write_atomically(tmp_path / "a.json", b"{}")
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert taken


def test_a_discarded_file_is_kept_under_another_name(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"damaged")
    with pytest.warns(DamagedFileWarning, match=r"is damaged \(no\): it is now a.npz.corrupt"):
        discard(path, "cannot read a.npz: no.", "it is made again")
    assert (tmp_path / "a.npz.corrupt").read_bytes() == b"damaged"
    with pytest.warns(DamagedFileWarning, match="a.npz is missing, and it is made again"):
        discard(path, "", "it is made again")


VALUE = {"a": [1, 2.5, None], "b": {"ü": "x"}, "big": 1e100}


def test_sealed_json_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(to_sealed_json(VALUE | {"nan": float("nan")}))
    assert read_sealed_json(path, most=1000) == VALUE | {"nan": None}
    assert list(json.loads(path.read_text())) == ["a", "b", "big", "nan", "checksum"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace("2.5", "2.6"), "does not have its checksum"),
        (lambda text: text.replace("1e+100", "1E+100"), "does not have its checksum"),
        (lambda text: text.replace("\n", " \n"), "does not have its checksum"),
        (lambda text: text.replace('"x"', '"\\ud800"'), "does not have its checksum"),
        (lambda text: text.replace("checksum", "checksun"), "has no checksum"),
        (lambda text: "[]", "has no checksum"),
        (lambda text: text[:-3], "not valid JSON"),
        (lambda text: '{"checksum": 1, "a": ' + "[" * 900 + "]" * 900 + "}", "checksum"),
    ],
)
def test_sealed_json_in_which_anything_differs_is_refused(change, reason, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(change(to_sealed_json(VALUE).decode()))
    with pytest.raises(InputError, match=f"a.json .*{reason}"):
        read_sealed_json(path, most=10_000)


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_not_replaced_by_a_file(linked, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    if linked:
        (tmp_path / "link").symlink_to(path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"^out must be a file or a new name; got .*a pipe\.$"):
        write_atomically(tmp_path / "link" if linked else path, b"new")
    assert path.is_fifo()
    assert sorted(tmp_path.iterdir()) == before


def test_a_link_to_a_file_is_replaced_and_the_file_stays(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").read_bytes() == b"new"
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_damaged_file_that_cannot_be_renamed_is_not_said_to_be(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"damaged")
    (tmp_path / "a.npz.corrupt" / "full").mkdir(parents=True)  # which a file cannot replace
    with pytest.warns(DamagedFileWarning, match=r"\(no\): it cannot be set aside, and it is made"):
        discard(path, "cannot read a.npz: no.", "it is made again")
    assert path.read_bytes() == b"damaged"
